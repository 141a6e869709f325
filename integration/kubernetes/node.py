"""A node: kubelet, containerd and kube-proxy in namespaces of their own, as if on a machine of their own.

Its first process holds the namespaces. With that process, the kernel ends every other one in it, the
containers too, and removes their mounts; only the folders and the control groups have to be removed then.
That process itself ends with the one that started the node.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import yaml
from attrs import frozen

from integration.commands import output_of
from integration.kubernetes.groups import make_groups
from integration.kubernetes.leftovers import tied
from integration.kubernetes.parts import CNI
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure

_SOCKET = "/run/containerd/containerd.sock"
_START_S = 60.0
_COMMAND_S = 300.0
_END_S = 20.0
PAUSE = "localhost/pause:1"
_BRIDGE = "pods"


@frozen
class Place:
    """Where a node is: its name, its address, the namespace of its network, and the addresses of its pods."""

    name: str
    address: str
    network: str
    pods: str


class Node:
    """A node with `cpu` cores and `memory` MiB for pods; `kubeconfig` is how it reaches the API server.

    All its folders are below `folder`, its control groups below `group`.
    """

    def __init__(
        self,
        place: Place,
        folder: Path,
        group: str,
        programs: Mapping[str, Path],
        kubeconfig: Path,
        dns: str,
        services: str,
        cpu: float,
        memory: int,
    ) -> None:
        self.place = place
        self._folder = folder
        self._group = f"{group}/{place.name}"
        self._programs = programs
        self._kubeconfig = kubeconfig
        self._dns = dns
        self._services = services
        self._cpu = cpu
        self._memory = memory
        self._processes: list[LoggedProcess] = []
        self._kubelet: LoggedProcess
        self._kubelets = 0
        self._first = 0

    @property
    def processes(self) -> Sequence[LoggedProcess]:
        """Return the processes that were started, the first one being that which holds the namespaces."""
        return self._processes

    def start(self) -> None:
        """Start its processes; the node registers itself some seconds later. Raises ProcessFailure."""
        self._folder.mkdir(parents=True)
        make_groups(self._group)
        self._hold()
        self._write_settings()
        containerd = self._start(
            "containerd", ["containerd", "--config", str(self._folder / "containerd.toml")]
        )
        containerd.wait_for_line("containerd successfully booted", _START_S)
        self.start_kubelet()
        proxy = [str(self._programs["kube-proxy"]), f"--config={self._folder / 'kube-proxy.yaml'}"]
        self._start("kube-proxy", [*proxy, f"--hostname-override={self.place.name}"])

    def start_kubelet(self) -> None:
        """Start kubelet, for the first time or again."""
        self._kubelets += 1
        self._kubelet = self._start(
            f"kubelet-{self._kubelets}",
            [
                str(self._programs["kubelet"]),
                f"--config={self._folder / 'kubelet.yaml'}",
                f"--kubeconfig={self._kubeconfig}",
                f"--node-ip={self.place.address}",
                f"--hostname-override={self.place.name}",
            ],
        )

    def kill_kubelet(self) -> None:
        """End kubelet; the containers go on without it."""
        self._kubelet.kill()
        self._processes.remove(self._kubelet)

    @property
    def first(self) -> int:
        """Return the process id of the first process, whose descendants the containers are."""
        return self._first

    def load(self, archive: Path) -> None:
        """Give the node an image, so that no pod has to pull it. Raises ProcessFailure."""
        self._ctr("images", "import", str(archive))

    def name_image(self, image: str, other: str) -> None:
        """Give an image that the node has another name, too. Raises ProcessFailure."""
        self._ctr("images", "tag", image, other)

    def cut_pod(self, address: str) -> None:
        """Let a pod fall silent, by its address: no packet gets to it or from it. Raises ProcessFailure."""
        neighbour = re.search(r"lladdr (\S+)", self._ip("ip", "neigh", "show", address))
        ports = self._ip("bridge", "fdb", "show", "br", _BRIDGE)
        port = neighbour and re.search(rf"^{neighbour[1]} dev (\S+)", ports, re.MULTILINE)
        if not port:
            raise ProcessFailure(f"{self.place.name} has no pod with the address {address}")
        self._ip("ip", "link", "set", port[1], "down")

    def kill(self) -> None:
        """End every process of the node at once, as when a machine dies."""
        for process in self._processes:
            process.kill()

    def left_over(self) -> list[str]:
        """Return which processes remain of a node that was killed."""
        return [process.name for process in self._processes if not process.wait_until_gone(_END_S)]

    def _hold(self) -> None:
        """Start the first process, and give it places of its own for what is usually below /run and /var."""
        own = {"/var/lib": self._folder / "lib", "/var/log": self._folder / "log"}
        for path in own.values():
            path.mkdir()
        lines = [f"mount --bind {path} {place}" for place, path in own.items()]
        lines += ["mount -t tmpfs tmpfs /run", "mkdir /run/lock", "echo 1 >/proc/sys/net/ipv4/ip_forward"]
        script = "\n".join(["set -e", *lines, "echo ready", "exec tini -- sleep infinity"])
        inner = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
        command = ["nsenter", f"--net=/run/netns/{self.place.network}", *inner]
        holder = self._log("node", command)
        holder.wait_for_line("^ready", _START_S)
        (child,) = psutil.Process(holder.pid).children()
        self._first = child.pid

    def _within(self, command: Sequence[str]) -> list[str]:
        return ["nsenter", f"--target={self._first}", "--mount", "--pid", "--net", "--", *command]

    def _start(self, name: str, command: Sequence[str]) -> LoggedProcess:
        return self._log(name, self._within(command))

    def _log(self, name: str, command: Sequence[str]) -> LoggedProcess:
        log = self._folder / f"{name}.log"
        process = LoggedProcess(
            f"{self.place.name}'s {name}", tied(command), env=os.environ, log=log, cwd=self._folder
        )
        self._processes.append(process)
        return process

    def _ip(self, *command: str) -> str:
        """Run a tool in the node's network. Raises ProcessFailure."""
        return _output(["nsenter", f"--net=/run/netns/{self.place.network}", *command])

    def _ctr(self, *arguments: str) -> None:
        _output(self._within(["ctr", f"--address={_SOCKET}", "--namespace=k8s.io", *arguments]))

    def _write_settings(self) -> None:
        networks = self._folder / "networks"
        networks.mkdir()
        (networks / "10-pods.conflist").write_text(json.dumps(_pod_network(self.place.pods)))
        (self._folder / "containerd.toml").write_text(_containerd(networks))
        (self._folder / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet_settings()))
        (self._folder / "kube-proxy.yaml").write_text(yaml.safe_dump(self._kube_proxy()))

    def _kubelet_settings(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{_SOCKET}",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "clusterDNS": [self._dns],
            "clusterDomain": "cluster.local",
            "resolvConf": "",
            "volumePluginDir": "/var/lib/kubelet/plugins",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self._group,
            "failCgroupV1": False,
            "failSwapOn": False,
            # The whole machine belongs to others, too: what is not for pods counts as the system's.
            "enforceNodeAllocatable": [],
            "systemReserved": _reserved(self._cpu, self._memory),
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
            },
            # On a disk that is nearly full kubelet would remove images that no registry has: off.
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "4s",
            # It says four times in this time that the node lives.
            "nodeLeaseDurationSeconds": 16,
        }

    def _kube_proxy(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clientConnection": {"kubeconfig": str(self._kubeconfig)},
            # A pod that a service sends to its own node would answer past the node's address translation.
            "iptables": {"masqueradeAll": True},
            # Limits of the whole machine, which are not ours to set.
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        }


def _output(command: Sequence[str]) -> str:
    return output_of(command, ProcessFailure, timeout_s=_COMMAND_S)


def _reserved(cpu: float, memory: int) -> dict[str, str]:
    cores = max(0.0, (os.cpu_count() or 1) - cpu)
    rest = max(0, psutil.virtual_memory().total // 2**20 - memory)
    return {"cpu": f"{round(cores * 1000)}m", "memory": f"{rest}Mi"}


def _pod_network(pods: str) -> dict[str, Any]:
    addresses = {"type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": _BRIDGE, "isGateway": True, "hairpinMode": True, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, {"type": "loopback"}]}


def _containerd(networks: Path) -> str:
    # A process without CAP_SYS_RESOURCE cannot lower an oom_score_adj.
    return textwrap.dedent(
        f"""\
        version = 2
        disabled_plugins = ["io.containerd.internal.v1.opt"]
        [grpc]
          address = "{_SOCKET}"
        [plugins."io.containerd.grpc.v1.cri"]
          restrict_oom_score_adj = true
          sandbox_image = "{PAUSE}"
        [plugins."io.containerd.grpc.v1.cri".cni]
          bin_dir = "{CNI}"
          conf_dir = "{networks}"
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
          runtime_type = "io.containerd.runc.v2"
        """
    )
