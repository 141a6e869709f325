"""Tests of the commands that ask a driver, as a user calls them: answers, errors and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.events import SourceRead
from spark_elastic_tools.live import Look
from tests.unit.http.test_plans import AUTOSCALE, EACH_SECOND, batch
from tests.unit.http.world import ADAPTIVE, AT_ONCE, COUNTS, ID, NOW
from tests.unit.tools.cli.conftest import OTHER, SPREAD
from tests.unit.tools.cli.served import Canned, Served, run, served


def test_status_shows_slots_queries_and_their_bounds(driver: Served) -> None:
    shown = driver.run("status")
    assert shown.exit_code == 0
    assert "slots 4" in shown.stdout
    assert "adaptive" in shown.stdout
    (counts,) = [line for line in shown.stdout.splitlines() if "counts stateful" in line]
    for part in ("Executing", " 4 ", "1–32768", "312 ms"):
        assert part in counts


@pytest.mark.parametrize("typed", ["counts", "Cou", ID, ID.replace("-", "").upper(), "6f1c"])
def test_a_query_is_found_by_name_id_or_how_either_begins(driver: Served, typed: str) -> None:
    shown = driver.run("status", typed, "--json")
    assert shown.exit_code == 0
    document = json.loads(shown.stdout)
    assert [query["id"] for query in document["queries"]] == [ID]
    assert document["overview"]["mode"] == "adaptive"


def test_json_is_one_document_of_the_api(driver: Served) -> None:
    api = driver.world
    document = json.loads(driver.run("status", "--json").stdout)
    assert document["overview"] == api.get("/elastic/api/v1/overview").json
    assert document["queries"] == api.get("/elastic/api/v1/queries").json["queries"]
    document = json.loads(driver.run("history", "counts", "--json").stdout)
    assert document["rescales"] == api.get(f"/elastic/api/v1/queries/{ID}/rescales").json["rescales"]


def test_history_shows_what_became_of_each_rescale(driver: Served) -> None:
    failure = ev.Failure(error="disk full", causes=("java.io.IOException",), offsets="[7]")
    driver.world.send(ev.QueryFailed, query=ID, run="r1", failure=failure)
    shown = driver.run("history", "counts")
    assert shown.exit_code == 0
    assert "initial_schedule" in shown.stdout
    assert "completed" in shown.stdout
    assert "disk full" in shown.stdout


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        (("--upper", "2"), (1, 2)),
        (("--lower", "2"), (2, 32_768)),
        (("--lower", "2", "--upper", "3"), (2, 3)),
        (("--parallelism", "3"), (3, 3)),
        (("--up",), (5, 32_768)),
        (("--down",), (1, 3)),
        (("--upper", "-1"), (1, 32_768)),
    ],
)
def test_rescale_changes_bounds(driver: Served, typed: tuple[str, ...], wanted: tuple[int, int]) -> None:
    result = driver.run("rescale", "counts", *typed)
    assert result.exit_code == 0, result.output
    assert driver.world.bounds() == wanted
    assert result.stdout.startswith(f"counts: bounds {wanted[0]}–{wanted[1]}, before 1–32768\n")
    assert driver.heard[-2]["If-Match"].startswith('"')


def test_rescale_sets_a_target_which_stays_as_long_as_the_bounds_let_it(driver: Served) -> None:
    shown = "counts: bounds 1–8, target 4, before 1–32768\n"
    assert driver.run("rescale", "counts", "--upper", "8", "--target", "4").stdout.startswith(shown)
    for typed, now in (
        (("--lower", "2"), "2–8, target 4"),
        (("--upper", "3"), "2–3"),
        (("--target", "3"), "2–3, target 3"),
        (("--target", "-1"), "2–3"),
    ):
        assert driver.run("rescale", "counts", *typed).stdout.startswith(f"counts: bounds {now}, before")
    result = driver.run("rescale", "counts", "--target", "9")
    assert result.exit_code == 1
    assert "target of vertex shuffle is 9, allowed is from 2 to 3" in result.stderr


def test_a_step_counts_from_the_partitions_that_are_on_their_way(driver: Served) -> None:
    driver.run("rescale", "counts", "--upper", "2")
    result = driver.run("rescale", "counts", "--down", "--json")
    assert json.loads(result.stdout)["requirements"]["shuffle"]["parallelism"]["upperBound"] == 1
    result = driver.run("rescale", "counts", "--down")
    assert result.exit_code == 1
    assert "counts already has 1: to end the query" in result.stderr
    assert driver.run("rescale", "counts", "--up").exit_code == 0
    assert driver.world.bounds() == (2, 2)


def test_a_step_of_a_source_counts_from_the_tasks_that_read_it() -> None:
    with served(queries=(evolve(COUNTS, sources=(ev.SourceFacts(name="files"),)),)) as driver:
        step = ("rescale", "counts", "--vertex", "source-0", "--up")
        result = driver.run(*step)
        assert result.exit_code == 1
        assert "what source-0 of counts has now is not known while the query is Executing" in result.stderr
        driver.world.send(
            ev.QueryProgress, query=ID, run="r1", batch=7, started=NOW - 300, duration_ms=312, partitions=4,
            sources=(SourceRead(rows=40, tasks=3),),
        )  # fmt: skip
        assert driver.run(*step).stdout.startswith("counts: bounds of source-0 4–32768, before 1–32768\n")


def test_rescale_takes_bounds_back(driver: Served) -> None:
    driver.run("rescale", "counts", "--parallelism", "2")
    assert driver.world.bounds() == (2, 2)
    result = driver.run("rescale", "counts", "--reset")
    assert result.exit_code == 0
    assert result.stdout.startswith("counts: bounds 1–32768, before 2–2\n")
    assert driver.world.bounds() == (1, 32_768)


def test_rescale_says_what_is_wrong_with_the_bounds(driver: Served) -> None:
    result = driver.run("rescale", "counts", "--lower", "0", "--upper", "-5")
    assert result.exit_code == 1
    assert "lowerBound of vertex shuffle is 0" in result.stderr
    assert driver.world.bounds() == (1, 32_768)
    result = driver.run("rescale", "counts", "--vertex", "v1", "--upper", "2")
    assert (result.exit_code, result.stderr) == (
        1,
        "spark-elastic rescale: counts has no vertex 'v1', only shuffle\n",
    )


@pytest.mark.parametrize("typed", [(), ("--up", "--down"), ("--parallelism", "2", "--upper", "3")])
def test_rescale_wants_one_way_to_say_it(driver: Served, typed: tuple[str, ...]) -> None:
    result = driver.run("rescale", "counts", *typed)
    assert result.exit_code == 2
    assert "say one of" in result.stderr


def test_rescale_leaves_alone_what_somebody_else_has_changed_meanwhile(driver: Served) -> None:
    path = f"/elastic/api/v1/queries/{ID}/resource-requirements"
    driver.run("rescale", "counts", "--upper", "2")
    driver.canned[path] = Canned(412, json.dumps({"errors": ["the bounds have been changed"]}))
    result = driver.run("rescale", "counts", "--upper", "3")
    assert result.exit_code == 1
    assert "the bounds have been changed" in result.stderr


def test_in_reactive_mode_the_error_of_the_driver_is_shown() -> None:
    with served({"spark.elastic.schedulerMode": "reactive"}) as driver:
        result = driver.run("rescale", "counts", "--upper", "2")
        assert result.exit_code == 1
        assert "set spark.elastic.schedulerMode=adaptive" in result.stderr
        assert "1–32768" not in driver.run("status").stdout


def test_explain_says_why_it_was_rescaled_and_what_came_of_it(driver: Served) -> None:
    driver.run("rescale", "spread", "--upper", "2")
    shown = driver.run("explain", "spread")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"spread ({OTHER}): Executing with")
    assert lines[0].endswith(", 2 of 4 slots there, bounds 1–2")
    assert lines[1] == "why it was rescaled"
    assert "[in_place]" in lines[2]
    assert any(line.startswith("  compared: slots 2, total_slots 4") for line in lines)
    assert any(line.startswith("  what came of it: completed") for line in lines)


def test_a_prepared_move_is_told_while_it_is_prepared_and_when_it_is_through() -> None:
    with served({**ADAPTIVE, **AT_ONCE}, queries=[evolve(COUNTS, prepares_moves=True)]) as driver:
        driver.world.prepares()
        assert "preparing 4 → 6" in " ".join(driver.run("status").stdout.split())
        why = driver.run("explain", "counts").stdout
        assert "Its state is copied first, while micro-batches run. [rescale_always]" in why
        assert "pause_ms 500, slowdown_ms 0" in why
        # What is on its way counts for a step.
        driver.run("rescale", "counts", "--up")
        assert driver.world.bounds() == (7, 32_768)
    with served({**ADAPTIVE, **AT_ONCE}, queries=[evolve(COUNTS, prepares_moves=True)]) as driver:
        driver.world.prepares()
        driver.world.switches()
        said = driver.run("explain", "counts").stdout
        assert "[rescale_always]" in said, "the reason is that of the move, not of its end"
        assert "prepared in 4 s, " in said
        assert ", first micro-batch 420 ms; its cause was" in said
        history = driver.run("history", "counts", COLUMNS="200").stdout
        assert "prepared" in history
        assert "420 ms" in history


def test_explain_says_why_a_query_holds_still_and_until_when(driver: Served) -> None:
    driver.run("rescale", "counts", "--upper", "2")
    shown = driver.run("explain", "counts").stdout
    assert "why nothing has changed since" in shown
    document = json.loads(driver.run("explain", "counts", "--json").stdout)
    (found,) = document["explanations"]
    assert found["held"]["kind"] == "held"
    assert found["held"]["message"] in shown
    if found["held"]["until"] is not None:
        assert "  until " in shown
    assert found["change"]["kind"] == "start"


def test_explain_without_a_query_tells_of_all_that_live(driver: Served) -> None:
    shown = driver.run("explain").stdout
    assert f"counts ({ID})" in shown
    assert f"spread ({OTHER})" in shown
    assert driver.run("stop", "spread").stdout == "spread has ended\n"
    assert f"spread ({OTHER})" not in driver.run("explain").stdout


def test_explain_tells_of_batch_stages(driver: Served) -> None:
    assert driver.run("explain", "--stages").stdout == "no batch stage was decided yet\n"
    record = {"kind": "stage", "reason": "ranges_single", "message": "Reads it.", "before": 2, "after": 1}
    for number in range(3):
        driver.world.publisher.stages.add(
            {
                "at": NOW + number, "took_us": 5, "unanswered": number, "last_us": 0,
                "question": {"type": "Ranges", "group": f"g{number}", "exchanges": [], "slots": 2},
                "answer": {"record": {**record, "numbers": {}}},
            }
        )  # fmt: skip
    lines = driver.run("explain", "--stages", "--limit", "2").stdout.splitlines()
    assert [line.split("  ", 1)[1] for line in lines[:2]] == [
        "g1  Reads it. [ranges_single]",
        "g2  Reads it. [ranges_single]",
    ]
    assert lines[2:] == ["2 questions had no answer in time, Spark's own rules decided"]
    assert len(json.loads(driver.run("explain", "--stages", "--json").stdout)["stages"]) == 3
    assert driver.run("explain", "counts", "--stages").exit_code == 2


def test_an_unknown_query_ends_with_5_and_names_the_nearest(driver: Served) -> None:
    result = driver.run("status", "conuts")
    assert (result.exit_code, result.stderr) == (
        5,
        "spark-elastic status: no query is called 'conuts': did you mean 'counts'? "
        "there are counts, spread\n",
    )


def test_a_name_of_several_queries_ends_with_5() -> None:
    with served(queries=(COUNTS, evolve(SPREAD, name="counts"))) as driver:
        result = driver.run("explain", "counts")
        assert result.exit_code == 5
        assert ID in result.stderr
        assert OTHER in result.stderr
        assert driver.run("stop", OTHER).exit_code == 0
        assert driver.run("explain", "counts").exit_code == 0  # only one query of that name is still running


def test_what_is_not_allowed_ends_with_4(driver: Served) -> None:
    driver.rights.update(may_modify=False, user="eve")
    result = driver.run("stop", "counts")
    assert result.exit_code == 4
    assert "eve may not change this application" in result.stderr
    with served({**ADAPTIVE, "spark.elastic.rest.readOnly": "true"}) as other:
        result = other.run("rescale", "counts", "--upper", "2")
        assert result.exit_code == 4
        assert "spark.elastic.rest.readOnly is true" in result.stderr


def test_names_complete_if_the_driver_answers(
    driver: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Completion must be fast for users, but a busy test machine may be slower than its limit.
    monkeypatch.setattr("spark_elastic_tools.cli.driver._COMPLETION_S", 30.0)

    def complete(line: str, **environment: str) -> list[str]:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        result = run(**{"_SPARK_ELASTIC_COMPLETE": "bash_complete", **words, **environment})
        assert result.exit_code == 0
        assert result.stderr == ""
        return [line.partition(",")[2] for line in result.stdout.splitlines() if line]

    assert complete("spark-elastic stop co", SPARK_ELASTIC_URL=driver.url) == ["counts"]
    assert complete(f"spark-elastic history --url {driver.url} 7a1") == [OTHER]
    (tmp_path / "token").write_text("abc")
    login = f"--token-file {tmp_path / 'token'}"
    assert complete(f"spark-elastic stop {login} co", SPARK_ELASTIC_URL=driver.url) == ["counts"]
    assert driver.heard[-1]["Authorization"] == "Bearer abc"
    assert complete("spark-elastic stop co", SPARK_ELASTIC_URL="http://127.0.0.1:1") == []
    assert complete("spark-elastic res") == ["rescale"]


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "complete")]
)
def test_completion_prints_a_script(shell: str, words: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert words in result.stdout
    assert "_SPARK_ELASTIC_COMPLETE" in result.stdout


def test_watch_tells_what_changes_until_the_driver_is_gone(
    driver: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, looks = Look.take, 0

    def change(look: Look) -> object:
        nonlocal looks
        looks += 1
        if looks == 2:
            driver.world.send(ev.ExecutorAdded, executor="3", host="h", cores=2)
        if looks == 3:
            driver.canned["/"] = Canned(503, '{"errors": ["the policy is busy"]}')
        if looks == 4:
            driver.canned["/"] = Canned(502)
        return take(look)

    monkeypatch.setattr(Look, "take", change)
    monkeypatch.setattr("spark_elastic_tools.cli.watch._DRIVER_TICK_S", 0.01)
    result = driver.run("watch")
    assert result.exit_code == 3
    told = [line.split(" s  ", 1)[1] for line in result.stdout.splitlines() if line]
    assert "executor 1 registered; slots: 4" in told
    assert "executor 3 registered; slots: 6" in told
    assert told[-1] == "the policy is busy"
    assert "the application has ended" in result.stderr


def test_watch_says_what_is_wrong_with_a_journal(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    file.write_text("what?\nwhat?\n")
    result = run("watch", str(file))
    assert result.exit_code == 1
    assert "no journal that can be shown" in result.stderr


def test_status_and_explain_say_what_a_policy_makes_of_a_query() -> None:
    with served(AUTOSCALE, queries=(EACH_SECOND,)) as driver:
        for number in range(4):
            batch(driver.world, number)
        shown = driver.run("status", "counts", COLUMNS="160").stdout
        assert "counts autoscale: " in shown
        assert "slots wanted, " in shown
        assert "of 80 %, 1,000 rows/s arrive" in shown
        full = driver.run("explain", "counts").stdout
        assert "what policy autoscale decides" in full
        assert "aims at a load of 80 %, 90 % before scaling up" in full
        assert "a micro-batch takes " in full
