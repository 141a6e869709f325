"""A stand-in for spark-submit: notes how it was called, and writes what Spark would write.

FAKE_CALLS names the file that gets a line of JSON for each call. FAKE_FAILS names the side that fails, and
FAKE_WAITS a file that gets this process's id before it waits for a signal. FAKE_OUTPUTS is the answer when
the outputs are compared.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from urllib.parse import urlparse

CPU_NS = 1_500_000_000
PLUGIN = "org.apache.spark.elastic.ElasticPlugin"


def main(words: list[str]) -> int:
    options = words[: words.index("app.py")] if "app.py" in words else words
    conf = dict(options[at + 1].split("=", 1) for at, word in enumerate(options) if word == "--conf")
    is_on = PLUGIN in conf.get("spark.plugins", "") and conf.get("spark.elastic.schedulerMode") != "off"
    with Path(os.environ["FAKE_CALLS"]).open("a") as calls:
        calls.write(json.dumps({"words": words, "conf": conf, "elastic": is_on}) + "\n")
    if any(word.endswith("rows.py") for word in words):
        Path(words[-1]).write_text(os.environ["FAKE_OUTPUTS"])
        return 0
    if "FAKE_WAITS" in os.environ:
        Path(os.environ["FAKE_WAITS"]).write_text(str(os.getpid()))
        signal.pause()
    if os.environ.get("FAKE_FAILS") == ("elastic" if is_on else "plain"):
        print("\tat Some.frame(Some.java:1)\nException: no such column")
        return 3
    folder = Path(urlparse(conf["spark.eventLog.dir"]).path)
    events = "".join(json.dumps(event) + "\n" for event in log(tasks=2 if is_on else 8))
    (folder / "local-1").write_text(events)
    if "spark.extraListeners" in conf:
        Path(conf["spark.sparkmeasure.outputFilename"]).write_text(json.dumps([recorded()]))
    return 0


def log(tasks: int) -> list[dict[str, object]]:
    """An application of 10 s with an executor from its second second on, and one stage."""
    counters = {"executorRunTime": 4_000, "executorCpuTime": CPU_NS, "input.bytesRead": 2_048}
    shuffle = {"shuffle.read.remoteBytesRead": 100, "shuffle.read.localBytesRead": 11}
    stage = {
        "Stage ID": 0,
        "Stage Attempt ID": 0,
        "Stage Name": "write",
        "Number of Tasks": tasks,
        "Completion Time": 9_000,
        "Accumulables": [
            {"ID": number, "Name": f"internal.metrics.{name}", "Value": value}
            for number, (name, value) in enumerate({**counters, **shuffle}.items())
        ],
    }
    return [
        {"Event": "SparkListenerLogStart", "Spark Version": "4.2.0"},
        {"Event": "SparkListenerApplicationStart", "App ID": "a", "App Name": "a", "Timestamp": 1_000},
        {
            "Event": "SparkListenerExecutorAdded",
            "Timestamp": 2_000,
            "Executor ID": "0",
            "Executor Info": {"Total Cores": 2},
        },
        {"Event": "SparkListenerStageCompleted", "Stage Info": stage},
        {"Event": "SparkListenerApplicationEnd", "Timestamp": 11_000},
    ]


def recorded() -> dict[str, int]:
    """The same stage as sparkMeasure's flight recorder writes it, with 5 tasks to tell them apart."""
    return {
        "numTasks": 5,
        "executorRunTime": 4_000,
        "executorCpuTime": 1_500,
        "jvmGCTime": 0,
        "bytesRead": 2_048,
        "bytesWritten": 0,
        "shuffleTotalBytesRead": 111,
        "shuffleBytesWritten": 0,
        "memoryBytesSpilled": 0,
        "diskBytesSpilled": 0,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
