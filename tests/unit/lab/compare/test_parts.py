"""Tests of the parts of a comparison: the command, the costs of a run, and how sure their summary is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from spark_elastic.installation import Spark
from spark_elastic_lab.compare import cost
from spark_elastic_lab.compare.command import home_of, parse, settings_of
from spark_elastic_lab.compare.cost import EXECUTORS, METRICS, WALL, CostError, measure_jar, read_cost
from spark_elastic_lab.compare.run import Run
from spark_elastic_lab.compare.sides import SIDES, Side, rounds
from spark_elastic_lab.compare.summary import Compared, as_data, unsure
from spark_elastic_tools.maven import FetchError, NotPublishedError
from tests.unit.lab.compare import fake_submit


@pytest.mark.parametrize(
    "options",
    [
        ("--master", "local", "--verbose"),
        ("--conf=a=b", "-c", "x=--y", "--supervise"),
        ("--py-files", "app.zip", "--name=app"),
        ("--load-spark-defaults",),
        (),
    ],
)
def test_the_application_is_found_behind_the_options(options: tuple[str, ...]) -> None:
    command = parse(["/opt/spark/bin/spark-submit", *options, "app.py", "--conf", "a=b"])
    assert command.options == options
    added = command.adding({"spark.jars": "j", "k": "{side}"}, {"{side}": "plain"})
    assert added == [
        *("/opt/spark/bin/spark-submit", *options, "--jars", "j", "--conf", "k={side}"),
        *("app.py", "--conf", "a=b"),
    ]


def test_settings_come_from_the_files_and_then_from_the_command(tmp_path: Path) -> None:
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    defaults.write_text("spark.a defaults\nspark.b defaults\nspark.c defaults\n")
    mine = tmp_path / "mine.conf"
    mine.write_text("spark.b mine\nspark.c mine\n")
    words = ("--conf", "spark.c=typed", "--properties-file", str(mine))

    def found(*more: str) -> dict[str, str]:
        return settings_of(parse(["spark-submit", *words, *more, "a.py"]), {}, tmp_path)

    assert found() == {"spark.b": "mine", "spark.c": "typed"}
    assert found("--load-spark-defaults") == {
        "spark.a": "defaults",
        "spark.b": "mine",
        "spark.c": "typed",
    }
    assert settings_of(parse(["spark-submit", "a.py"]), {}, tmp_path)["spark.c"] == "defaults"


def test_the_spark_is_that_of_the_program(tmp_path: Path) -> None:
    program = tmp_path / "env" / "bin" / "spark-submit"
    inside = tmp_path / "env" / "lib" / "python3.11" / "site-packages" / "pyspark"
    for folder in (program.parent, inside / "jars"):
        folder.mkdir(parents=True)
    program.touch(mode=0o755)
    (inside / "jars" / "spark-core_2.12-3.5.9.jar").touch()
    command = parse([str(program), "a.py"])
    assert home_of(command, {}) == inside
    assert home_of(command, {"SPARK_HOME": "/opt/spark"}) == Path("/opt/spark")
    (tmp_path / "env" / "jars").mkdir()
    (tmp_path / "env" / "jars" / "spark-core_2.13-4.2.0.jar").touch()
    assert home_of(command, {}) == tmp_path / "env"


def test_each_side_is_first_in_turn() -> None:
    assert [side for _, side in rounds(2)] == ["plain", "elastic", "elastic", "plain"]


# ---- sparkMeasure's jar.


def fetching(monkeypatch: pytest.MonkeyPatch, published: dict[str, Any]) -> list[str]:
    asked: list[str] = []

    def fetch(coordinate: str, *, transitive: bool) -> list[Path]:
        asked.append(coordinate)
        answer = published.get(coordinate, NotPublishedError("no"))
        if isinstance(answer, Exception):
            raise answer
        return [answer]

    monkeypatch.setattr(cost, "fetch", fetch)
    monkeypatch.setattr(metadata, "version", lambda name: "0.28.1")
    return asked


def test_an_older_jar_stands_in_where_the_newer_release_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "ch.cern.sparkmeasure:spark-measure"
    jar = Path("m.jar")
    asked = fetching(monkeypatch, {f"{group}_2.12:0.24": jar, f"{group}_2.13:0.28": jar})
    assert measure_jar(Spark("3.5.9", "2.12")) == jar
    assert measure_jar(Spark("4.2.0", "2.13")) == jar
    assert asked == [f"{group}_2.12:0.28", f"{group}_2.12:0.24", f"{group}_2.13:0.28"]


@pytest.mark.parametrize(
    ("spark", "answer", "said"),
    [
        (Spark("4.2.0"), None, "Scala version of this Spark is unknown"),
        (Spark("4.2.0", "2.13"), None, "Maven has no sparkMeasure 0.28 or 0.24 for Scala 2.13"),
        (Spark("4.2.0", "2.13"), FetchError("no network\nand more"), "no network: name its jar"),
    ],
)
def test_a_jar_that_cannot_be_had_is_one_line(
    monkeypatch: pytest.MonkeyPatch, spark: Spark, answer: Any, said: str
) -> None:
    fetching(monkeypatch, {"ch.cern.sparkmeasure:spark-measure_2.13:0.28": answer} if answer else {})
    with pytest.raises(CostError) as error:
        measure_jar(spark)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_extra_is_named_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(CostError, match=r"pip install 'spark-elastic\[measure\]'"):
        measure_jar(Spark("4.2.0", "2.13"))


# ---- What a run took.


def written(folder: Path, events: list[dict[str, Any]]) -> Path:
    (folder / "events").mkdir(exist_ok=True)
    (folder / "events" / "local-1").write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def test_both_ways_give_the_same_numbers(tmp_path: Path) -> None:
    folder = written(tmp_path, fake_submit.log(tasks=5))
    (folder / "stages.json").write_text(json.dumps([fake_submit.recorded()]))
    ways = [read_cost(folder, 12.5, recorded=recorded) for recorded in (True, False)]
    assert ways[0] == ways[1]
    assert list(ways[0]) == [metric.name for metric in METRICS]
    assert (ways[0][WALL], ways[0][EXECUTORS]) == (12.5, 9)


def test_what_cannot_be_measured_says_why(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    for files, said in (
        ({}, "started no Spark application"),
        ({"events/a": "nonsense"}, "cannot be read"),
        ({"events/a": json.dumps(fake_submit.log(1)[0])}, "sparkMeasure wrote nothing"),
        ({"stages.json": '[{"numTasks": 1}]'}, "sparkMeasure's file cannot be read"),
        ({"events/b": json.dumps(fake_submit.log(1)[0])}, "ran 2 Spark applications"),
    ):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        with pytest.raises(CostError) as error:
            read_cost(tmp_path, 1, recorded=True)
        assert said in str(error.value)


# ---- How sure it is.


def compared(*walls: tuple[float, float], output: dict[str, Any] | None = None) -> Compared:
    rest = dict.fromkeys((metric.name for metric in METRICS), 1.0)
    runs = [
        Run(number=number, side=side, cost={**rest, WALL: wall})
        for number, pair in enumerate(walls, 1)
        for side, wall in zip(SIDES, pair, strict=True)
    ]
    added: Mapping[Side, Sequence[str]] = {"plain": (), "elastic": ()}
    return Compared(
        rounds=len(walls),
        spark="Spark 4.2.0",
        mode="reactive",
        measured_by="the event log",
        added=added,
        runs=runs,
        output=output or {},
    )


def test_medians_and_the_range_of_the_rounds() -> None:
    found = as_data(compared((100, 50), (120, 90), (80, 60)))["metrics"][WALL]
    assert found == {
        "plain": 100,
        "elastic": 60,
        "ratio": 0.6,
        "lowestRatio": 0.5,
        "highestRatio": 0.75,
    }


@pytest.mark.parametrize(
    ("walls", "said"),
    [
        ([(100, 50)], "one round: nothing says how much"),
        ([(100, 50), (100, 50)], "2 rounds: the range says little"),
        ([(100, 90), (100, 110), (100, 100), (100, 100)], "disagree on which side is faster (0.90–1.10)"),
        ([(130, 50), (100, 50), (100, 50), (90, 50)], "the first run took 2.2 min, others of plain at most"),
        ([(100, 50), (100, 50), (100, 50)], "plain ran first in 2 of 3 rounds"),
        ([(20, 10)] * 4, "mostly the start of Spark"),
    ],
)
def test_it_says_how_sure_it_is(walls: list[tuple[float, float]], said: str) -> None:
    assert any(said in text for text in unsure(compared(*walls)))


def test_four_long_rounds_that_agree_leave_no_doubt() -> None:
    assert unsure(compared(*[(100, 50)] * 4)) == []
