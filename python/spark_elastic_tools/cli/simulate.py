"""`spark-elastic simulate`: show how the policies would handle a load."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from attrs import evolve

from spark_elastic.core.events import PolicyFileChanged
from spark_elastic.core.keys import called
from spark_elastic.core.keys.application import POLICY_FILE
from spark_elastic.core.keys.key import PREFIX
from spark_elastic.policy_file import PolicyFileError, load_policy
from spark_elastic.runtime.entries import read_journal
from spark_elastic.settings import SettingsError
from spark_elastic_lab.simulator.contenders import OWN, RIVALS
from spark_elastic_lab.simulator.heard import AsRecorded, Heard
from spark_elastic_lab.simulator.load import SHAPES
from spark_elastic_lab.simulator.picture import NoMatplotlibError, check_matplotlib, picture
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.recorded import heard, scenario_of
from spark_elastic_lab.simulator.recorded_run import recorded_run
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.scenario_file import ScenarioError, read_scenario
from spark_elastic_lab.simulator.simulation import Result
from spark_elastic_lab.simulator.simulation import simulate as run
from spark_elastic_lab.simulator.table import LEGEND, as_data, failures, table

_FAILED, _WRONG = 1, 2


@click.command(
    epilog=f"Policies: {', '.join((*OWN, *RIVALS))}, or your own as package.module:Class. "
    f"Loads: {', '.join(SHAPES)}, or a file NAME.csv of seconds and rows per second. "
    "Rules of others and loads take parameters: fixed:executors=8, cosine:mean=50000,amplitude=20000."
)
@click.argument("scenario", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--journal",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Instead of SCENARIO: the loads, costs and settings of a decision journal.",
)
@click.option(
    "--policy", "policies", multiple=True, help="The policy that scales; repeat to compare. [as-set]"
)
@click.option("--compare", is_flag=True, help="Compare all policies.")
@click.option("--load", "loads", multiple=True, help="NAME=LOAD: a query and its load.")
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="Simulated time.")
@click.option("--seed", type=int, help="Seed of everything random.")
@click.option("--max-lag", type=click.FloatRange(0, min_open=True), help="The objective (s).")
@click.option("--conf", "settings", multiple=True, help="KEY=VALUE: a setting of Spark or spark-elastic.")
@click.option(
    "--svg", type=click.Path(path_type=Path, file_okay=False), help="Folder for pictures (needs matplotlib)."
)
@click.option("--json", "as_json", is_flag=True, help="Print the metrics as one JSON object.")
def simulate(
    scenario: Path | None,
    journal: Path | None,
    policies: tuple[str, ...],
    compare: bool,
    loads: tuple[str, ...],
    hours: float | None,
    seed: int | None,
    max_lag: float | None,
    settings: tuple[str, ...],
    svg: Path | None,
    as_json: bool,
) -> None:
    """Run the scheduler against a simulated Spark and report the results.

    SCENARIO is a YAML file with queries, cluster and settings; without it, --load defines the queries.
    Options override the file. The same scenario and seed give the same metrics, to the last digit. The exit
    code is 0, 1 if one of your own policies failed when it was asked, or 2 if an option or a file is invalid.
    """
    sys.path.insert(0, "")  # finds a policy in the current folder that is not installed yet
    try:
        told = None if journal is None else heard(entry for _, entry in read_journal(journal))
        what = _scenario(_read(scenario, told), loads, settings)
        given: dict[str, Any] = {"hours": hours, "seed": seed, "max_lag_s": max_lag}
        what = evolve(what, **{name: value for name, value in given.items() if value is not None})
        if svg is not None:  # fails before the work is done, not after it
            check_matplotlib()
            svg.mkdir(parents=True, exist_ok=True)
        names = (*policies, *((*OWN, *RIVALS) if compare else ())) or ("as-set",)
        results = _run(what, tuple(dict.fromkeys(names)), quiet=as_json)
        if told is not None:
            was = evolve(scenario_of(told), max_lag_s=what.max_lag_s, hours=what.hours)
            results.insert(0, recorded_run(told, was))
        if svg is not None:
            _draw(results, svg)
    except (ScenarioError, SettingsError, NoMatplotlibError, ValueError, OSError) as error:
        click.echo(f"spark-elastic simulate: {error}", err=True)
        sys.exit(_WRONG)
    finally:
        sys.path.remove("")
    if as_json:
        click.echo(json.dumps(as_data(results)))
    else:
        click.echo(table(results))
        click.echo(f"\n{LEGEND}.")
    if _say_failures(results):
        sys.exit(_FAILED)


def _read(file: Path | None, told: Heard | None) -> Scenario | None:
    if file is not None and told is not None:
        raise ScenarioError("there are a scenario and a journal: name one of them")
    if told is not None:
        return scenario_of(told)
    return None if file is None else read_scenario(file.read_text(encoding="utf-8"))


def _scenario(read: Scenario | None, loads: tuple[str, ...], settings: tuple[str, ...]) -> Scenario:
    if read is None and not loads:
        raise ScenarioError("there is nothing to simulate: name a scenario, or a load with --load counts=web")
    queries = dict(_pair(text, "--load", "counts=web") for text in loads)
    if read is not None:
        scenario = _without_recorded(read, queries)
        kept = [
            evolve(query, load=queries.pop(query.name)) if query.name in queries else query
            for query in scenario.queries
        ]
    else:
        kept, scenario = [], Scenario(queries=(QuerySpec(name="unnamed"),))
    new = [QuerySpec(name=name, load=load) for name, load in queries.items()]
    conf = dict(_pair(text, "--conf", "spark.elastic.schedulerMode=adaptive") for text in settings)
    # The file that a journal names was read when it was written: the journal has what it said.
    named = conf if scenario.recorded is not None else {**scenario.settings, **conf}
    scenario = evolve(scenario, queries=(*kept, *new), settings={**scenario.settings, **conf})
    files = [value for name, value in named.items() if called(name.removeprefix(PREFIX)) is POLICY_FILE]
    return _with_policy_file(scenario, Path(files[-1])) if files else scenario


def _with_policy_file(scenario: Scenario, path: Path) -> Scenario:
    """Let the policy file at a path apply from the start, instead of those that were recorded."""
    try:
        event = load_policy(path.read_bytes()).event("file", 0, str(path))
    except PolicyFileError as error:
        raise ScenarioError(f"{path}: {error}") from error
    recorded = scenario.recorded or AsRecorded()
    others = [one for one in recorded.said if not isinstance(one[1], PolicyFileChanged)]
    return evolve(scenario, recorded=evolve(recorded, said=((0, event), *others)))


def _without_recorded(scenario: Scenario, queries: Iterable[str]) -> Scenario:
    """Drop the recorded data of these queries: with another load, it no longer applies."""
    known = scenario.recorded
    if known is None:
        return scenario
    left = {name: query for name, query in known.queries.items() if name not in set(queries)}
    return evolve(scenario, recorded=evolve(known, queries=left))


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ScenarioError(f"'{text}' is no name and value: type {option} {example}")
    return name, value


def _run(scenario: Scenario, policies: tuple[str, ...], *, quiet: bool) -> list[Result]:
    results = []
    for result in run(scenario, policies):
        results.append(result)
        if not quiet:
            click.echo(f"{result.policy}: done", err=True)
    return results


def _say_failures(results: list[Result]) -> bool:
    """Report which policies failed when they were asked, and return whether any did."""
    lines = [(result.policy, line) for result in results for line in failures(result)]
    for contender, line in lines:
        whose = "" if line.startswith(f"{contender} ") else f"{contender}: "
        click.echo(f"spark-elastic simulate: {whose}{line}", err=True)
    return bool(lines)


def _draw(results: list[Result], folder: Path) -> None:
    for result in results:
        name = "".join(letter if letter.isalnum() or letter in "-=.," else "-" for letter in result.policy)
        file = folder / f"{name}.svg"
        file.write_text(picture(result), encoding="utf-8")
        click.echo(f"{file}", err=True)
