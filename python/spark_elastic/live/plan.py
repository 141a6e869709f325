"""What a policy makes of a query, in words: one line for a table of queries, some for a query alone."""

from __future__ import annotations

from collections.abc import Iterator

from spark_elastic.client.source import Json
from spark_elastic.core.sentences import duration


def in_a_line(policy: Json, granted: int | None) -> str:
    """Say in a line how many slots are wanted, how loaded the query is, and when a backlog will be gone."""
    parts = [_slots(policy, granted)]
    if policy["objective"] is not None:
        parts.append(f"load {_percent(policy['load'])} of {_percent(policy['objective']['load'])}")
        parts.append(f"{policy['rowsPerSecond']:,.0f} rows/s arrive")
    if policy["backlog"] is not None:
        parts.append(_backlog(policy["backlog"]))
    return ", ".join(parts)


def in_full(policy: Json, granted: int | None) -> Iterator[str]:
    """Say all of it, with the model and why there are not more slots."""
    yield f"{_slots(policy, granted)}: {policy['message']} [{policy['reason']}]"
    objective, model = policy["objective"], policy["model"]
    if objective is not None:
        lag = "" if objective["maxLagMs"] is None else f", at most {duration(objective['maxLagMs'])} behind"
        most = objective["load"] + objective["loadBand"]
        yield (
            f"aims at a load of {_percent(objective['load'])}, {_percent(most)} before it goes up{lag}; "
            f"it is {_percent(policy['load'])}, {policy['rowsPerSecond']:,.0f} rows/s arrive"
        )
    if model is not None:
        yield (
            f"a micro-batch takes {duration(model['fixedMs'])} + {model['rowUs']:,.0f} µs for each row ÷ "
            f"slots, confidence {_percent(model['confidence'])}"
        )
    if policy["mostRows"] is not None:
        yield f"reads at most {policy['mostRows']:,} rows with one micro-batch"
    if policy["backlog"] is not None:
        yield f"{_backlog(policy['backlog'])}, wanted within {duration(policy['backlog']['withinMs'])}"


def _slots(policy: Json, granted: int | None) -> str:
    wanted, allowed = policy["wantedSlots"], policy["allowedSlots"]
    has = "advice only" if granted is None else f"{granted} granted"
    limit = "" if wanted == allowed else f", limits allow {allowed}"
    return f"{wanted} slot{'' if wanted == 1 else 's'} wanted, {has}{limit}"


def _backlog(backlog: Json) -> str:
    gone = backlog["goneInMs"]
    when = "never gone with these slots" if gone is None else f"gone in {duration(gone)}"
    return f"{backlog['rows']:,} rows behind, {when}"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"
