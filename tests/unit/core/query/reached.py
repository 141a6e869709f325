"""Helpers that bring a query in a scene into a state."""

from __future__ import annotations

from tests.unit.core.builder import Scene


def waiting(scene: Scene) -> None:
    scene.start()
    scene.submit()


def creating(scene: Scene) -> None:
    scene.start(2)
    scene.submit()


def executing(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)


def restarting(scene: Scene) -> None:
    executing(scene)
    scene.executor("1", cores=2)
    scene.until_rescale()


def rescaling(scene: Scene) -> None:
    """Bring a query with 2 partitions on 2 slots to an ordered rescale to 4 partitions on 4 slots."""
    executing(scene)
    scene.batches(900, 312, 312, 312, partitions=2)
    scene.executor("1", cores=2)
    scene.until_rescale()


def rescaled(scene: Scene) -> None:
    """Rescale a query from 2 partitions on 2 slots to 4 partitions on 4 slots."""
    rescaling(scene)
    scene.rescaled()
