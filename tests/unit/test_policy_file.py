"""Tests of the policy file: what it can contain, and the errors about an invalid one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.bounds.declared import WantedBounds, WantedSharing
from spark_elastic.policy_file import MAX_SIZE, PolicyFile, PolicyFileError, load_policy

EXAMPLE = Path(__file__).parents[2] / "conf" / "policy.yaml"
FIELDS = "vertices, lowerBound, upperBound, target, priority, weight, slotSharingGroup"
BOUND = "a whole number from 1 to 32768, or -1 for no bound"


@pytest.fixture(autouse=True, params=["parser in C", "parser in Python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test with both of PyYAML's parsers: not every installation has the one in C."""
    if request.param == "parser in Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML is installed without its parser in C")


def pair(lower: int = -1, upper: int = -1) -> WantedBounds:
    return WantedBounds(lower=lower, upper=upper)


def errors(text: str | bytes) -> tuple[str, ...]:
    with pytest.raises(PolicyFileError) as refusal:
        load_policy(text)
    assert refusal.value.errors
    return refusal.value.errors


def error(text: str | bytes) -> str:
    (found,) = errors(text)
    return found


def queries(*lines: str) -> str:
    return "\n".join(["version: 1", "queries:", *(f"  {line}" for line in lines)])


def test_the_example_says_what_it_shows() -> None:
    assert load_policy(EXAMPLE.read_text(encoding="utf-8")) == PolicyFile(
        defaults=pair(1),
        queries={
            "counts": {"shuffle": pair(2, 6)},
            "orders": {"shuffle": pair(1, 8), "source-0": pair(1, 4)},
        },
        sharing={"counts": WantedSharing(priority=1, weight=2.0), "orders": WantedSharing(group="reports")},
        settings={
            "orders-*": {
                "restartStrategy.type": "fixed-delay",
                "restartStrategy.fixedDelay.attempts": "5",
                "adaptiveScheduler.executing.cooldownAfterRescaling": "2min",
            },
            "legacy": {"schedulerMode": "off"},
        },
    )


def test_what_is_left_out_is_that_of_the_defaults() -> None:
    text = """
version: 1
defaults: {lowerBound: 2, upperBound: 8}
queries:
  a: {upperBound: 6}
  b: {lowerBound: 3}
  c: {upperBound: -1}
  d: {vertices: {shuffle: {upperBound: 5}, source-0: {lowerBound: -1}}}
"""
    assert load_policy(text).queries == {
        "a": {"shuffle": pair(2, 6)},
        "b": {"shuffle": pair(3, 8)},
        "c": {"shuffle": pair(2, -1)},
        "d": {"shuffle": pair(2, 5), "source-0": pair(-1, 8)},
    }
    assert load_policy(queries("a: {upperBound: 6}")).queries == {"a": {"shuffle": pair(-1, 6)}}


@pytest.mark.parametrize(
    "text",
    ["version: 1", "\ufeffversion: 1\n", "{version: 1}", "---\nversion: 1\ndefaults:\nqueries:\n...\n"],
)
def test_a_file_may_say_nothing(text: str) -> None:
    assert load_policy(text) == load_policy(text.encode()) == PolicyFile()


def test_a_name_is_a_text_whatever_yaml_takes_it_for() -> None:
    names = load_policy(
        queries("on: {upperBound: 6}", "12: {upperBound: 6}", "'null': {upperBound: 6}")
    ).queries
    assert list(names) == ["on", "12", "null"]


def test_every_error_is_found_with_its_line_and_its_path() -> None:
    text = """version: 2
default: {}
queries:
  counts:
    upperBound: x
    lowerbound: 3
  counts: {upperBound: 1}
  a.b:
    vertices: {shufle: {lowerBound: 5, upperBound: 2}}
    upperBound: 3
  list: []
  nothing:
  empty: {}
"""
    assert errors(text) == (
        "line 1: version is '2', allowed is 1: write version: 1",
        "line 2: default is no field, the nearest is defaults: write that or remove it",
        f"line 5: queries.counts.upperBound is 'x', allowed is {BOUND}: write upperBound: -1",
        "line 6: queries.counts.lowerbound is no field, the nearest is lowerBound: write that or remove it",
        "line 7: queries.counts is there twice, first in line 4, allowed is once: keep one",
        "line 9: queries.'a.b'.vertices.shufle is no vertex, the nearest is shuffle: write that or remove it",
        "line 9: queries.'a.b'.vertices.shufle.lowerBound is 5, allowed is up to upperBound, 2: "
        "write 2 or less",
        "line 10: queries.'a.b'.upperBound is beside vertices, allowed is one of the two: "
        "move it to vertices.shuffle",
        f"line 11: queries.list is a list, allowed is a mapping of {FIELDS}: "
        "write it indented below, or remove it",
        f"line 12: queries.nothing is empty, allowed is a mapping of {FIELDS}: "
        "write it indented below, or remove it",
        "line 13: queries.empty is empty, allowed is lowerBound and upperBound: write one or remove it",
    )


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("x", "'x'"),
        ("0", "'0'"),
        ("-2", "'-2'"),
        ("010", "'010'"),
        ("1.0", "'1.0'"),
        ("1_000", "'1_000'"),
        ("true", "'true'"),
        ("", "empty"),
        ("[1]", "a list"),
        ("{a: 1}", "a mapping"),
        ('"six"', "the text 'six'"),
        ("40000", "'40000'"),
        ("9" * 5_000, f"'{'9' * 60}…'"),
    ],
)
def test_only_whole_numbers_are_bounds(written: str, shown: str) -> None:
    assert error(f"version: 1\ndefaults:\n  upperBound: {written}") == (
        f"line 3: defaults.upperBound is {shown}, allowed is {BOUND}: write upperBound: -1"
    )


def test_a_lower_bound_is_compared_with_the_upper_one_of_the_defaults() -> None:
    defaults = "defaults: {lowerBound: 4, upperBound: 8}\n"
    text = f"version: 1\n{defaults}queries:\n  a: {{lowerBound: 9}}\n  b: {{upperBound: 3}}\n"
    assert errors(text) == (
        "line 4: queries.a.lowerBound is 9, allowed is up to upperBound, 8 of the defaults: write 8 or less",
        "line 5: queries.b.lowerBound is 4 of the defaults, allowed is up to upperBound, 3: write 3 or less",
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty: begin it with version: 1"),
        ("# nothing\n", "the file is empty: begin it with version: 1"),
        ("defaults: {upperBound: 2}", "line 1: version is not there, but has to be: write version: 1"),
        ("- a", "line 1: the file is a list, allowed is a mapping of version, defaults, queries"),
        ("version: 1\nqueries: 5", "line 2: queries is '5', allowed is a mapping of names with values"),
        ("version: 1\n---\na: 1", "line 2: a second document begins here, allowed is one: remove it"),
        (b"version: \xff", "the file is no UTF-8 text: save it as UTF-8"),
        ("version: \ud800", "the file is no UTF-8 text: save it as UTF-8"),
        (
            "version: 1\n#" + "x" * MAX_SIZE,
            "the file is too long, allowed is up to 1048576 bytes: shorten it",
        ),
        ("version: 1\nqueries: {", "the file is no YAML: "),
        ("version: 1\n\tqueries: 1", "line 2: the file is no YAML: "),
        ("version: \x00", "the file is no YAML: unacceptable character"),
        ("version: 1\n? [a]\n: 2", "line 2: a name in the file is a list, allowed is a text: write one"),
        (queries("? ", ": {upperBound: 2}"), "line 3: a name in queries is empty, allowed is a text"),
    ],
)
def test_what_is_no_policy_is_refused(text: str | bytes, says: str) -> None:
    assert says in error(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version: 1\ndefaults: &a {upperBound: 2}", "line 2: defaults: a is an anchor"),
        ("version: 1\ndefaults: *a", "line 2: defaults: *a is an alias"),
        ("!!map {version: 1}", "line 1: tag:yaml.org,2002:map is a tag"),
        ("version: !!python/object/apply:os.system [ls]", "python/object/apply:os.system is a tag"),
    ],
)
def test_a_value_is_what_is_written_there(text: str, says: str) -> None:
    assert any(says in found for found in errors(text))


@pytest.mark.parametrize("text", ["[" * 1_000_000, "{a: " * 200_000, "- " * 10_000])
def test_a_deep_file_is_given_up_at_once(text: str) -> None:
    assert error(text) == "line 1: the file is nested too deeply here"


def test_a_file_that_grows_by_aliases_does_not() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert "is an alias" in errors("\n".join(["l0: &l0 lol", *levels]))[-1]


WANTED = st.tuples(st.just(-1) | st.integers(1, 9), st.just(-1) | st.integers(9, 32_768)).map(
    lambda bounds: pair(*bounds)
)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1)


@settings(max_examples=30)
@given(defaults=st.none() | WANTED, bounds=st.dictionaries(NAMES, WANTED, max_size=4))
def test_what_is_written_is_what_is_read(
    defaults: WantedBounds | None, bounds: dict[str, WantedBounds]
) -> None:
    def plain(wanted: WantedBounds) -> dict[str, int]:
        return {"lowerBound": wanted.lower, "upperBound": wanted.upper}

    value = {
        "version": 1,
        **({} if defaults is None else {"defaults": plain(defaults)}),
        "queries": {name: {"vertices": {"shuffle": plain(wanted)}} for name, wanted in bounds.items()},
    }
    assert load_policy(yaml.safe_dump(value)) == PolicyFile(
        defaults=defaults, queries={name: {"shuffle": wanted} for name, wanted in bounds.items()}
    )


PIECES = st.sampled_from(
    ["version: 1\n", "queries:\n", "  a:\n", "defaults:", "lowerBound: 1\n", " upperBound: ", "-1", "*a",
     "&a ", "!!int ", "\n", "  ", "- ", "? ", ": ", " {", "}", "[", "]", "'", '"', "|", "---\n", "...", "#"]
)  # fmt: skip


@settings(max_examples=200)
@given(text=st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=20) | st.binary(max_size=20))
def test_whatever_is_in_a_file_it_is_read_or_refused(text: str | bytes) -> None:
    with suppress(PolicyFileError):
        assert isinstance(load_policy(text), PolicyFile)


def test_how_queries_share_slots() -> None:
    text = """version: 1
defaults: {weight: 2}
queries:
  counts: {lowerBound: 2, priority: -3, weight: 0.5}
  orders:
    slotSharingGroup: etl
    vertices: {source-0: {slotSharingGroup: kafka.in, upperBound: 3}, source-1: {slotSharingGroup: files}}
"""
    policy = load_policy(text)
    assert policy.default_sharing == WantedSharing(weight=2.0)
    assert policy.defaults is None
    assert policy.sharing == {
        "counts": WantedSharing(priority=-3, weight=0.5),
        "orders": WantedSharing(group="etl", groups={"source-0": "kafka.in", "source-1": "files"}),
    }
    assert policy.queries == {"counts": {"shuffle": pair(lower=2)}, "orders": {"source-0": pair(upper=3)}}


def test_what_is_wrong_about_sharing_is_said() -> None:
    text = """version: 1
queries:
  a: {priority: 1.5, weight: 0}
  b: {priority: '1', lower-bound: '2', slotSharingGroup: a b}
  c: {vertices: {source-0: {weight: 2}}}
"""
    assert errors(text) == (
        "line 3: queries.a.priority is '1.5', allowed is a whole number from -1000000 to 1000000: "
        "write priority: 0",
        "line 3: queries.a.weight is '0', allowed is a number above 0, up to 1000000: write weight: 1.0",
        "line 4: queries.b.slotSharingGroup is 'a b', allowed is a name of up to 60 letters, digits, dots, "
        "dashes and underscores: write slotSharingGroup: etl",
        "line 5: queries.c.vertices.source-0.weight is no field, the nearest is lowerBound: "
        "write that or remove it",
    )


def test_settings_stand_beside_the_bounds_by_name_by_pattern_and_in_the_defaults() -> None:
    policy = load_policy(
        """
version: 1
defaults:
  restartStrategy.type: exponential-delay
queries:
  orders-*:
    restart-strategy.exponential-delay.max-backoff: 5min
    upperBound: 4
  legacy:
    schedulerMode: off
  counts:
    maxParallelism: "12"
    vertices:
      shuffle: {upperBound: 3}
"""
    )
    assert policy.default_settings == {"restartStrategy.type": "exponential-delay"}
    assert policy.defaults is None
    assert policy.settings == {
        "orders-*": {"restartStrategy.exponentialDelay.maxBackoff": "5min"},
        "legacy": {"schedulerMode": "off"},
        "counts": {"maxParallelism": "12"},
    }
    assert policy.queries == {
        "orders-*": {"shuffle": WantedBounds(upper=4)},
        "counts": {"shuffle": WantedBounds(upper=3)},
    }
    assert PolicyFile.of(policy.event("r1", 1, "/p")) == policy


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (
            "journal.dir: /x",
            "line 4: queries.a.'journal.dir' is of one query, allowed is journal.dir for the whole "
            "application only: set spark.elastic.journal.dir in the application's settings, and remove it "
            "here",
        ),
        (
            "maxParallelism: {a: 1}",
            "line 4: queries.a.maxParallelism is a mapping, allowed is a whole number from 1 to 32768: "
            "write maxParallelism: 32768",
        ),
        (
            "schedulerMode: of",
            "line 4: queries.a.schedulerMode is 'of', allowed is one of reactive, adaptive, off: "
            "write schedulerMode: off",
        ),
        (
            "restartStrategy.typ: none",
            "line 4: queries.a.'restartStrategy.typ' is no field, the nearest is restartStrategy.type: "
            "write that or remove it",
        ),
    ],
)
def test_a_setting_that_a_query_cannot_have_is_refused_with_its_line(line: str, error: str) -> None:
    with pytest.raises(PolicyFileError) as raised:
        load_policy(f"version: 1\nqueries:\n  a:\n    {line}\n")
    assert raised.value.errors == (error,)


def test_settings_of_a_query_that_contradict_each_other_are_refused() -> None:
    backoff = "restartStrategy.exponentialDelay"
    text = f"{backoff}.initialBackoff: 9s, {backoff}.maxBackoff: 2s"
    with pytest.raises(PolicyFileError, match="allowed is at least the initial backoff, '9s'"):
        load_policy(f"version: 1\nqueries:\n  a: {{{text}}}\n")
