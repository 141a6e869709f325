"""Volumes of folders of this machine, which Kubernetes has no provisioner for."""

from __future__ import annotations

from collections.abc import Mapping
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


def _volume(folder: Path, name: str, spec: Mapping[str, object]) -> dict[str, object]:
    place = {"capacity": _SIZE, "hostPath": {"path": str(folder)}, "persistentVolumeReclaimPolicy": "Retain"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {**place, **spec},
    }
