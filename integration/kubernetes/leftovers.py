"""What a run that is killed would leave on the machine, and how it ends or is found all the same.

Processes end with the process that started them. The network, the control groups and the folder of a run have
the id of its process in their names, so that a later run removes what those that have ended have left.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from integration.chaos import network
from integration.kubernetes.groups import remove_groups, runs_with_groups
from spark_elastic_tools.maven import locked

NETWORK = "kube"
_FOLDER = "spark-elastic-kube"


def tied(command: Sequence[str]) -> list[str]:
    """Return a command that the kernel kills when the thread that started it ends, however that happens.

    A program that forks is responsible for its own children: those of a first process of a PID namespace end
    with it.
    """
    return ["setpriv", "--pdeathsig", "KILL", *command]


@contextmanager
def folder_of_this_run() -> Iterator[Path]:
    """Make the folder for what is large, and remove it afterwards; what earlier runs have left goes first."""
    remove_abandoned()
    folder = Path(tempfile.gettempdir(), f"{_FOLDER}{os.getpid()}")
    # Of an earlier process that had the same id.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def remove_abandoned() -> None:
    """Remove what runs that have ended have left. Raises NotAllowed."""
    with locked("kubernetes-leftovers"):
        # Its processes leave the control groups, too.
        network.remove_abandoned(NETWORK)
        for name in runs_with_groups(NETWORK):
            if network.has_ended(int(name.removeprefix(NETWORK))):
                remove_groups(f"/{name}")
        for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
            owner = re.fullmatch(rf"{_FOLDER}(\d+)", folder.name)
            if owner is not None and network.has_ended(int(owner[1])):
                shutil.rmtree(folder)
