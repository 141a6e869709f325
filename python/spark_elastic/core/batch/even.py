"""Splitting by count, where sizes are of no help: every task gets about as many indexes as any other."""

from __future__ import annotations

from spark_elastic.core.batch.spans import Block, Span


def split_evenly(count: int, tasks: int) -> list[Span]:
    """Split `count` indexes between tasks. Raises ValueError unless each task can have one."""
    if not 1 <= tasks <= count:
        raise ValueError(f"{count} cannot be split between {tasks} tasks: at least 1 each is needed")
    return [(task * count // tasks, (task + 1) * count // tasks) for task in range(tasks)]


def fed_by(producer: int, producers: int, tasks: int) -> Span:
    """Say which tasks read from one of fewer producers."""
    return -(-producer * tasks // producers), -(-(producer + 1) * tasks // producers)


def split_pointwise(producers: int, tasks: int, subpartitions: int | None) -> list[list[Block]]:
    """Split the output of producers between neighbouring tasks.

    `subpartitions` is what each producer has written, None: one for each task that reads from it. Raises
    ValueError if a producer has fewer than tasks that read from it.
    """
    if tasks <= producers:
        whole = (0, 1 if subpartitions is None else subpartitions)
        return [[Block(span, whole)] for span in split_evenly(producers, tasks)]
    reads: list[list[Block]] = []
    for producer in range(producers):
        first, end = fed_by(producer, producers, tasks)
        parts = split_evenly(end - first if subpartitions is None else subpartitions, end - first)
        # By the task's own number, so the first task of a producer need not have its first part.
        reads += [[Block((producer, producer + 1), parts[task % len(parts)])] for task in range(first, end)]
    return reads


def split_broadcast(partitions: int, subpartitions: int, tasks: int, *, single: bool) -> list[list[Block]]:
    """Let every task read everything; `single` says that one subpartition holds it all.

    Raises ValueError if `single` and there is more than one.
    """
    if single and subpartitions != 1:
        raise ValueError(f"one subpartition should hold everything, and there are {subpartitions}")
    return [[Block((0, partitions), (0, subpartitions))] for _ in range(tasks)]
