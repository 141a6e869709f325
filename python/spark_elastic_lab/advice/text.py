"""Advice as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from spark_elastic.core.reasons.reason import duration, size
from spark_elastic_lab.advice.advice import Advice
from spark_elastic_lab.advice.queries import QueryReport
from spark_elastic_lab.advice.trigger import Trigger
from spark_elastic_lab.advice.what_if import Outcome, WhatIf

_WIDTH = 100
_STAGES = 5
_COLUMNS = 3
NAMES = {"recorded": "as it ran", "declared": "bounds"}
"""The names of runs, where they are not those of their policies."""


def as_text(advice: Advice, lines: Mapping[str, str] | None) -> str:
    """Return the whole advice; `lines` are the settings that turn the plugin on, None if unknown."""
    return "\n".join(part.rstrip() for part in _parts(advice, lines))


def _parts(advice: Advice, lines: Mapping[str, str] | None) -> Iterator[str]:
    title = f"{advice.name or advice.log} ({advice.application or 'no id'})"
    yield f"{title}: Spark {advice.spark or '?'}, {duration(advice.hours * 3_600_000)}"
    busy = "" if advice.busy is None else f", {advice.busy:.0%} of the slots' time with a task"
    yield (
        f"  {span(advice.executors)} executors, {span(advice.slots)} slots, "
        f"{advice.executor_hours:.3g} executor-hours{money(advice.core_hours, advice.price)}{busy}"
    )
    for query in advice.queries:
        yield ""
        yield from _query(query)
    if advice.batch.shuffles:
        yield ""
        yield from _batch(advice)
    yield ""
    if advice.what_if is not None:
        yield from _what_if(advice.what_if, advice.price)
    else:
        yield f"No what-if: {advice.why_not}."
    yield ""
    yield from _proposal(advice, lines)
    yield ""
    yield "What this log cannot tell"
    for text in (
        *advice.unsure,
        *(f"{query.name}: {text}" for query in advice.queries for text in query.unsure),
    ):
        yield from _item(text)


def _query(query: QueryReport) -> Iterator[str]:
    state = f"state in {query.store}" if query.store else "no state"
    yield f"Query {query.name}: {state}, {trigger_text(query.trigger)}"
    yield (
        f"  micro-batches  {query.batches}; median {duration(query.median_ms)}, "
        f"95 % within {duration(query.p95_ms)}, longest {duration(query.longest_ms)}"
    )
    if query.triggers:
        share = query.missed / query.triggers
        passed = f"{query.missed} of {query.triggers} ({share:.0%})"
        yield f"  triggers       {passed} passed while a micro-batch ran"
    yield f"  partitions     {query.partitions or '?'} on {span(query.slots)} slots{_empty(query)}"
    if query.stateful:
        yield (
            f"  state          {query.state_rows:,} rows, {size(query.state_bytes)}; per partition "
            f"{query.state_rows_per_partition:,.0f} rows, {size(round(query.state_bytes_per_partition))}"
        )
    if query.idle is not None and query.driver is not None:
        yield (
            f"  slots          {query.idle:.0%} without a task of it while a micro-batch ran; "
            f"{query.driver:.0%} of its time no stage ran"
        )
    if query.error:
        yield from _item(f"it failed: {query.error}")
    for finding in query.findings:
        yield from _item(finding.text)
    if not query.findings:
        yield "  nothing found that is worth a change"


def _empty(query: QueryReport) -> str:
    return (
        "" if query.empty is None else f"; {query.tasks} tasks after shuffles, {query.empty:.0%} without rows"
    )


def trigger_text(trigger: Trigger) -> str:
    """Describe a trigger."""
    if trigger.known == "unknown":
        return "trigger unknown"
    if not trigger.interval_ms:
        return "no trigger interval"
    return f"trigger {duration(trigger.interval_ms)}"


def _batch(advice: Advice) -> Iterator[str]:
    batch = advice.batch
    share = batch.lost_ms / batch.wall_ms if batch.wall_ms else 0
    yield f"Batch: {batch.executions} SQL executions, {batch.stages} stages"
    yield from _item(
        f"{batch.shuffles} stages that read a shuffle took {duration(batch.wall_ms)}, of which "
        f"{duration(batch.lost_ms)} ({share:.0%}) were lost to too many, too few or uneven tasks"
    )
    if batch.failed_tasks:
        yield f"  {batch.failed_tasks} tasks failed"
    if not batch.worst:
        yield "  nothing found that is worth a change"
    for stage in batch.worst[:_STAGES]:
        yield from _item(
            f"stage {stage.stage} ({stage.name}), {duration(stage.wall_ms)}, {duration(stage.lost_ms)} lost: "
            f"{stage.text}"
        )
    if len(batch.worst) > _STAGES:
        yield f"  and {len(batch.worst) - _STAGES} more, in --json"


def _what_if(what: WhatIf, price: float | None) -> Iterator[str]:
    objective = duration(what.objective_s * 1_000)
    yield f"The same load with the plugin (outside: a row waited longer than {objective})"
    names = list(what.costs)[:_COLUMNS]
    rows = [
        ["", "executor-hours", *(["cost"] if price is not None else []), "outside", "largest lag", *names]
    ]
    rows += [_row(one, names, price) for one in what.outcomes]
    yield from table(rows)
    worst = max(one.error for one in what.costs.values())
    yield from _item(
        f"simulated with the costs of {sum(one.batches for one in what.costs.values())} micro-batches, whose "
        f"own durations they explain within {worst:.0%} (median)"
    )
    yield from _item(
        "bounds: adaptive mode with the upper bounds "
        + ", ".join(f"{name} {most}" for name, most in what.bounds.items())
    )
    for text in what.left_out:
        yield from _item(f"left out: {text}")


def _row(one: Outcome, names: Sequence[str], price: float | None) -> list[str]:
    cost = [] if price is None else [amount(one.core_hours * price)]
    return [
        NAMES.get(one.policy, one.policy),
        f"{one.executor_hours:.3g}",
        *cost,
        f"{one.outside_percent:.1f} %",
        duration(one.largest_lag_s * 1_000),
        *(duration(one.batch_ms[name]) if name in one.batch_ms else "–" for name in names),
    ]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out rows in columns, the first to the left and the others to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  " + "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]


def _proposal(advice: Advice, lines: Mapping[str, str] | None) -> Iterator[str]:
    proposal = advice.proposal
    yield f"To begin with: {proposal.mode} mode"
    yield from _item(proposal.why)
    for note in proposal.notes:
        yield from _item(note)
    yield ""
    yield "spark-defaults.conf:"
    settings = defaults(advice, lines)
    width = max(map(len, settings))
    for key, value in settings.items():
        yield f"  {key:{width}}  {value}"
    if proposal.policy_file is not None:
        yield ""
        yield "A policy file, for spark.elastic.policyFile in adaptive mode:"
        yield textwrap.indent(proposal.policy_file, "  ")


def defaults(advice: Advice, lines: Mapping[str, str] | None) -> dict[str, str]:
    """Return the proposed settings, with those that turn the plugin on."""
    mode = {"spark.elastic.schedulerMode": advice.proposal.mode}
    return {
        **(lines or {"spark.plugins": "org.apache.spark.elastic.ElasticPlugin"}),
        **mode,
        **advice.proposal.settings,
    }


def _item(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False
    )


def span(numbers: tuple[int, int, int]) -> str:
    """Format the fewest, the usual and the most as a range."""
    fewest, _, most = numbers
    return str(fewest) if fewest == most else f"{fewest}–{most}"


def money(core_hours: float, price: float | None) -> str:
    """Format what core-hours cost, "" if the price is unknown."""
    return "" if price is None else f" (cost {amount(core_hours * price)})"


def amount(cost: float) -> str:
    """Format a cost: cents, or three digits if it is small."""
    return f"{cost:,.2f}" if cost >= 10 else f"{cost:.3g}"
