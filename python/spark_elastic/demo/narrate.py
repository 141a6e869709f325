"""Tell in lines what has changed on a board."""

from __future__ import annotations

from attrs import define, field

from spark_elastic.demo.board import Board, ExecutorChange, QueryBoard

_WORDS = {"added": "registered", "removed": "is gone", "decommissioning": "takes no new tasks"}
_LONGEST = 240


@define
class Narrator:
    """Remembers what was told, so that each change is told once."""

    _changes: int = 0
    _decided: int = 0
    _partitions: dict[str, int] = field(factory=dict)
    _states: dict[str, str] = field(factory=dict)

    def lines(self, board: Board) -> list[str]:
        """Return one line for each thing that is new since the last call."""
        told = [self._executor(change, board) for change in board.changes[self._changes :]]
        self._changes = len(board.changes)
        new = board.decided - self._decided
        self._decided = board.decided
        for decision in list(board.decisions)[-new:] if new else []:
            name = board.queries[decision.query].name if decision.query in board.queries else "all"
            told.append(f"{name}: {brief(decision.message)} [{decision.reason}]")
        for query in board.queries.values():
            told += self._query(query)
        return told

    @staticmethod
    def _executor(change: ExecutorChange, board: Board) -> str:
        return f"executor {change.executor} {_WORDS[change.kind]}; slots: {board.slots.total}"

    def _query(self, query: QueryBoard) -> list[str]:
        told = []
        if query.batches and self._partitions.get(query.query) != query.batches[-1].partitions:
            count = self._partitions[query.query] = query.batches[-1].partitions
            told.append(f"{query.name}: runs with {_partitions(count)}")
        if query.state in ("failed", "finished") and self._states.get(query.query) != query.state:
            told.append(f"{query.name}: {query.state}" + (f": {brief(query.error)}" if query.error else ""))
        self._states[query.query] = query.state
        return told


def brief(message: str) -> str:
    """Return the beginning of a message: Spark's errors bring whole plans and traces with them."""
    line = message.partition("\n")[0].strip()
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"
