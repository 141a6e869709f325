"""Faults that only Kubernetes has: pods are lost, late or refused, nodes are closed, drained or alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import psutil

from integration.chaos.faults import Fault, LosesExecutors, Missed
from integration.chaos.pods import Pods
from integration.kubernetes import losses
from integration.kubernetes.kubectl import Kubectl, Refused
from integration.kubernetes.node import Node
from integration.kubernetes.objects import QUOTA, apply, remove

_DRAINED_S = 90.0


class _LosesPod(LosesExecutors[Pods]):
    """One executor's pod is lost."""

    where = "kubernetes"

    how: Callable[[Kubectl, str], None]

    def lose(self, world: Pods, pod: str) -> None:
        """Let Kubernetes lose a pod. Raises Refused."""
        self.how(world.kubectl, pod)

    def strike(self, world: Pods, query: str, chance: random.Random) -> str:
        running = world.executor_pods()
        if not running:
            raise Missed("no executor's pod was running")
        return self.lose_one(world, chance.choice(running))

    def lose_one(self, world: Pods, pod: Mapping[str, Any]) -> str:
        """Lose this pod, and return its name. Raises Missed."""
        name = str(pod["metadata"]["name"])
        try:
            self.lose(world, name)
        except Refused as refused:
            raise Missed(str(refused)) from refused
        return name


class DeletePod(_LosesPod):
    name = "pod_deleted"
    how = staticmethod(losses.delete)


class KillPod(_LosesPod):
    name = "pod_killed"
    how = staticmethod(losses.kill)


class EvictPod(_LosesPod):
    name = "pod_evicted"
    how = staticmethod(losses.evict)


class FillMemory(_LosesPod):
    name = "pod_out_of_memory"
    how = staticmethod(losses.fill_memory)


class LatePod(DeletePod):
    """No node takes pods for a while: the one in the lost one's place is pending."""

    name = "pod_late"
    shortest, longest = 2.0, 20.0

    def lose(self, world: Pods, pod: str) -> None:
        for node in world.cluster.nodes:
            world.kubectl.run("cordon", node.place.name)
        super().lose(world, pod)

    def heal(self, world: Pods) -> None:
        for node in world.cluster.nodes:
            world.kubectl.run("uncordon", node.place.name)


class RefusePod(DeletePod):
    """A quota refuses the pod in the lost one's place for a while."""

    name = "pod_refused"
    shortest, longest = 2.0, 20.0

    def lose(self, world: Pods, pod: str) -> None:
        apply(world.kubectl, QUOTA)
        super().lose(world, pod)

    def heal(self, world: Pods) -> None:
        remove(world.kubectl, QUOTA)


class CordonNode(DeletePod):
    """A node takes no more pods, and an executor there is lost."""

    name = "node_cordoned"
    shortest, longest = 2.0, 20.0
    _node = ""

    def lose_one(self, world: Pods, pod: Mapping[str, Any]) -> str:
        self._node = str(pod["spec"]["nodeName"])
        world.kubectl.run("cordon", self._node)
        return f"{super().lose_one(world, pod)} on {self._node}"

    def heal(self, world: Pods) -> None:
        if self._node:
            world.kubectl.run("uncordon", self._node)


class _EndsDriver(Fault[Pods]):
    """The driver may end, and Kubernetes starts another one: each query from its checkpoint."""

    where = "kubernetes"
    repeats = True
    fails = True
    loses_policy = True
    ends_driver = True
    ends_burst = True


class DrainNode(_EndsDriver):
    """All pods leave a node, the driver's too if it is there."""

    name = "node_drained"
    shortest, longest = 1.0, 10.0
    _node: Node | None = None

    def strike(self, world: Pods, query: str, chance: random.Random) -> str:
        self._node = chance.choice(world.cluster.nodes)
        name = self._node.place.name
        flags = ("--force", "--delete-emptydir-data", f"--timeout={_DRAINED_S:.0f}s")
        try:
            world.kubectl.run("drain", name, *flags, timeout_s=2 * _DRAINED_S)
        except Refused:
            # As while its kubelet is gone.
            return f"{name}, and some pods do not leave"
        return name

    def heal(self, world: Pods) -> None:
        if self._node is not None:
            world.kubectl.run("uncordon", self._node.place.name)


class KillKubelet(Fault[Pods]):
    """A node's kubelet is gone for a while, and its containers go on."""

    name = "kubelet_killed"
    where = "kubernetes"
    shortest, longest = 1.0, 30.0
    _node: Node | None = None

    def strike(self, world: Pods, query: str, chance: random.Random) -> str:
        self._node = chance.choice(world.cluster.nodes)
        self._node.kill_kubelet()
        return self._node.place.name

    def heal(self, world: Pods) -> None:
        if self._node is not None:
            self._node.start_kubelet()


class DeleteDriverPod(_EndsDriver):
    """The driver's pod is deleted, with its grace period."""

    name = "driver_pod_deleted"

    def strike(self, world: Pods, query: str, chance: random.Random) -> str:
        name = world.process.name
        try:
            losses.delete(world.kubectl, name)
        except Refused as refused:
            raise Missed(str(refused)) from refused
        return name


class KillDriver(_EndsDriver):
    """The driver's JVM is killed, and its container is started again."""

    name = "driver_container_killed"

    def strike(self, world: Pods, query: str, chance: random.Random) -> str:
        with suppress(psutil.NoSuchProcess):
            psutil.Process(world.process.pid).kill()
            return world.process.name
        raise Missed("no driver was there")


FAULTS: tuple[type[Fault[Pods]], ...] = (
    DeletePod,
    KillPod,
    EvictPod,
    FillMemory,
    LatePod,
    RefusePod,
    CordonNode,
    DrainNode,
    KillKubelet,
    DeleteDriverPod,
    KillDriver,
)
