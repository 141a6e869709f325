"""What is simulated: queries and batch jobs, the cluster, the settings, and how long."""

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

    `hours` is how long it runs, ten years at most, `seed` what all chance in it follows from. `settings` are
    those of Spark and of spark-elastic, by their full names; `recorded` is what else is known of the run
    that the scenario was made of, None: it was made of none. `max_lag_s` is the objective: no row is to wait
    for longer (s).
    Raises ValueError for what cannot be.
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
        """How long it runs in ms."""
        return round(self.hours * 3_600_000)

    @property
    def seconds(self) -> int:
        """How long it runs in s, rounded up."""
        return -(-self.end_ms // 1_000)

    @property
    def spark_conf(self) -> dict[str, str]:
        """Spark's own settings, as the scheduler is shown them."""
        return {
            "spark.master": "k8s://simulated",
            "spark.decommission.enabled": str(self.cluster.decommissions).lower(),
            **(self.recorded.spark if self.recorded else {}),
            "spark.executor.cores": str(self.cluster.cores),
            **self.settings,
        }

    def loads(self) -> Mapping[str, Load]:
        """Return the load of each query. Raises ValueError for a text that describes none."""
        return {
            query.name: query.load
            if isinstance(query.load, Load)
            else load_of(query.load, self.seconds, f"{self.seed}:{query.name}")
            for query in self.queries
        }
