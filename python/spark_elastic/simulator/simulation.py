"""One run of a scenario with one policy, and several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from spark_elastic.core.scheduler import Scheduler
from spark_elastic.query_bounds import PREFIX, is_bound
from spark_elastic.settings import load
from spark_elastic.simulator.contenders import Contender, contender
from spark_elastic.simulator.demand import Demand, demand
from spark_elastic.simulator.driver import Driver
from spark_elastic.simulator.figures import Figures, figures
from spark_elastic.simulator.lag import Lag, lag
from spark_elastic.simulator.loads.load import Load
from spark_elastic.simulator.outside import Outside
from spark_elastic.simulator.record import Notes
from spark_elastic.simulator.scenario import Scenario


@frozen(kw_only=True)
class Result:
    """A run: what it was of, what was noted, and what it comes to."""

    policy: str
    scenario: Scenario
    loads: Mapping[str, Load]
    demand: Demand
    notes: Notes
    lags: Mapping[str, Lag]
    figures: Figures


def simulate(scenario: Scenario, policies: Sequence[str]) -> Iterator[Result]:
    """Run a scenario once with each policy; loads and chance are the same for all.

    Raises ValueError for a load, a policy or settings that cannot be; settings errors are SettingsError.
    """
    loads = scenario.loads()
    needed = demand(scenario, loads)
    contenders = [contender(text, scenario, needed) for text in policies]
    scenarios = [_settled(scenario, one) for one in contenders]
    for one, settled in zip(contenders, scenarios, strict=True):
        yield run(settled, one, loads, needed)


def run(scenario: Scenario, one: Contender, loads: Mapping[str, Load], needed: Demand) -> Result:
    """Run a scenario with one policy."""
    driver = Driver(scenario, Scheduler(load(scenario.settings).core()), loads)
    if one.rival is not None:
        Outside(one.rival, driver).begin()
    driver.run()
    driver.scheduler.validate()
    lags = {
        query: lag(notes.commits, notes.first_row, scenario.max_lag_s)
        for query, notes in driver.notes.queries.items()
    }
    return Result(
        policy=one.name,
        scenario=scenario,
        loads=loads,
        demand=needed,
        notes=driver.notes,
        lags=lags,
        figures=figures(driver.notes, lags, needed, scenario.end_ms),
    )


def _settled(scenario: Scenario, one: Contender) -> Scenario:
    """Return the scenario with the settings that the policy needs. Raises SettingsError."""
    settings = {**scenario.settings, **one.settings}
    if one.rival is not None:
        settings = _without_bounds(settings) | _first_bounds(scenario)
    load(settings)
    cluster = scenario.cluster
    if one.initial is not None:
        cluster = evolve(cluster, initial=min(one.initial, cluster.quota))
    return evolve(scenario, settings=settings, cluster=cluster)


def _without_bounds(settings: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is declared for queries: a rival says that, or nobody does."""
    return {name: value for name, value in settings.items() if not is_bound(name)}


def _first_bounds(scenario: Scenario) -> dict[str, str]:
    """Return bounds that make each query begin with its part of what is there, as where nobody scales."""
    cluster, queries = scenario.cluster, scenario.queries
    each = max(1, cluster.initial * cluster.cores // len(queries))
    return {f"{PREFIX}{query.name}.upperBound": str(each) for query in queries}
