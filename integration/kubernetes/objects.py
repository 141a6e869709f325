"""Objects beside an application that are in its way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from integration.kubernetes.kubectl import Kubectl
from integration.kubernetes.node import PAUSE

Object = Mapping[str, object]
QUOTA: Object = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few"},
    "spec": {"hard": {"pods": "1"}},
}
"""No room for a second pod."""
LIMITS: Object = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "small"},
    "spec": {"limits": [{"type": "Container", "max": {"memory": "100Mi"}}]},
}
"""No container is as large as an executor."""


def filler(cpu: str, **spec: object) -> Object:
    """Return a pod that does nothing and asks for so many cores."""
    container = {"name": "filler", "image": PAUSE, "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "filler"},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec},
    }


def apply(kubectl: Kubectl, what: Object) -> None:
    """Create an object."""
    kubectl.apply(json.dumps(what))


def remove(kubectl: Kubectl, what: Object) -> None:
    """Delete an object, if it is there."""
    kubectl.run("delete", "--ignore-not-found", "--filename=-", stdin=json.dumps(what))


@contextmanager
def existing(kubectl: Kubectl, what: Object) -> Iterator[None]:
    """Create an object, and delete it after the block."""
    apply(kubectl, what)
    try:
        yield
    finally:
        remove(kubectl, what)
