"""What the plugin cannot do on earlier versions of Spark: for `doctor` and the tables of versions."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.installation import Spark


@frozen
class Lack:
    """Something that versions of Spark before `since` are without, in words that stand within a sentence."""

    since: tuple[int, int]
    what: str
    why: str
    instead: str
    part: str | None = None
    """The name of the shim's part (Part.scala) that their jars do not have, if it is one of its own."""

    @property
    def first(self) -> str:
        """The first version that has it, such as "4.2"."""
        return ".".join(map(str, self.since))

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.instead}"


LACKS = (
    Lack(
        since=(4, 2),
        what="moving state to another partition count, and with it checkpoint format 2 by default",
        why="Spark re-partitions state only since 4.2",
        instead="a new stateful query keeps its count, and so begins with up to four times as many "
        "partitions as slots",
        part="rescales of state",
    ),
    Lack(
        since=(4, 1),
        what="adaptive execution in streams without state",
        why="it is Spark's, which turns it off in all streams before 4.1",
        instead="each partition of a shuffle is read by one task, however many bytes it has",
    ),
    Lack(
        since=(4, 0),
        what="a say in how many tasks read the files of a stream",
        why="their scans do not tell of which source they are before 4.0",
        instead="neither its bounds nor the slots count",
    ),
)


def lacks_of(spark: Spark) -> tuple[Lack, ...]:
    """Return what a Spark is without, in the order of `LACKS`; nothing for the newest ones."""
    major, minor = map(int, spark.minor.split("."))
    return tuple(lack for lack in LACKS if (major, minor) < lack.since)
