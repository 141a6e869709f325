"""A real Kubernetes of local processes: etcd, API server, controllers, scheduler, DNS, and nodes.

Each node, and the programs that control them, have a network namespace of their own with an address that this
machine reaches. Nothing is reached from outside of it, and nothing reaches out.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import yaml

from integration.chaos.network import NotAllowed, network
from integration.commands import output_of
from integration.go_modules import Unavailable
from integration.kubernetes.groups import groups, remove_groups
from integration.kubernetes.images import Images
from integration.kubernetes.kubectl import Kubectl, Refused
from integration.kubernetes.leftovers import NETWORK, tied
from integration.kubernetes.node import PAUSE, Node, Place
from integration.kubernetes.parts import programs
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure

if TYPE_CHECKING:
    from typing_extensions import Self

_API_PORT = 6443
_START_S = 120.0
_READY_S = 120.0
_END_S = 10.0
_POLL_S = 0.2
_SILENT_S = 20
ADMIN = "admin"


class Cluster:
    """A cluster without nodes at first; a context manager that leaves nothing behind.

    `folder` is for everything that it writes; it may be removed afterwards. `host` is this machine's address
    as pods see it. `kubectl` may do everything.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._closing = ExitStack()
        self._processes: list[LoggedProcess] = []
        self._token = secrets.token_hex(16)
        self.nodes: list[Node] = []

    def __enter__(self) -> Self:
        """Start everything. Raises Unavailable if this machine cannot, ProcessFailure if it fails."""
        try:
            self._programs = programs()
            self._pause = Images(self._folder / "images").program(self._programs["pause"], PAUSE)
            self._network = self._closing.enter_context(network(NETWORK))
            self._start()
        except NotAllowed as error:
            self.stop()
            raise Unavailable(str(error)) from error
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def host(self) -> str:
        """Return this machine's address."""
        return self._network.host

    @property
    def server(self) -> str:
        """Return the URL of the API server."""
        return f"https://{self._control}:{_API_PORT}"

    @property
    def authority(self) -> Path:
        """Return the file with the certificate of the API server."""
        return self._folder / "keys" / "apiserver.crt"

    def add_node(self, cpu: float = 2.0, memory: int = 6144, images: Sequence[Path] = ()) -> Node:
        """Start a node with this many cores and MiB for pods; return once it is ready and has the images.

        More cores than the machine has are not possible. Raises ProcessFailure.
        """
        number = len(self.nodes) + 1
        address, prefix = self._network.join()
        place = Place(f"node-{number}", address, prefix[-1], f"{self._front}.{128 + number}.0/24")
        node = Node(
            place,
            self._folder / place.name,
            f"/{self._network.name}",
            self._programs,
            self.kubectl.config,
            self._control,
            self._services,
            cpu,
            memory,
        )
        self.nodes.append(node)
        node.start()
        self._network.route(place.pods, address)
        for image in (self._pause, *images):
            node.load(image)
        ready = ("wait", "--for=condition=Ready", f"node/{place.name}")
        self._until(lambda: self.kubectl.run("get", "node", place.name), f"{place.name} is registered")
        self.kubectl.run(*ready, f"--timeout={_READY_S:.0f}s", timeout_s=2 * _READY_S)
        return node

    def load(self, image: Path) -> None:
        """Give all nodes that are there an image, from its archive."""
        for node in self.nodes:
            node.load(image)

    def cut(self, node: Node) -> None:
        """Let a node fall silent: nothing gets to it or its pods, or from there, and no connection ends."""
        self._network.cut(node.place.address)

    def account(self, name: str, namespace: str) -> Kubectl:
        """Return kubectl with the rights of a service account."""
        token = self.kubectl.within(namespace).run("create", "token", name, "--duration=24h").strip()
        return Kubectl(self._programs["kubectl"], self._kubeconfig(f"{namespace}-{name}", token), namespace)

    def stop(self) -> None:
        """End everything; calling it again does nothing."""
        for node in self.nodes:
            node.kill()
        for process in reversed(self._processes):
            process.kill()
        if self.nodes:
            remove_groups(f"/{self._network.name}")
        self._closing.close()

    def left_over(self) -> list[str]:
        """Return what remains of a stopped cluster."""
        ended = [process.name for process in self._processes if not process.wait_until_gone(_END_S)]
        namespaces = subprocess.run(
            ["ip", "netns", "list"], capture_output=True, text=True, check=True
        ).stdout
        mounts = Path("/proc/self/mountinfo").read_text()
        ours = [line for line in namespaces.splitlines() if line.startswith(f"{self._network.name}-")]
        ours += [line for line in mounts.splitlines() if f" {self._folder}/" in line]
        ours += [str(group) for group in groups(f"/{self._network.name}") if group.exists()]
        return [*ended, *ours, *(each for node in self.nodes for each in node.left_over())]

    def _start(self) -> None:
        self._front = self.host.removesuffix(".0.1")
        # Kubernetes' own service gets the first of these.
        self._services = f"{self._front}.250.0/24"
        self._control, self._prefix = self._network.join()
        keys = self._folder / "keys"
        keys.mkdir(parents=True)
        (keys / "tokens.csv").write_text(f"{self._token},{ADMIN},1,system:masters\n")
        _openssl("genrsa", "-out", str(keys / "accounts.key"), "2048")
        # The API server shows it to extensions of its API, which have to trust it.
        front_proxy = ("-keyout", str(keys / "proxy.key"), "-out", str(keys / "proxy.crt"), "-days", "2")
        _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=front-proxy", *front_proxy)
        self.kubectl = Kubectl(self._programs["kubectl"], self._kubeconfig(ADMIN, self._token))
        self._run_etcd()
        self._run_api_server()
        config = f"--kubeconfig={self.kubectl.config}"
        self._run(
            "kube-controller-manager",
            config,
            f"--service-account-private-key-file={keys / 'accounts.key'}",
            f"--root-ca-file={self.authority}",
            "--leader-elect=false",
            # A node that says nothing is given up sooner than by default, which is 50 s.
            f"--node-monitor-grace-period={_SILENT_S}s",
            "--controllers=*,-nodeipam,-node-route-controller,-cloud-node-lifecycle-controller,"
            "-service-lb-controller",
        )
        self._run("kube-scheduler", config, "--leader-elect=false")
        corefile = self._folder / "Corefile"
        corefile.write_text(_COREFILE.format(config=self.kubectl.config))
        self._run("coredns", "-conf", str(corefile))
        self._until(
            lambda: self.kubectl.run("get", "serviceaccount", "default"), "the default namespace is complete"
        )

    def _run_etcd(self) -> None:
        client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
        etcd = self._run(
            "etcd",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            # Nothing of it is needed after a crash.
            "--unsafe-no-fsync",
        )
        etcd.wait_for_line("ready to serve client requests", _START_S)

    def _run_api_server(self) -> None:
        keys = self._folder / "keys"
        self._run(
            "kube-apiserver",
            "--etcd-servers=http://127.0.0.1:2379",
            f"--advertise-address={self._control}",
            "--bind-address=0.0.0.0",
            f"--secure-port={_API_PORT}",
            # It makes its own certificate there.
            f"--cert-dir={keys}",
            f"--service-cluster-ip-range={self._services}",
            f"--token-auth-file={keys / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys / 'accounts.key'}",
            f"--service-account-signing-key-file={keys / 'accounts.key'}",
            "--authorization-mode=RBAC",
            # Nodes have no names in any DNS.
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={keys / 'proxy.crt'}",
            f"--proxy-client-cert-file={keys / 'proxy.crt'}",
            f"--proxy-client-key-file={keys / 'proxy.key'}",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            # Services are reached through kube-proxy only where pods are; an extension's pod, directly.
            "--enable-aggregator-routing=true",
        )
        self._until(lambda: self.kubectl.run("get", "--raw", "/readyz"), "the API server is ready")

    def _run(self, name: str, *arguments: str) -> LoggedProcess:
        process = LoggedProcess(
            name,
            tied([*self._prefix, str(self._programs[name]), *arguments]),
            env=os.environ,
            log=self._folder / f"{name}.log",
            cwd=self._folder,
        )
        self._processes.append(process)
        return process

    def _until(self, look: Any, what: str) -> None:
        """Wait until a command works. Raises ProcessFailure."""
        deadline = time.monotonic() + _START_S
        while True:
            try:
                look()
            except Refused as refused:
                for process in [*self._processes, *(each for node in self.nodes for each in node.processes)]:
                    if not process.running:
                        raise ProcessFailure(f"{process.name} has ended\n{process.log_tail()}") from refused
                if time.monotonic() > deadline:
                    raise ProcessFailure(f"not within {_START_S:g} s: {what}; {refused}") from refused
                time.sleep(_POLL_S)
            else:
                return

    def _kubeconfig(self, user: str, token: str) -> Path:
        file = self._folder / f"{user}.kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "tests",
                    "cluster": {"server": self.server, "certificate-authority": str(self.authority)},
                }
            ],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
            "current-context": "tests",
        }
        file.write_text(yaml.safe_dump(content))
        return file


_COREFILE = """\
.:53 {{
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {config}
        ttl 5
    }}
}}
"""


def _openssl(*arguments: str) -> None:
    output_of(["openssl", *arguments], ProcessFailure)
