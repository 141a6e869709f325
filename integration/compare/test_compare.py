"""Tests that `spark-elastic compare` runs real jobs, measures them, and compares what they write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from integration.streaming.launch import launched
from spark_elastic.installation import installed_spark, spark_home
from spark_elastic_lab.compare.cost import METRICS, CostError, measure_jar, read_cost
from spark_elastic_tools.cli import compare as compare_command
from spark_elastic_tools.cli.main import cli

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

HERE = Path(__file__).parent


def submit() -> str:
    home = spark_home()
    assert home is not None
    return str(home / "bin" / "spark-submit")


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> Result:
    """Compare the job once, without this machine's settings."""
    conf = folder / "conf"
    conf.mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    place = f"{folder}/out/{{side}}"
    settings = ("spark.driver.memory=1g", "spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1")
    words = [word for setting in settings for word in ("--conf", setting)]
    command = [submit(), "--master", "local[2]", *words, str(HERE / "job.py"), place]
    return CliRunner().invoke(cli, ["compare", "-n", "1", "--output", place, *options, "--", *command])


def test_a_job_is_measured_by_its_event_log_and_its_output_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(spark: object) -> Path:
        raise CostError("no jar")

    monkeypatch.setattr(compare_command, "measure_jar", none)
    result = run(tmp_path, monkeypatch, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["measuredBy"] == "the event log"
    assert (found["output"]["same"], found["output"]["rows"]) == (True, {"plain": 100, "elastic": 100})
    metrics = found["metrics"]
    for side in ("plain", "elastic"):
        assert 0 < metrics["executorSeconds"][side] < metrics["wallSeconds"][side]
        for name in ("tasks", "taskSeconds", "cpuSeconds", "bytesWritten", "shuffleBytesRead"):
            assert metrics[name][side] > 0, name
        assert metrics["shuffleBytesRead"][side] == metrics["shuffleBytesWritten"][side]


@pytest.mark.matrix
def test_spark_measure_and_the_event_log_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        jar = measure_jar(installed_spark())
    except CostError as error:
        pytest.skip(str(error))
    keep = tmp_path / "keep"
    result = run(tmp_path, monkeypatch, "--keep", str(keep), "--measure-jar", str(jar))
    assert result.exit_code == 0, result.output
    assert f"Stages were measured by sparkMeasure ({jar.name})." in result.stdout
    assert "Output: the same 100 rows (parquet)" in result.stdout
    for side in ("plain", "elastic"):
        folder = keep / f"1-{side}"
        recorded, logged = (read_cost(folder, 1.0, recorded=way) for way in (True, False))
        assert recorded["tasks"] > 0
        for metric in METRICS:
            # sparkMeasure cuts the CPU time of each stage down to ms.
            assert recorded[metric.name] == pytest.approx(logged[metric.name], abs=0.1), metric.name


# ---- Outputs.


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pairs")
    with launched("pairs", [str(HERE / "pairs.py"), str(folder)], folder, {}) as process:
        assert process.wait(300) == 0, process.log_tail()
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize(
    ("name", "kind", "only"),
    [
        ("other files", "parquet", (0, 0)),
        ("one twice", "parquet", (0, 1)),
        ("no rows", "parquet", (0, 0)),
        ("orc", "orc", (1, 0)),
        ("json", "json", (1, 0)),
        ("csv", "csv", (0, 0)),
        ("other digits parquet", "parquet", (1, 1)),
        ("other digits csv", "csv", (1, 1)),
        ("other nested", "parquet", (1, 1)),
    ],
)
def test_rows_are_compared_however_they_are_written(
    results: Any, name: str, kind: str, only: tuple[int, int]
) -> None:
    found = results[name]
    assert found["format"] == kind
    assert found["sameSchema"]
    assert (found["onlyInPlain"], found["onlyInElastic"]) == only
    assert (found["exact"]["onlyInPlain"], found["exact"]["onlyInElastic"]) == only


@pytest.mark.parametrize("name", ["last digits parquet", "last digits csv", "nested"])
def test_numbers_that_differ_in_their_last_digits_are_the_same(results: Any, name: str) -> None:
    found = results[name]
    assert (found["onlyInPlain"], found["onlyInElastic"]) == (0, 0)
    assert found["exact"] == {"onlyInPlain": 1, "onlyInElastic": 1}
    assert found["digits"] == {"double": 10, "float": 5}


def test_columns_of_other_types_are_another_schema(results: Any) -> None:
    found = results["other type"]
    assert not found["sameSchema"]
    assert [found["schema"][side][0] for side in ("plain", "elastic")] == [["id", "bigint"], ["id", "int"]]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("text", "but only files of one of parquet, orc, json, csv are compared"),
        ("nothing", "plain wrote nothing to"),
        ("table", "is a table of Delta"),
        ("old", "is older than these runs"),
    ],
)
def test_what_cannot_be_compared_is_named(results: Any, name: str, said: str) -> None:
    assert said in results[name]["error"]
