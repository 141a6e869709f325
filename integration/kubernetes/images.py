"""The images of the tests: one that stands in for apache/spark, and on it the product's own Dockerfile.

The first one is made once and cached, the second one from this checkout each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from integration.commands import output_of
from integration.go_modules import Unavailable
from integration.kubernetes.leftovers import tied
from spark_elastic_lab.demo.cluster import spark_home
from spark_elastic_tools.maven import cache_dir, locked

SPARK = version("pyspark")
SPARK_IMAGE = f"apache/spark:{SPARK}"
"""The name of Apache's image."""
ELASTIC_IMAGE = f"localhost/spark-elastic:{SPARK}"
"""The name of the image with spark-elastic, in a registry that no test asks."""
_HERE = Path(__file__).with_name("image")
_CHECKOUT = Path(__file__).parents[2]
_DOCKERFILE = _CHECKOUT / "conf" / "kubernetes" / "Dockerfile"
_PACKAGES = ("openjdk-17-jre-headless", "procps", "python3", "python3-pip", "tini")
# What no container reads, and a third of the whole.
_SURPLUS = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "var/cache/apt/archives",
    "var/lib/apt/lists",
)
_STEP_S = 1800.0


class Images:
    """Makes images and writes them as archives into `folder`. Methods raise Unavailable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        self._policy = folder / "policy.json"
        self._policy.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))

    def elastic(self, wheel: Path) -> Path:
        """Return an archive of Apache's image with one more layer, made by the product's Dockerfile."""
        name, archive = ELASTIC_IMAGE, self._folder / "spark-elastic.tar"
        self.stand_in()
        with locked("kubernetes-images"):
            # The containers of a run that was killed.
            self._buildah("rm", "--all")
            wheels = self._wheels(wheel)
            # Each build is of another checkout.
            built = ["--no-cache", f"--build-arg=SPARK={SPARK}", f"--file={_DOCKERFILE}", f"--tag={name}"]
            self._buildah("build", *built, str(wheels))
            self._buildah("push", name, f"docker-archive:{archive}:{name}")
            self._buildah("rmi", name)
        return archive

    def program(self, program: Path, name: str, base: str = "scratch") -> Path:
        """Return an archive of an image that runs a program, made once; by default it has nothing else."""
        archive = self._folder / f"{program.name}.tar"
        if archive.exists():
            return archive
        (self._folder / "Dockerfile.program").write_text(
            f'FROM {base}\nCOPY {program.name} /\nENTRYPOINT ["/{program.name}"]\n'
        )
        with locked("kubernetes-images"):
            file = self._folder / "Dockerfile.program"
            self._buildah("build", f"--file={file}", f"--tag={name}", str(program.parent))
            self._buildah("push", name, f"docker-archive:{archive}:{name}")
            self._buildah("rmi", name)
        return archive

    def layers(self, archive: Path) -> list[int]:
        """Return the bytes of each layer of an archive, the lowest first."""
        with tempfile.TemporaryDirectory(dir=self._folder) as unpacked:
            subprocess.run(["tar", "-xf", archive, "-C", unpacked], check=True, timeout=_STEP_S)
            (manifest,) = json.loads(Path(unpacked, "manifest.json").read_text())
            return [Path(unpacked, layer).stat().st_size for layer in manifest["Layers"]]

    def stand_in(self) -> None:
        """Make the image that stands in for Apache's, unless it is there."""
        with locked("kubernetes-images"):
            self._stand_in()

    def _stand_in(self) -> None:
        if unmade() is None:
            return
        print(
            f"spark-elastic: making {SPARK_IMAGE} of Debian and PySpark; once, minutes",
            file=sys.stderr,
            flush=True,
        )
        _storage().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_storage(), prefix="part-") as part:
            context = Path(part, "context")
            shutil.copytree(_HERE, context)
            _debian(Path(part, "root"), context / "root.tar")
            spark = f"--build-context=spark={spark_home()}"
            self._buildah("build", "--no-cache", "--layers", spark, f"--tag={SPARK_IMAGE}", str(context))
        _stamp().write_text(_made_of())

    def _wheels(self, wheel: Path) -> Path:
        """Return a folder with a wheel and those that it needs, for the image's Python.

        The commands are those of the Dockerfile's comment.
        """
        wheels = self._folder / "wheels"
        container = self._buildah("from", "--pull-never", SPARK_IMAGE).strip()
        ask = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            python = self._buildah("run", container, "--", "python3", "-c", ask).strip()
        finally:
            self._buildah("rm", container)
        options = ["--only-binary=:all:", f"--python-version={python}", f"--dest={wheels}"]
        platform = f"--platform=manylinux2014_{os.uname().machine}"
        _run([sys.executable, "-m", "pip", "download", "--quiet", *options, platform, str(wheel)])
        return wheels

    def _buildah(self, *arguments: str) -> str:
        command, *others = arguments
        flags = {
            "build": ["--isolation=chroot", "--pull-never", f"--signature-policy={self._policy}"],
            "run": ["--isolation=chroot"],
            "push": ["--quiet", f"--signature-policy={self._policy}"],
            "from": [f"--signature-policy={self._policy}"],
        }
        storage = [f"--root={_storage() / 'images'}", f"--runroot={self._folder / 'run'}"]
        # It leaves its mounts behind, which end with this namespace.
        return _run(
            tied(["unshare", "--mount", "buildah", *storage, command, *flags.get(command, []), *others]),
        )


def unmade() -> str | None:
    """Return why images cannot be made at once, with what to type; None: they can."""
    if _stamp().exists() and _stamp().read_text() == _made_of():
        return None
    return f"the image that stands in for {SPARK_IMAGE} is not there yet: make test-kubernetes makes it"


def _made_of() -> str:
    """Return a name for the parts of the image that stands in for Apache's."""
    own = (_HERE / name for name in ("Dockerfile", "entrypoint.sh", "decom.sh"))
    parts = (part.read_bytes() for part in (*own, spark_home() / "version.py"))
    return hashlib.sha256(b"\0".join((SPARK_IMAGE.encode(), *parts))).hexdigest()[:16]


def _stamp() -> Path:
    return _storage() / "stand-in"


def _storage() -> Path:
    return cache_dir() / "kubernetes" / "images"


def _debian(root: Path, archive: Path) -> None:
    """Write an archive of a small Debian with Java and Python."""
    suite = _run(["sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME"]).strip()
    packages = f"--include={','.join(_PACKAGES)}"
    _run(["unshare", "--mount", "debootstrap", "--variant=minbase", packages, suite, str(root)])
    surplus = [f"--exclude=./{path}/*" for path in _SURPLUS]
    _run(["tar", "--one-file-system", *surplus, "-C", str(root), "-cf", str(archive), "."])


def _run(command: Sequence[str]) -> str:
    return output_of(command, Unavailable, timeout_s=_STEP_S)
