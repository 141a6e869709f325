"""What the plugin cannot do on earlier Sparks: for `doctor`, the overview and the tables of versions."""

from __future__ import annotations

import re
from collections.abc import Collection

from attrs import frozen

from spark_elastic.installation import Spark


@frozen
class Lack:
    """Something that versions of Spark before `since`, such as "4.2", lack.

    The words stand within a sentence.
    """

    since: str
    what: str
    why: str
    instead: str
    part: str | None = None
    """The name of the shim's part (Part.scala) that their jars do not have, if it is one of its own."""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.instead}"


_REPARTITIONING = "rescales of state"

LACKS = (
    Lack(
        since="4.2",
        what="moving state to another partition count, and with it checkpoint format 2 by default",
        why="Spark re-partitions state only since 4.2",
        instead="a new stateful query keeps its count, and so begins with up to four times as many "
        "partitions as slots",
        part=_REPARTITIONING,
    ),
    Lack(
        since="4.1",
        what="adaptive execution in streams without state",
        why="it is Spark's, which turns it off in all streams before 4.1",
        instead="each partition of a shuffle is read by one task, however many bytes it has",
    ),
    Lack(
        since="4.0",
        what="bounds for the number of tasks that read a file stream",
        why="before 4.0 Spark's scans do not say which source they belong to",
        instead="such files are read as in plain Spark",
    ),
)


def repartitions(spark: Spark) -> bool:
    """Say whether this Spark can move state to another partition count; of an unknown version that it can."""
    return all(lack.part != _REPARTITIONING for lack in lacks_of(spark))


def lacks_of(spark: Spark, *, off: Collection[str] = ()) -> tuple[Lack, ...]:
    """Return what a Spark lacks, in the order of `LACKS`, but for the parts whose names are in `off`.

    Nothing for the newest ones, and for a version that is not known.
    """
    release = _release(spark.version)
    if not release:
        return ()
    return tuple(lack for lack in LACKS if release < _release(lack.since) and lack.part not in off)


def _release(version: str) -> tuple[int, ...]:
    """Return the first two numbers, none if there are not two."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else ()
