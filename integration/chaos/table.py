"""Add up runs of faults, each in its folder, and print their results for docs/measurements.md.

usage: python -m integration.chaos.table DIR...
The last line printed is one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from integration.chaos.phases import PHASES
from integration.chaos.report import RESULT, Happened, broken, read_happened, spread

_OTHER = "other"


def table(happened: Sequence[Happened]) -> str:
    """Return a table of the hits by fault and phase, with the seconds until recovery."""
    times = Counter(pair for one in happened for pair in one.pairs)
    phases = [*PHASES, _OTHER]
    rows = [
        f"| | {' | '.join(phases)} | recovered in s, median | at most |",
        "|---" * (len(phases) + 3) + "|",
    ]
    for name in sorted({name for name, _ in times}):
        met = [times[name, phase] for phase in PHASES]
        others = sum(count for (of, phase), count in times.items() if of == name and phase not in PHASES)
        cells = [str(count or "") for count in (*met, others)]
        seconds = spread(one.own_seconds for one in happened if name in one.struck_by).values()
        cells += ["" if one is None else str(one) for one in seconds]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def totals(happened: Sequence[Happened], results: Sequence[dict[str, Any]]) -> dict[str, object]:
    """Add up the results of the runs."""
    moves = Counter[str]()
    for result in results:
        moves.update(result["rescales"])
    return {
        "runs": len(results),
        "seeds": [result["seed"] for result in results],
        "steps": len(happened),
        "faults": sum(len(one.struck_by) for one in happened),
        "recover_s": spread(one.seconds for one in happened),
        "rescales": dict(moves),
        "rows_compared": sum(result["rows_compared"] for result in results),
        "batch_jobs": sum(result["batch_jobs"] for result in results),
        "broken": sum(broken(result) for result in results),
    }


def main(folders: Sequence[str]) -> int:
    """Print the table and the totals of all runs."""
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    happened = [one for folder in folders for one in read_happened(Path(folder))]
    results = [json.loads((Path(folder) / RESULT).read_text()) for folder in folders]
    print(table(happened))
    print(json.dumps(totals(happened, results)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
