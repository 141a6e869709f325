"""How a query in a scene gets into a state."""

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
