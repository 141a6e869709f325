"""Run a scenario with one policy, or with several to compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from spark_elastic import policy_options
from spark_elastic.core.events import PolicyFileChanged
from spark_elastic.core.keys import called, called_for_query, key
from spark_elastic.core.keys.application import ADVISE_ONLY
from spark_elastic.core.keys.key import Key
from spark_elastic.core.keys.policies import EXCLUDED, POLICY, SCHEDULE, WINDOWS, short
from spark_elastic.core.keys.queries import BOUNDS
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.query_settings import PREFIX, split
from spark_elastic.settings import SettingsError, load
from spark_elastic_lab.simulator.contenders import Contender, contender
from spark_elastic_lab.simulator.demand import Demand, demand
from spark_elastic_lab.simulator.driver import Driver
from spark_elastic_lab.simulator.heard import AsRecorded, Said
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.outside import Outside
from spark_elastic_lab.simulator.record import Notes
from spark_elastic_lab.simulator.rivals.rival import REACTIVE
from spark_elastic_lab.simulator.run_metrics import Lag, RunMetrics, lag, run_metrics
from spark_elastic_lab.simulator.scenario import Scenario


@frozen(kw_only=True)
class Result:
    """A run: its inputs, its records and its metrics."""

    policy: str
    scenario: Scenario
    loads: Mapping[str, Load]
    demand: Demand
    notes: Notes
    lags: Mapping[str, Lag]
    metrics: RunMetrics


def simulate(scenario: Scenario, policies: Sequence[str]) -> Iterator[Result]:
    """Run a scenario once with each policy, with the same loads and the same random numbers.

    Raises ValueError for an invalid load, policy or setting; for settings it is a SettingsError.
    """
    loads = scenario.loads()
    needed = demand(scenario, loads)
    contenders = [contender(text, scenario, needed) for text in policies]
    _check_options(scenario, contenders)
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
        metrics=run_metrics(driver.notes, lags, needed, scenario.end_ms),
    )


def _settled(scenario: Scenario, one: Contender) -> Scenario:
    """Return the scenario with the settings that the policy needs. Raises SettingsError."""
    settings = _settings(scenario, one)
    if one.settings:  # it brings its own policy, so options of others belong to other contenders
        settings = policy_options.only(settings, _named(settings))
    load(settings)
    cluster = scenario.cluster
    if one.initial is not None:
        cluster = evolve(cluster, initial=min(one.initial, cluster.quota))
    if not one.settings and one.rival is None:
        return evolve(scenario, settings=settings, cluster=cluster)
    # The scaling differs from the recorded run.
    was, recorded, executors = scenario.recorded, None, tuple[tuple[int, int], ...]()
    if was is not None and one.rival is None:
        recorded = AsRecorded(said=tuple(_files(was.said)))
        if one.settings == REACTIVE:
            executors = was.executors  # no one asks for others
    return evolve(scenario, settings=settings, cluster=evolve(cluster, recorded=executors), recorded=recorded)


def _files(said: Iterable[tuple[int, Said]]) -> Iterator[tuple[int, Said]]:
    """Yield the policy files, without the policies that they name: each contender sets its own."""
    for at, event in said:
        if isinstance(event, PolicyFileChanged):
            own = {name: _of_others(settings) for name, settings in event.settings.items()}
            yield at, evolve(event, default_settings=_of_others(event.default_settings), settings=own)


def _of_others(settings: Mapping[str, str]) -> dict[str, str]:
    """Leave out the policy of a query: each contender sets its own."""
    return {name: value for name, value in settings.items() if called_for_query(name) is not POLICY}


def _settings(scenario: Scenario, one: Contender) -> dict[str, str]:
    """Return the settings for a policy's run, without those of other policies."""
    settings = {**(_unscaled(scenario.settings) if one.settings else scenario.settings), **one.settings}
    if one.rival is not None:
        settings = _without_bounds(settings) | _first_bounds(scenario)
    if one.settings and SCHEDULE not in one.settings.get(POLICY.full_name, ""):
        settings = _without_schedule(settings)
    return settings


def _check_options(scenario: Scenario, contenders: Sequence[Contender]) -> None:
    """Check that each option belongs to a policy of some contender. Raises SettingsError."""
    named = {name for one in contenders for name in _named(_settings(scenario, one))}
    named |= _named(_without_schedule(scenario.settings))
    _, wrong = policy_options.read(scenario.settings, named, more=False)
    if wrong:
        raise SettingsError(wrong)


def _named(settings: Mapping[str, str]) -> set[str]:
    """Return the short names of the custom policies in the settings. Raises SettingsError."""
    return {short(name) for name in load(policy_options.only(settings, ())).custom_policies}


def _unscaled(settings: Mapping[str, str]) -> dict[str, str]:
    """Leave out the policy and advise-only mode: each contender sets these itself."""
    return {name: value for name, value in settings.items() if _key(name) not in (POLICY, ADVISE_ONLY)}


def _without_bounds(settings: Mapping[str, str]) -> dict[str, str]:
    """Leave out the declared bounds of queries: a rival sets them, or they are unset."""
    return {name: value for name, value in settings.items() if _key(name) not in BOUNDS}


def _without_schedule(settings: Mapping[str, str]) -> dict[str, str]:
    """Leave out windows and periods: only scheduled policies use them."""
    return {name: value for name, value in settings.items() if _key(name) not in (WINDOWS, EXCLUDED)}


def _key(name: str) -> Key[Any] | None:
    """Return the key of a setting, for the application or a query."""
    if not name.startswith(PREFIX):
        return called(name.removeprefix(key.PREFIX))
    divided = split(name.removeprefix(PREFIX))
    return None if divided is None else divided[1]


def _first_bounds(scenario: Scenario) -> dict[str, str]:
    """Return bounds that give each query its share of the initial slots, as without scaling."""
    cluster, queries = scenario.cluster, scenario.queries
    each = max(1, cluster.initial * cluster.cores // max(1, len(queries)))
    return {f"{PREFIX}{query.name}.upperBound": str(each) for query in queries}
