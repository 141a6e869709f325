"""Volumes of folders of this machine, which Kubernetes has no provisioner for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

_SIZE = {"storage": "1Gi"}


def shared(folder: Path, name: str, claim: str) -> str:
    """Return a volume that all pods may write to, and a claim that is bound to it, as YAML."""
    of_both = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    bound = {"resources": {"requests": _SIZE}, "volumeName": name, **of_both}
    objects = [
        _volume(folder, name, of_both),
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim}, "spec": bound},
    ]
    return yaml.safe_dump_all(objects)


def spare(folders: Sequence[Path], storage_class: str) -> str:
    """Return volumes of a storage class, one for each folder, for claims that come later, as YAML."""
    # What Spark claims since 4.0.
    for_one = {"accessModes": ["ReadWriteOncePod"], "storageClassName": storage_class}
    volumes = [_volume(folder, f"{storage_class}-{number}", for_one) for number, folder in enumerate(folders)]
    return yaml.safe_dump_all(volumes)


def _volume(folder: Path, name: str, spec: Mapping[str, object]) -> dict[str, object]:
    place = {"capacity": _SIZE, "hostPath": {"path": str(folder)}, "persistentVolumeReclaimPolicy": "Retain"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {**place, **spec},
    }
