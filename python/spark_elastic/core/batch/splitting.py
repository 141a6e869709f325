"""Which exchanges of a group have partitions to split, and what forbids it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from spark_elastic.core.batch.questions import Ranges, WrittenExchange
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.batch.skew import may_split, threshold


@frozen(kw_only=True)
class Splitting:
    """The skewed partitions by place of their exchange, and the places of exchanges that may be split.

    `kept` names what forbids it if there is none: a key of `SKEW_KEPT`.
    """

    skewed: Mapping[int, frozenset[int]]
    places: frozenset[int] = frozenset()
    kept: str = "maps"


def splitting(question: Ranges, settings: BatchSettings) -> Splitting:
    """Find what is skewed in a group, and what of it may be split."""
    found = {
        place: partitions
        for place, exchange in enumerate(question.exchanges)
        if not exchange.broadcast and (partitions := _skewed(exchange, settings))
    }
    allowed = frozenset(place for place in found if _may_split(question, question.exchanges[place]))
    kept = _why_kept(question, settings, allowed)
    return Splitting(skewed=found, kept=kept) if kept else Splitting(skewed=found, places=allowed)


def _skewed(exchange: WrittenExchange, settings: BatchSettings) -> frozenset[int]:
    if max(exchange.bytes) <= settings.skew_threshold:
        return frozenset()
    above = threshold(exchange.bytes, settings.skew)
    return frozenset(place for place, size in enumerate(exchange.bytes) if size > above)


def _may_split(question: Ranges, exchange: WrittenExchange) -> bool:
    return exchange.side is not None and may_split(question.join, exchange.side)


def _why_kept(question: Ranges, settings: BatchSettings, allowed: frozenset[int]) -> str | None:
    sides = [exchange.side for exchange in question.exchanges if not exchange.broadcast]
    if not settings.skew_enabled:
        return "off"
    if None in sides or sorted(map(str, sides)) != ["left", "right"]:
        # A piece of one side needs all of the other: that is one exchange, neither less nor more.
        return "no_join"
    if not allowed:
        return "join"
    return "keyed" if question.keyed else None
