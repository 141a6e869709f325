"""A platform's machine, laid out in a folder, with stand-ins for python and aws that record their calls."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field

from spark_elastic import __version__
from spark_elastic_tools.init_scripts.script import PLATFORMS, Order, from_index, read_files, script

JARS = ("3.5_2.12", "3.5_2.13", "4.0_2.13", "4.1_2.13", "4.2_2.13")
HOME = f"opt/spark-elastic/{__version__}"
WHEEL = f"spark_elastic-{__version__}-py3-none-any.whl"
PATIENCE_S = 20.0
# The programs that the scripts may call, in addition to python and aws.
TOOLS = (
    *("bash", "sh", "env", "cat", "chmod", "cmp", "cp", "date", "find", "flock", "grep", "head", "id"),
    *("mkdir", "mktemp", "mv", "rm", "sed", "setsid", "sha256sum", "sleep", "tail"),
)
PYTHON = """\
#!{real}
import os, pathlib, shutil, signal, sys, zipfile
arguments = sys.argv[1:]
with open({calls!r}, "a") as calls:
    calls.write(" ".join([{name!r}, *arguments]) + "\\n")
def after(option):
    return arguments[arguments.index(option) + 1]
if arguments[0] == "-c" and "version_info" in arguments[1]:
    print({version!r})
elif arguments[:3] == ["-m", "pip", "--version"]:
    sys.exit(not {pip!r})
elif arguments[:3] == ["-m", "pip", "download"]:
    for wheel in pathlib.Path({index!r}).glob("*.whl"):
        shutil.copy(wheel, after("--dest"))
elif arguments[:3] == ["-m", "pip", "install"]:
    target = pathlib.Path(after("--target"))
    for wheel in pathlib.Path(after("--find-links")).glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(target)
    trouble = pathlib.Path({trouble!r})
    if trouble.exists():
        kind = trouble.read_text()
        trouble.unlink()
        if kind == "kill":
            os.kill(os.getppid(), signal.SIGKILL)
        sys.exit(kind)
else:
    os.execv({real!r}, [{real!r}, *arguments])
"""
AWS = """\
#!/bin/bash
echo "aws $*" >>'{calls}'
[ "$1 $2" = "s3 cp" ] && cp '{bucket}'/"${{3#s3://}}" "$4"
"""


def jar_name(kind: str, version: str = __version__) -> str:
    return f"spark-elastic_{kind}-{version}.jar"


def write_wheel(
    folder: Path,
    jars: tuple[str, ...] = JARS,
    version: str = __version__,
    more: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a wheel of ours: the package, its jars, `more` files by name, and pip's metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / WHEEL.replace(__version__, version)
    info = f"spark_elastic-{version}.dist-info"
    files: dict[str, str | bytes] = {
        "spark_elastic/__init__.py": f'__version__ = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: spark-elastic\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **{f"spark_elastic/jars/{jar_name(kind, version)}": f"jar for {kind}" for kind in jars},
        **(more or {}),
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


@define
class Machine:
    """A machine under `root`; `place` is the folder of files from its point of view."""

    folder: Path
    environment: dict[str, str] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.bin.mkdir(parents=True)
        self.root.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, tool
            (self.bin / tool).symlink_to(found)
        write_wheel(self.files)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def files(self) -> Path:
        return self.root / "Volumes" / "main" / "tools" / "jars"

    @property
    def trouble(self) -> Path:
        return self.folder / "trouble"

    @property
    def calls(self) -> list[str]:
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def home(self) -> Path:
        return self.root / HOME

    def log(self, platform: str) -> str:
        file = self.root / "var" / "log" / "spark-elastic" / f"{platform}.log"
        return file.read_text() if file.exists() else ""

    def put(self, path: str, text: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def put_python(self, path: Path, version: str = "3.11", *, pip: bool = True) -> None:
        """Install a stand-in that reports this version and forwards everything else to this Python."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = PYTHON.format(
            real=sys.executable, calls=str(self.folder / "calls"), name=path.name, version=version, pip=pip,
            index=str(self.folder / "index"), trouble=str(self.trouble),
        )  # fmt: skip
        path.write_text(text)
        path.chmod(0o755)

    def put_real_python(self, path: Path) -> None:
        """Install this Python with its packages, including pip."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        path.chmod(0o755)

    def put_aws(self) -> Path:
        """Install a stand-in for aws and return the folder with its buckets."""
        bucket = self.folder / "s3"
        bucket.mkdir()
        path = self.bin / "aws"
        path.write_text(AWS.format(calls=self.folder / "calls", bucket=bucket))
        path.chmod(0o755)
        return bucket

    def write(
        self,
        platform: str,
        *,
        place: str | None = "/Volumes/main/tools/jars",
        files: Path | None = None,
        strict: bool = False,
        mode: str = "reactive",
    ) -> Path:
        """Write a script for the files in `files`, which are at `place` on the
        machine, or in an index if None.
        """
        folder = files or (None if place is None else self.files)
        found = from_index(__version__) if folder is None else read_files(folder, __version__)
        order = Order(platform=PLATFORMS[platform], mode=mode, files=found, place=place, strict=strict)
        path = self.folder / f"{platform}.sh"
        path.write_text(script(order))
        return path

    def run(self, path: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a script to its end, as root of this machine."""
        environment = {
            "PATH": str(self.bin),
            "SPARK_ELASTIC_ROOT": str(self.root),
            "TMPDIR": str(self.folder),
            **self.environment,
            **more,
        }
        return subprocess.run(
            ["bash", str(path), *arguments], env=environment, capture_output=True, text=True, timeout=60
        )

    def tree(self) -> Mapping[str, tuple[int, int]]:
        """Return every file of the machine except logs, with its inode and modification time."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            if path.is_file() and "var/log" not in str(path) and path.name != "lock":
                facts = path.stat()
                found[str(path.relative_to(self.root))] = (facts.st_ino, facts.st_mtime_ns)
        return found


@contextmanager
def no_process_left(machine: Machine) -> Iterator[None]:
    """End the background processes of a script."""
    try:
        yield
    finally:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if f"{machine.home}/bootstrap.sh" in command:
                os.kill(int(process.name), signal.SIGKILL)
