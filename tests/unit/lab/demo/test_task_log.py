"""Tests of the log of tasks from which the demonstration learns where tasks ran."""

from __future__ import annotations

import json
from pathlib import Path

from spark_elastic_lab.demo.task_log import TaskLog


def _write(path: Path, *events: dict[str, object]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(event, separators=(",", ":")) + "\n" for event in events)


def _job(stage: int, query: str | None, **more: str) -> dict[str, object]:
    batch = {} if query is None else {"streaming.sql.batchId": "7", "sql.streaming.queryId": query}
    properties = {**batch, **more}
    return {"Event": "SparkListenerJobStart", "Stage IDs": [stage], "Properties": properties}


def _task(stage: int, executor: str, at: int) -> dict[str, object]:
    info = {"Executor ID": executor, "Launch Time": at}
    return {"Event": "SparkListenerTaskStart", "Stage ID": stage, "Task Info": info}


def test_the_first_task_of_a_query_on_an_executor_is_found_as_the_log_grows(tmp_path: Path) -> None:
    tasks = TaskLog(tmp_path)
    assert tasks.first_on("1", 0) is None
    _write(tmp_path / "app-1", _job(1, "a"), _job(2, "b"), _task(1, "1", 200), _task(2, "1", 150))
    assert tasks.first_on("1", 0) == 150
    assert tasks.first_on("1", 0, "a") == 200
    assert tasks.first_on("1", 201, "a") is None
    assert tasks.first_on("2", 0) is None
    _write(tmp_path / "app-1", _task(1, "1", 300), _task(1, "2", 310))
    assert tasks.first_on("1", 201, "a") == 300
    assert tasks.first_on("2", 0, "b") is None


def test_batch_jobs_and_what_runs_between_two_micro_batches_do_not_count(tmp_path: Path) -> None:
    jobs = (_job(1, None), _job(2, "a", **{"spark.elastic.own": ""}))
    _write(tmp_path / "app-1", *jobs, _task(1, "1", 100), _task(2, "1", 120))
    assert TaskLog(tmp_path).first_on("1", 0) is None


def test_words_of_the_application_make_its_job_none_of_the_plugin(tmp_path: Path) -> None:
    job = _job(1, "a", **{"spark.job.description": "spark-elastic: what this application is about"})
    _write(tmp_path / "app-1", job, _task(1, "1", 100))
    assert TaskLog(tmp_path).first_on("1", 0, "a") == 100
