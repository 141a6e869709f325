"""Run an application on a real cluster, inject one fault after another, and check the results.

usage: python -m integration.chaos --faults N --seed S [--minutes M] [--burst N] [--kinds KIND,...]
                                   [--no-restarts] [--plain | --reactive | --old] [--where PLACE]
                                   [--no-rerun] [--folder DIR] [--after DIR]...
       python -m integration.chaos --script FILE [--shrink] [--no-restarts]
                                   [--plain | --reactive | --old] [--where PLACE] [--no-rerun]
                                   [--folder DIR]
With `--plain` the application runs in plain Spark: the plugin need not survive what plain Spark does not.
With `--reactive` it runs in reactive mode and must use all slots after recovery; otherwise in adaptive mode.
With `--old` its checkpoints are begun by plain Spark, and the plugin converts them when queries start.
With `--where kubernetes` it is what the Helm chart installs on two nodes, and pods, nodes and the driver's
pod are struck, too.
With `--burst` it must have recovered only after that many steps: each fault in between hits the effects of
the one before. If anything is broken, the same script runs three times more, and is shrunk if that breaks
again. The last line printed is one JSON object; the exit code is 1 if anything is broken.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from integration.chaos.network import why_not
from integration.chaos.plan import FAULTS, Plan, Step, of_mode, read_steps, write_steps
from integration.chaos.report import HAPPENED, broken, read_happened, write_result
from integration.chaos.run import chosen, run
from integration.chaos.settings import Where
from integration.chaos.shrink import TIMES, again, shrink, what_broke
from integration.kubernetes.images import unmade
from integration.kubernetes.parts import unbuilt


def main() -> int:
    """Run the requested faults, and print the result."""
    arguments = _arguments()
    # As with Ctrl-C, the started processes must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="chaos-"))
    print(
        f"seed {arguments.seed}, everything is in {folder}; see chaos.log there", file=sys.stderr, flush=True
    )
    if arguments.where == "kubernetes":
        missing = unbuilt() or unmade()
        if missing is not None:
            print(f"Kubernetes cannot run here: {missing}", file=sys.stderr)
            return 2
    no_links = why_not()
    if no_links and arguments.where == "standalone":
        print(f"no link is cut or slow, all is on loopback: {no_links}", file=sys.stderr, flush=True)
    restarts, mode = not arguments.no_restarts, arguments.mode
    try:
        plan = Plan(
            arguments.seed,
            arguments.kinds,
            restarts=restarts,
            links=no_links is None,
            mode=mode,
            where=arguments.where,
            burst=arguments.burst,
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for earlier in arguments.after:
        plan.met(pair for happened in read_happened(earlier) for pair in happened.pairs)
    if arguments.script:
        steps = of_mode(read_steps(arguments.script), mode, arguments.where)
    else:
        steps = chosen(plan, arguments.faults, arguments.minutes)
    if arguments.shrink:
        return _shrink(list(steps), folder, plan)
    result = run(folder, plan, steps)
    if broken(result) and not arguments.no_rerun:
        result["again"] = _again(result, folder, plan)
        write_result(folder, result)
    print(json.dumps(result))
    return 1 if broken(result) else 0


def _again(result: Mapping[str, Any], folder: Path, plan: Plan) -> dict[str, object]:
    """Repeat a script that broke something, and return the results."""
    wanted, steps = what_broke(result), list(read_steps(Path(result["script"])))
    print(f"broken: {sorted(wanted)}; once more, {TIMES} times", file=sys.stderr, flush=True)
    found = again(steps, wanted, _runs(folder / "again", plan))
    said: dict[str, object] = {"broken": sorted(wanted), "runs": TIMES, "broke": found.times}
    if found.times:
        path = folder / "shortest.jsonl"
        write_steps(path, found.shortest)
        said |= {"steps": len(found.shortest), "script": str(path)}
    return said


def _shrink(steps: list[Step], folder: Path, plan: Plan) -> int:
    """Print the shortest script found to break what the whole script breaks first."""
    runs = _runs(folder, plan)
    wanted = what_broke(runs(steps))
    if not wanted:
        print("nothing breaks", file=sys.stderr)
        return 0
    path = folder / "shortest.jsonl"
    write_steps(path, shrink(steps, lambda fewer: bool(what_broke(runs(fewer)) & wanted)))
    print(json.dumps({"broken": sorted(wanted), "script": str(path)}))
    return 1


def _runs(folder: Path, plan: Plan) -> Callable[[Sequence[Step]], Mapping[str, Any]]:
    """Return a function that runs steps, each time in a new world in a subfolder of `folder`."""
    tries = itertools.count()
    return lambda steps: run(folder / str(next(tries)), plan, iter(steps))


def _positive(number: str) -> int:
    if not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"'{number}' is no number of steps: take 1 or more")
    return int(number)


def _kinds(names: str) -> tuple[str, ...]:
    unknown = set(names.split(",")) - set(FAULTS)
    if unknown:
        raise argparse.ArgumentTypeError(f"no such kind: {sorted(unknown)}; there are {sorted(FAULTS)}")
    return tuple(names.split(","))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.chaos",
        description="Let one thing after another go wrong on a real cluster.",
    )
    parser.add_argument("--faults", type=int, default=20, help="so many faults (default 20)")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="no fault begins later than that; else all are done"
    )
    parser.add_argument(
        "--burst",
        type=_positive,
        default=1,
        help="all has to be well after so many steps, sooner after some faults (default 1)",
    )
    parser.add_argument("--seed", type=int, default=1, help="chooses them and their targets (default 1)")
    parser.add_argument(
        "--kinds", type=_kinds, default=(), help="faults of these kinds (a,b,...); else of all"
    )
    parser.add_argument(
        "--no-restarts", action="store_true", help="batches that fail are not tried again: fewer faults"
    )
    of_application = parser.add_mutually_exclusive_group()
    of_application.add_argument(
        "--plain",
        dest="mode",
        action="store_const",
        const="plain",
        help="without the plugin, and so without its faults and restarts",
    )
    of_application.add_argument(
        "--reactive",
        dest="mode",
        action="store_const",
        const="reactive",
        help="in reactive mode, without faults and phases of bounds",
    )
    of_application.add_argument(
        "--old",
        dest="mode",
        action="store_const",
        const="old",
        help="from checkpoints of plain Spark, which are converted at the starts of queries",
    )
    parser.set_defaults(mode="adaptive")
    parser.add_argument(
        "--where",
        choices=get_args(Where),
        default="standalone",
        help="what starts the executors (default standalone)",
    )
    parser.add_argument("--script", type=Path, help="do these steps instead: steps.jsonl of another run")
    parser.add_argument(
        "--shrink", action="store_true", help="leave out steps of the script that are not needed"
    )
    parser.add_argument(
        "--no-rerun", action="store_true", help="what breaks is not tried again and shrunk, which takes long"
    )
    parser.add_argument("--folder", type=Path, help="a new folder for all that is written")
    parser.add_argument(
        "--after",
        type=Path,
        action="append",
        default=[],
        help="the folder of an earlier run: what was met there counts as met",
    )
    arguments = parser.parse_args()
    if arguments.where == "kubernetes" and arguments.mode != "adaptive":
        parser.error("on Kubernetes the application is in adaptive mode")
    if arguments.shrink and arguments.script is None:
        parser.error("--shrink needs a --script")
    for earlier in arguments.after:
        if not (earlier / HAPPENED).exists():
            parser.error(f"{earlier} is no folder of a run: it has no {HAPPENED}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
