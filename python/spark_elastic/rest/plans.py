"""The JSON of what a policy makes of a query: what it wants, what it goes by, and what it expects."""

from __future__ import annotations

from typing import Any

from spark_elastic.core.policies.planner import Plan
from spark_elastic.core.policies.policy import Outlook
from spark_elastic.core.query.view import QueryView
from spark_elastic.core.settings import CoreSettings


def plan(view: QueryView, *, points: bool) -> dict[str, Any] | None:
    """Show it, None where declared bounds alone count; with `points` the micro-batches that it rests on."""
    shown = view.plan
    if shown is None:
        return None
    wish, outlook = shown.granted.wish, shown.outlook
    return {
        "name": ",".join(view.settings.policy),
        "wantedSlots": wish.slots,
        "allowedSlots": shown.granted.slots,
        "reason": wish.reason,
        "message": shown.message,
        "until": wish.until,
        "objective": None if outlook is None else _objective(outlook, view),
        "load": None if outlook is None else round(outlook.load, 3),
        "rowsPerSecond": None if outlook is None else round(outlook.rows_per_second, 1),
        "model": None if outlook is None else _model(outlook, shown, points=points),
        "backlog": None if outlook is None else _backlog(outlook),
        "mostRows": shown.most_rows,
    }


def _objective(outlook: Outlook, view: QueryView) -> dict[str, Any]:
    own: CoreSettings = view.settings
    return {
        "load": round(outlook.target_load, 3),
        "loadBand": own.load_band,
        "intervalMs": view.facts.trigger_ms,
        "maxLagMs": own.max_lag_ms,
        "catchUpMs": own.catch_up_ms,
    }


def _model(outlook: Outlook, shown: Plan, *, points: bool) -> dict[str, Any]:
    return {
        "fixedMs": round(outlook.fixed_ms, 1),
        "rowUs": round(outlook.row_us, 3),
        "confidence": round(outlook.confidence, 2),
        "points": _points(shown) if points else None,
    }


def _points(shown: Plan) -> list[dict[str, Any]]:
    return [{"rowsPerSlot": round(rows, 1), "durationMs": round(took)} for rows, took in shown.points]


def _backlog(outlook: Outlook) -> dict[str, Any] | None:
    if outlook.backlog is None:
        return None
    gone = outlook.gone_in_ms
    return {
        "rows": round(outlook.backlog),
        "withinMs": outlook.within_ms,
        "goneInMs": None if gone is None else round(gone),
    }
