"""What is to be seen of an application at one moment, and what is new since the last one."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.client.source import Json, Source

_MOST_NEWS = 1_000


@frozen
class Snapshot:
    """Documents of the API: the overview, the queries, and the decisions that are new, oldest first."""

    overview: Json
    queries: tuple[Json, ...]
    news: tuple[Json, ...] = ()


class Look:
    """Looks at a source again and again; the first time up to `past` earlier decisions are news."""

    def __init__(self, source: Source, past: int) -> None:
        self._source = source
        self._past = past
        self._last: int | None = None
        self._restarts: int | None = None

    def take(self) -> Snapshot:
        """Return how things are now. Raises Failure."""
        overview = self._source.get("/overview")
        queries = tuple(self._source.get("/queries")["queries"])
        if overview["policyRestarts"] != self._restarts and self._restarts is not None:
            self._last = 0  # another policy process keeps decisions of its own
        self._restarts = overview["policyRestarts"]
        return Snapshot(overview, queries, self._news())

    def _news(self) -> tuple[Json, ...]:
        if self._last is None:
            path = f"/decisions?limit={self._past}"
        else:
            path = f"/decisions?after={self._last}&limit={_MOST_NEWS}"
        news = self._source.get(path)["decisions"]
        self._last = news[0]["number"] if news else self._last or 0
        return tuple(reversed(news))
