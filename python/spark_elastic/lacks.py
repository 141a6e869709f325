"""What the plugin cannot do on earlier Spark versions, for `doctor`, the overview and the version tables."""

from __future__ import annotations

import re
from collections.abc import Collection

from attrs import frozen

from spark_elastic.installation import Spark


@frozen
class Lack:
    """A feature that Spark versions before `since`, such as "4.2", lack.

    The texts are fragments that fit into a sentence.
    """

    since: str
    what: str
    why: str
    instead: str
    part: str | None = None
    """The shim's part (Part.scala) that is missing from their jars, None if the feature is not a part."""

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
    """Return whether this Spark can move state to another partition count; True for an unknown version."""
    return all(lack.part != _REPARTITIONING for lack in lacks_of(spark))


def lacks_of(spark: Spark, *, off: Collection[str] = ()) -> tuple[Lack, ...]:
    """Return what a Spark version lacks, in the order of `LACKS`, without the parts named in `off`.

    The result is empty for the newest versions, and for an unknown version.
    """
    release = _release(spark.version)
    if not release:
        return ()
    return tuple(lack for lack in LACKS if release < _release(lack.since) and lack.part not in off)


def _release(version: str) -> tuple[int, ...]:
    """Return the major and minor version, or an empty tuple if there are no two numbers."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else ()
