"""Tests of the command checkpoint on a checkpoint in memory, without Spark."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spark_elastic_tools.checkpoint.session import JavaError, NoSparkError
from spark_elastic_tools.cli import checkpoint as command
from spark_elastic_tools.cli.main import cli
from tests.unit.tools.checkpoint.stand_ins import (
    CLASSES,
    SPARK_4_2,
    WHERE,
    MemoryFiles,
    StandIn,
    files,
    no_progress,
    offsets,
)

Use = Callable[..., StandIn]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Return a function that puts a checkpoint where the command finds it."""

    def put(made: MemoryFiles, **what: Any) -> StandIn:
        stand_in = StandIn(made, **what)
        monkeypatch.setattr(command, "HadoopFiles", lambda spark, path: made)
        monkeypatch.setattr(command, "Offline", lambda spark, root: stand_in)
        return stand_in

    @contextmanager
    def session(master: str, conf: Mapping[str, str]) -> Iterator[Any]:
        yield SimpleNamespace(sparkContext=None)

    monkeypatch.setattr(command, "session", session)
    monkeypatch.setattr(command, "progress", no_progress)
    return put


def run(*arguments: str, expect: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["checkpoint", *arguments])
    assert result.exit_code == expect, result.output
    return result


def refused(*arguments: str) -> str:
    """Return what a command that is refused says on standard error."""
    result = run(*arguments, expect=1)
    assert result.stdout == ""
    return result.stderr


def test_inspect_shows_all_there_is(use: Use) -> None:
    use(files(2, "rocksdb", 2))
    lines = run("inspect", WHERE).output.splitlines()
    assert lines[0] == WHERE
    shown = {line.strip()[:17].strip(): line.strip()[17:].strip() for line in lines[1:8]}
    assert re.fullmatch(r"batch 1, the newest entry is .* old", shown["committed"])
    assert shown["written by"] == "Spark 4.2"
    assert shown["state store"] == "RocksDB, format 2"
    assert shown["partitions"] == "2"
    assert shown["operator 0"] == "stateStoreSave"
    assert any(re.fullmatch(r" +default +10 rows +200 B", line) for line in lines)
    assert any(re.fullmatch(r" +repartition +possible", line) for line in lines)
    assert any(re.fullmatch(r" +convert hdfs +possible", line) for line in lines)
    assert any(re.fullmatch(r" +0 +5 +100 B +█{40}", line) for line in lines)


def test_inspect_quick_reads_no_rows(use: Use) -> None:
    stand_in = use(files())
    stand_in.measure = None  # type: ignore[method-assign,assignment]
    output = run("inspect", WHERE, "--quick").output
    assert "rows" not in output
    assert "convert rocksdb" in output


def test_inspect_says_what_is_not_possible(use: Use) -> None:
    use(files(5, key=()))
    output = run("inspect", WHERE).output
    assert "without keys: all its state is in one partition" in output
    assert len(re.findall(r"not possible: its operator 0 has no keys", output)) == 2
    made = files()
    made.files["offsets/2"] = offsets(SPARK_4_2, 9_000, ("2",))
    use(made)
    output = run("inspect", WHERE).output
    assert re.search(r"started +batch 2, by its query; not committed", output)
    assert re.search(r"repartition +not possible: batch 2 is started", output)
    assert re.search(r"convert rocksdb +possible", output)


def test_inspect_names_a_change_that_was_cut_short(use: Use) -> None:
    made = files()
    made.files["offsets/2"] = offsets(
        json.loads(made.files["offsets/1"].split(b"\n")[1])["conf"], 1_001, ("1",)
    )
    use(made)
    assert "batch 2, a change of its state that was cut short; not committed" in run("inspect", WHERE).output
    del made.files["offsets/2"]
    made.files[".spark-elastic-rewrite/state/0/0/1.delta"] = b""
    assert re.search(r"started +a change of its state that was cut short", run("inspect", WHERE).output)


def test_inspect_prints_json(use: Use) -> None:
    made = files(2)
    made.changed = int(time.time() * 1000) - 90_000
    use(made)
    found = json.loads(run("inspect", WHERE, "--json").stdout)
    assert found["newestEntryAgeSeconds"] == pytest.approx(90, abs=10)
    del found["newestEntryAgeSeconds"]
    parts = [{"rows": 5, "bytes": 100}] * 2
    stores = [{"name": "default", "rows": 10, "bytes": 200, "partitions": parts}]
    assert found == {
        "path": WHERE,
        "lastCommittedBatch": 1,
        "startedBatch": None,
        "interruptedChange": False,
        "writtenBy": "Spark 4.2",
        "provider": "hdfs",
        "providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
        "format": 1,
        "partitions": 2,
        "kept": None,
        "rows": 10,
        "bytes": 200,
        "largestToMedian": 1.0,
        "operators": [{"id": 0, "name": "stateStoreSave", "keyed": True, "stores": stores}],
        "changes": {
            "repartition": {"possible": True, "why": None},
            "convert rocksdb": {"possible": True, "why": None},
        },
    }


def test_repartition_says_what_was_done_and_what_comes_next(use: Use) -> None:
    stand_in = use(files(5))
    lines = run("repartition", WHERE, "2").stdout.splitlines()
    assert re.fullmatch(
        r"changed 5 partitions in HDFS-backed files, format 1 to 2 partitions in HDFS-backed files, "
        r"format 1 as batch 2: 10 rows, 500 B, all the same afterwards, in \d.*s",
        lines[0],
    )
    assert lines[1].startswith("next: start the query; Spark restores the number of partitions")
    assert "the log in that folder needs batch 2" in lines[2]
    assert "(`spark-elastic checkpoint undo file:/checkpoint --yes`)" in lines[2]
    assert lines[3].startswith("the state before is kept: `spark-elastic checkpoint forget file:/checkpoint`")
    assert stand_in.calls == ["rewrite 2 partitions in HDFS-backed files, format 1"]


def test_convert_names_the_setting_that_plain_spark_needs(use: Use) -> None:
    setting = "spark.sql.streaming.stateStore.checkpointFormatVersion=2"
    made = files(5)
    use(made)
    output = run("convert", WHERE, "--to", "rocksdb", "--partitions", "2").stdout
    assert "to 2 partitions in RocksDB, format 2 as batch 2" in output
    assert f"without the plugin, set {setting}" in output
    output = run("convert", WHERE, "--to", "hdfs", "--format", "1").stdout
    assert "to 2 partitions in HDFS-backed files, format 1 as batch 3" in output
    assert f"its settings must not have {setting} any more" in output


def test_a_dry_run_changes_nothing(use: Use) -> None:
    made = files(5)
    stand_in, before = use(made), dict(made.files)
    output = run("convert", WHERE, "--to", "rocksdb", "--dry-run").stdout
    assert output.startswith("would change 5 partitions in HDFS-backed files, format 1 to 5 partitions in")
    assert output.endswith("RocksDB, format 2: 10 rows, 500 B; nothing is changed\n")
    assert (stand_in.calls, made.files) == ([], before)


def test_the_log_of_a_file_sink_gets_its_entry(use: Use) -> None:
    made = files(5)
    made.files.update({"_spark_metadata/0": b"", "_spark_metadata/1": b""})
    stand_in = use(made)
    output = run("repartition", WHERE, "2", "--file-sink", "/output").stdout
    assert stand_in.calls[1:] == ["fill /output 2"]
    assert "--file-sink" not in output


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([], "it has no folder _spark_metadata"),
        ([0, 1, 2], "its log has batch 2, and the checkpoint ends with 1"),
    ],
)
def test_a_folder_that_the_query_does_not_write_to_is_refused(
    use: Use, entries: list[int], said: str
) -> None:
    made = files(5)
    made.files.update({f"_spark_metadata/{entry}": b"" for entry in entries})
    stand_in = use(made)
    assert f"Error: /output: {said}" in refused("repartition", WHERE, "2", "--file-sink", "/output")
    assert stand_in.calls == []


def begun(made: MemoryFiles) -> MemoryFiles:
    """Let the query begin its next batch."""
    conf = json.loads(made.files["offsets/1"].split(b"\n")[1])["conf"]
    made.files["offsets/2"] = offsets(conf, 9_000, ("2",))
    return made


def test_a_batch_that_has_begun_keeps_its_number(use: Use) -> None:
    stand_in = use(begun(files(5)))
    lines = run("convert", WHERE, "--to", "rocksdb", "--file-sink", "/output").stdout.splitlines()
    assert "to 5 partitions in RocksDB, format 2 in batch 1: 10 rows" in lines[0]
    assert len(lines) == 3
    assert stand_in.calls == ["rewrite 5 partitions in RocksDB, format 2"]
    stand_in = use(begun(files(5)), lossy=True)
    assert "again what it was" in refused("convert", WHERE, "--to", "rocksdb")
    assert stand_in.calls[1:] == ["undo 2"]


# ---- What is kept of the state before


def keep(made: MemoryFiles, batch: int, form: str = "hdfs", *, begun: bool = False) -> MemoryFiles:
    """Keep the state as of a batch, as if it had had 3 partitions."""
    conf = {**SPARK_4_2, "spark.sql.shuffle.partitions": "3"}
    folder = ".spark-elastic-original"
    made.files[f"{folder}/note"] = f"1000\n{batch}\n{CLASSES[form]}\n1".encode()
    for number in (batch, batch + 1) if begun else (batch,):
        made.files[f"{folder}/offsets/{number}"] = offsets(conf)
    return made


def test_inspect_shows_what_is_kept(use: Use) -> None:
    use(keep(files(2, "rocksdb", 2, batches=3), 1))
    assert re.search(
        r"kept +the state of batch 1, 3 partitions in HDFS-backed files, format 1",
        run("inspect", WHERE).output,
    )
    found = json.loads(run("inspect", WHERE, "--json").stdout)
    assert found["kept"] == {"batch": 1, "partitions": 3, "provider": "hdfs", "format": 1}


def test_forget_deletes_what_is_kept(use: Use) -> None:
    stand_in = use(keep(files(), 0))
    said = "deleted what was kept of batch 0, 3 partitions in HDFS-backed files, format 1\n"
    assert run("forget", WHERE).stdout == said
    assert stand_in.calls == ["forget"]
    stand_in = use(files())
    assert run("forget", WHERE).stdout == "nothing is kept of an earlier state\n"
    assert stand_in.calls == []


@pytest.mark.parametrize(
    ("batches", "has_begun", "said"),
    [
        (3, False, None),
        (4, False, "1 batch of its query would run again"),
        (6, False, "3 batches of its query would run again"),
        (2, True, None),
        (3, True, "1 batch of its query would run again"),
    ],
)
def test_undo_says_first_what_it_would_mean(
    use: Use, batches: int, has_begun: bool, said: str | None
) -> None:
    made = keep(files(2, "rocksdb", 2, batches), 1, begun=has_begun)
    if has_begun and batches == 2:
        begun(made)
    stand_in, before = use(made), dict(made.files)
    output = refused("undo", WHERE)
    assert "it would go back to batch 1, 3 partitions in HDFS-backed files, format 1" in output
    assert output.endswith("add --yes to do it\n")
    assert ("would run again" in output) == (said is not None)
    assert (said or "") in output
    assert ("add --file-sink FOLDER" in output) == (not has_begun or said is not None)
    assert (stand_in.calls, made.files) == ([], before)


def test_undo_goes_back(use: Use) -> None:
    made = keep(files(5, batches=3), 1)
    stand_in = use(made)
    lines = run("undo", WHERE, "--yes").stdout.splitlines()
    assert lines[0] == "went back to batch 1, 5 partitions in HDFS-backed files, format 1: 10 rows, 500 B"
    assert lines[1].startswith("next: start the query")
    assert stand_in.calls == ["undo 2"]


def test_undo_ends_the_log_of_a_file_sink(use: Use) -> None:
    made = keep(files(5, batches=3), 1)
    made.files.update({f"_spark_metadata/{name}": b"" for name in ("0", "1", "2", "3.compact", ".3.crc")})
    stand_in = use(made)
    run("undo", WHERE, "--yes", "--file-sink", "/output")
    assert stand_in.calls == ["undo 2"]
    assert made.names("_spark_metadata") == [".3.crc", "0", "1"]
    use(keep(files(5, batches=3), 1))
    assert "Error: /output: it has no folder" in refused("undo", WHERE, "--yes", "--file-sink", "/output")


def test_there_is_nothing_to_go_back_to(use: Use) -> None:
    stand_in = use(files())
    assert "nothing is kept of an earlier state" in refused("undo", WHERE, "--yes")
    made = keep(files(batches=4), 1)
    del made.files["commits/1"], made.files["offsets/1"]
    use(made)
    assert "Spark may have deleted the state of batch 1" in refused("undo", WHERE, "--yes")
    assert stand_in.calls == []


def test_undo_of_a_change_that_was_cut_short_is_enough(use: Use) -> None:
    made = files()
    made.files[".spark-elastic-rewrite/offsets/2"] = b""
    stand_in = use(made)
    assert "it is undone now" in run("undo", WHERE).stderr
    assert stand_in.calls == ["recover"]


def test_an_undo_that_was_cut_short_is_completed_by_another_one(use: Use) -> None:
    made = keep(files(2, "rocksdb", 2, batches=3), 1)
    made.files[".spark-elastic-original/undo"] = b"1"
    stand_in = use(made)

    def recover() -> bool:
        for name in [name for name in made.files if "/2" in name or "original" in name]:
            del made.files[name]
        return True

    stand_in.recover = recover  # type: ignore[method-assign]
    assert "was cut short: it is completed now" in run("undo", WHERE, "--yes").stderr
    assert not any(call.startswith("undo") for call in stand_in.calls)


def test_a_row_that_is_lost_is_noticed_and_all_goes_back(use: Use) -> None:
    made = files(5)
    before = dict(made.files)
    stand_in = use(made, lossy=True)
    said = refused("repartition", WHERE, "2")
    assert "the state is not the same afterwards, so the checkpoint is again what it was:" in said
    assert re.search(r"operator 0, default: 10 rows, checksum .* before, 9 rows, .* after", said)
    assert stand_in.calls[1:] == ["undo 2"]
    assert made.files == before


def test_state_that_cannot_be_read_afterwards_goes_back(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = use(files(5))
    measure = stand_in.measure

    def fails_later(*what: Any) -> Any:
        if stand_in.calls:
            raise JavaError("no file 3.zip")
        return measure(*what)

    monkeypatch.setattr(stand_in, "measure", fails_later)
    assert "it cannot be read: no file 3.zip" in refused("repartition", WHERE, "2")
    assert stand_in.calls[1:] == ["undo 2"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("repartition", WHERE, "5"), "its state is already in 5 partitions in HDFS-backed files, format 1"),
        (("convert", WHERE, "--to", "hdfs"), "its state is already"),
        (("convert", WHERE, "--to", "hdfs", "--format", "2"), "have format 1 only"),
    ],
)
def test_what_is_refused_changes_nothing(use: Use, arguments: tuple[str, ...], said: str) -> None:
    made = files(5)
    stand_in, before = use(made), dict(made.files)
    assert f"{WHERE}: " in refused(*arguments)
    assert said in refused(*arguments)
    assert (stand_in.calls, made.files) == ([], before)


def test_no_checkpoint_is_an_error(use: Use) -> None:
    use(MemoryFiles())
    for arguments in (("inspect", WHERE), ("repartition", WHERE, "2")):
        assert "is no checkpoint: its folder offsets has no entry" in refused(*arguments)


def test_an_exception_of_the_shim_is_one_line(use: Use) -> None:
    use(files(5), broken="its micro-batch 2 has begun\x1b[2J")
    assert refused("repartition", WHERE, "2") == f"Error: {WHERE}: its micro-batch 2 has begun [2J\n"


def test_an_earlier_change_is_completed_or_undone_first(use: Use) -> None:
    made = files(5)
    made.files[".spark-elastic-rewrite/offsets/2"] = b""
    stand_in = use(made)
    assert "it would be completed or undone first" in run("repartition", WHERE, "2", "--dry-run").stderr
    assert stand_in.calls == []
    assert (
        "an earlier change of its state was cut short: it is undone" in run("repartition", WHERE, "2").stderr
    )
    assert stand_in.calls[0] == "recover"


def test_a_re_partitioning_of_spark_that_was_cut_short_is_undone(use: Use) -> None:
    made = files(5)
    conf = json.loads(made.files["offsets/1"].split(b"\n")[1])["conf"]
    made.files["offsets/2"] = offsets({**conf, "spark.sql.shuffle.partitions": "9"}, 1_001, ("1",))
    stand_in = use(made)
    run("repartition", WHERE, "2")
    assert stand_in.calls[:3] == ["recover", "forget", "undo 2"]


def test_a_query_that_is_running_is_noticed(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    made = files(5)
    made.changed = int(time.time() * 1000)
    stand_in = use(made)
    measure = stand_in.measure

    def goes_on(*what: Any) -> Any:
        made.files["offsets/2"] = offsets(SPARK_4_2, 9_000, ("2",))
        return measure(*what)

    monkeypatch.setattr(stand_in, "measure", goes_on)
    said = refused("repartition", WHERE, "2")
    assert "if its query is still running, stop it" in said
    assert "batch 2 was started a moment ago: a query is running on it" in said
    assert stand_in.calls == []


def test_no_spark_is_an_error(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(master: str, conf: Mapping[str, str]) -> Any:
        raise NoSparkError("no PySpark is installed here")

    use(files())
    monkeypatch.setattr(command, "session", none)
    assert refused("inspect", WHERE) == "Error: no PySpark is installed here\n"


def test_ctrl_c_says_how_to_go_on(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = use(files())

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(stand_in, "rewrite", interrupted)
    assert "is completed or undone by the same command" in run("repartition", WHERE, "2", expect=130).stderr


@pytest.mark.parametrize("setting", ["fs.s3a.endpoint=x", "spark.hadoop.fs.s3a.endpoint"])
def test_a_setting_that_is_none_is_wrong_usage(use: Use, setting: str) -> None:
    use(files())
    assert "spark.hadoop.fs.s3a.endpoint" in run("inspect", WHERE, "--conf", setting, expect=2).stderr


@pytest.mark.parametrize(
    "arguments",
    [("repartition", WHERE, "0"), ("undo",), ("convert", WHERE), ("convert", WHERE, "--to", "hdd"), ()],
)
def test_wrong_usage_starts_no_spark(arguments: tuple[str, ...]) -> None:
    run(*arguments, expect=2)
