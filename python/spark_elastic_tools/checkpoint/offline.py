"""The shim's half, which reads and writes state: `OfflineCheckpoint` in the jar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_elastic_tools.checkpoint.contents import Checksum, Contents, Part
from spark_elastic_tools.checkpoint.judge import Target
from spark_elastic_tools.checkpoint.session import java_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What is true of all rows, whichever partition they are in: decimals, since a sum of hashes exceeds 64 bits.
_OF_A_ROW = (
    "spark_partition_id() AS part",
    "octet_length(key_bytes) + coalesce(octet_length(value_bytes), 0) AS bytes",
    "xxhash64(key_bytes, value_bytes, column_family_name) AS hash",
)
_OF_A_PART = (
    "count(1) AS rows",
    "sum(bytes) AS bytes",
    "sum(CAST(hash AS DECIMAL(20, 0))) AS total",
    "bit_xor(hash) AS combined",
)


class Offline:
    """The state of one checkpoint, in a session whose class path has the jar. All methods raise JavaError.

    `root` is the whole name of its folder.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root

    def rewrite(self, target: Target) -> int:
        """Write the state of the last committed batch as another batch, and return its number.

        If the next batch has begun, the state takes the place of that of the last committed one instead, and
        this returns the number of that one.
        """
        with java_errors():
            return int(
                self._jvm.rewrite(
                    self._spark._jsparkSession, self._root, target.partitions, target.state_format
                )
            )

    def recover(self) -> bool:
        """Complete or undo a change of state that was cut short; return whether there was one."""
        with java_errors():
            return bool(self._jvm.recover(self._spark._jsparkSession, self._root))

    def undo(self, batch: int) -> None:
        """Take back a change of its state, complete or not, with all batches after it.

        `batch` is the one after the last that was committed before the change.
        """
        with java_errors():
            self._jvm.undo(self._spark._jsparkSession, self._root, batch)

    def forget(self) -> None:
        """Delete what is kept of the state before it was rewritten."""
        with java_errors():
            self._jvm.forget(self._spark._jsparkSession, self._root)

    def fill_sink_log(self, folder: str, batch: int) -> None:
        """Give the log of a file sink in its `folder` the entry of a batch that it has not had."""
        with java_errors():
            self._jvm.fillSinkLog(self._spark._jsparkSession, folder, batch)

    def measure(self, operator: int, store: str, partitions: int) -> Contents:
        """Read a store as of the last committed batch, and count what its partitions hold."""
        from pyspark.sql.functions import expr

        with java_errors():
            rows = self._rows(operator, store).selectExpr(*_OF_A_ROW)
            found = rows.groupBy("part").agg(*map(expr, _OF_A_PART)).collect()
        parts = [Part() for _ in range(max([partitions, *(row.part + 1 for row in found)]))]
        combined = 0
        for row in found:
            parts[row.part] = Part(row["rows"], row["bytes"])
            combined ^= row["combined"]
        checksum = Checksum(
            sum(part.rows for part in parts), sum(int(row["total"]) for row in found), combined
        )
        return Contents(operator, store, tuple(parts), checksum)

    def _rows(self, operator: int, store: str) -> DataFrame:
        """Return all rows of a store: the bytes of keys and values, and their column families."""
        from pyspark.sql import DataFrame

        rows = self._jvm.rows(self._spark._jsparkSession, self._root, operator, store)
        return DataFrame(rows, self._spark)

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm.org.apache.spark.sql.elastic.OfflineCheckpoint  # type: ignore[union-attr]
