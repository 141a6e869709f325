"""The inputs of a simulation: queries and batch jobs, the cluster, the settings, and the length."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen
from attrs.validators import and_, gt, le

from spark_elastic_lab.simulator.batches import BatchSpec
from spark_elastic_lab.simulator.cluster import ClusterSpec
from spark_elastic_lab.simulator.heard import AsRecorded
from spark_elastic_lab.simulator.load import Load, load_of
from spark_elastic_lab.simulator.query import QuerySpec

_MOST_HOURS = 10 * 366 * 24


@frozen(kw_only=True)
class Scenario:
    """Everything that a simulation depends on.

    `hours` is its length, at most ten years; `seed` determines everything random. `settings` are those of
    Spark and of spark-elastic, by their full names. `recorded` holds the other properties of the run that the
    scenario was built from, None if there was none. `max_lag_s` is the objective: no row should wait longer
    (s). Raises ValueError for invalid values.
    """

    queries: tuple[QuerySpec, ...] = ()
    batch: tuple[BatchSpec, ...] = ()
    cluster: ClusterSpec = field(factory=ClusterSpec)
    settings: Mapping[str, str] = field(factory=dict)
    recorded: AsRecorded | None = None
    hours: float = field(default=24.0, validator=and_(gt(0), le(_MOST_HOURS)))
    seed: int = 1
    max_lag_s: float = field(default=30.0, validator=and_(gt(0), le(_MOST_HOURS * 3_600)))

    def __attrs_post_init__(self) -> None:
        names = [query.name for query in self.queries]
        if not names and not self.batch:
            raise ValueError("a scenario without a query or a batch job: name at least one")
        for what, all_names in (("queries", names), ("batch jobs", [one.name for one in self.batch])):
            for name in all_names:
                if all_names.count(name) > 1:
                    raise ValueError(f"two {what} are called '{name}': give each a name of its own")

    @property
    def end_ms(self) -> int:
        """The length in ms."""
        return round(self.hours * 3_600_000)

    @property
    def seconds(self) -> int:
        """The length in s, rounded up."""
        return -(-self.end_ms // 1_000)

    @property
    def spark_conf(self) -> dict[str, str]:
        """Spark's own settings, as the scheduler sees them."""
        return {
            "spark.master": "k8s://simulated",
            "spark.decommission.enabled": str(self.cluster.decommissions).lower(),
            **(self.recorded.spark if self.recorded else {}),
            "spark.executor.cores": str(self.cluster.cores),
            **self.settings,
        }

    def loads(self) -> Mapping[str, Load]:
        """Return the load of each query. Raises ValueError for an invalid description."""
        return {
            query.name: query.load
            if isinstance(query.load, Load)
            else load_of(query.load, self.seconds, f"{self.seed}:{query.name}")
            for query in self.queries
        }
