"""The metrics of a recorded run, to compare with simulations of it."""

from __future__ import annotations

from attrs import evolve

from spark_elastic_lab.simulator.demand import demand
from spark_elastic_lab.simulator.heard import Heard, HeardQuery
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.record import Commit, Notes, QueryNotes
from spark_elastic_lab.simulator.run_metrics import lag, run_metrics
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.simulation import Result


def recorded_run(found: Heard, scenario: Scenario) -> Result:
    """Return the recorded run as if it had been simulated; `scenario` is the one built from it.

    If the scenario is shorter than the run, the run is cut there; if it is longer, the name says how long the
    run is. A journal does not hold the cost of an executor before it has registered: these hours are left
    out.
    """
    end = min(found.now, scenario.end_ms)
    name = "recorded" if end == scenario.end_ms else f"recorded, {end / 3_600_000:.4g} h"
    scenario = evolve(scenario, hours=end / 3_600_000)
    loads = scenario.loads()
    there, wanted = found.there.until(end), found.wanted.until(end)
    notes = Notes(
        there=there,
        paid=there,
        wanted=wanted if wanted.times else there,
        lost=sum(at <= end for at in found.lost),
    )
    for query in found.queries.values():
        if query.name in loads:
            notes.queries[query.name] = _notes(query, loads[query.name], found.begin, end)
    most = scenario.max_lag_s
    lags = {name: lag(kept.commits, kept.first_row, most) for name, kept in notes.queries.items()}
    needed = demand(scenario, loads)
    return Result(
        policy=name,
        scenario=scenario,
        loads=loads,
        demand=needed,
        notes=notes,
        lags=lags,
        metrics=run_metrics(notes, lags, needed, scenario.end_ms),
    )


def _notes(query: HeardQuery, load: Load, begin: int, end: int) -> QueryNotes:
    """Return the records of a query, with a commit for each of its micro-batches and one for the end."""

    def since(rows: int) -> float:
        return load.when(rows + 1) * 1_000

    commits, took, read = [], [], 0
    for sample in query.samples:
        at = sample.at - begin
        if at > end:
            break
        before, read = read, read + sample.input_rows
        arrived = max(load.arrived(at / 1_000), read)
        commits.append(Commit(at, since(before), since(read), int(arrived) - before, int(arrived) - read))
        took.append(sample.duration_ms)
    left = max(0, int(load.arrived(end / 1_000)) - read)
    commits.append(Commit(end, since(read), since(read), left, left))
    return evolve(
        query.notes,
        partitions=query.notes.partitions.until(end),
        rescales=[rescaled for rescaled in query.notes.rescales if rescaled.at <= end],
        first_row=since(0),
        commits=commits,
        took=took,
    )
