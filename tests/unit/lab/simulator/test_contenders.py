"""Tests that users select policies by name, with their numbers."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic_lab.simulator.contenders import OWN, RIVALS, contender, parameters
from spark_elastic_lab.simulator.demand import demand
from spark_elastic_lab.simulator.rivals.flink import Flink
from spark_elastic_lab.simulator.rivals.kubernetes import Keda
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.simulation import simulate
from tests.unit.lab.simulator.scenes import query, scenario

SCENE = scenario(query(load="constant:rate=3000"), hours=0.5)
NEEDED = demand(SCENE, SCENE.loads())


@pytest.mark.parametrize("name", [*OWN, *RIVALS])
def test_every_policy_runs_by_its_name_alone(name: str) -> None:
    (result,) = simulate(SCENE, [name])
    assert result.policy == name
    assert result.metrics.executor_hours > 0
    assert result.notes.queries["counts"].commits


@pytest.mark.parametrize("name", RIVALS)
def test_a_parameter_is_a_number(name: str) -> None:
    for parameter, default in parameters(name).items():
        value = 5 if default is None else default
        if value == value and value < 1e9:
            assert contender(f"{name}:{parameter}={value}", SCENE, NEEDED).rival is not None


def test_parameters_reach_the_rule() -> None:
    flink = contender("flink:target=0.5,interval-s=30", SCENE, NEEDED).rival
    assert isinstance(flink, Flink)
    assert (flink.target, flink.interval_s) == (0.5, 30)
    keda = contender("keda:threshold=100", SCENE, NEEDED).rival
    assert isinstance(keda, Keda)
    assert keda.threshold == 100


def test_what_a_scenario_tells_is_chosen_by_it() -> None:
    keda = contender("keda", SCENE, NEEDED).rival
    assert isinstance(keda, Keda)
    # A core processes 1,000 rows/s, and half the objective is 15 s.
    assert keda.threshold == 15_000
    assert contender("fixed", SCENE, NEEDED).initial == contender("oracle", SCENE, NEEDED).initial == 4
    assert contender("fixed:executors=9", SCENE, NEEDED).initial == 9
    assert contender("flink", SCENE, NEEDED).initial is None
    assert contender("autoscale", SCENE, NEEDED).settings["spark.elastic.autoscale.maxLag"] == "30000ms"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flinc", "no policy 'flinc'.*type flink"),
        ("zzz", "name one of them"),
        ("reactive:x=1", "has no parameters"),
        ("flink:x=1", "no parameter 'x', its parameters are target"),
        ("flink:target=x", "no number"),
        ("flink:target=nan", "no finite number"),
        ("fixed:executors=inf", "'executors=inf' of 'fixed' is no finite number"),
        ("oracle:keep_s=inf", "no finite number"),
        ("keda:interval_s=inf", "no finite number"),
        ("ds2:ratio=-inf", "no finite number"),
        ("flink:target=-1", "'flink:target=-1' cannot be"),
        ("fixed:executors=0", "cannot be"),
    ],
)
def test_a_wrong_text_is_answered_with_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        contender(text, SCENE, NEEDED)


@pytest.mark.parametrize("rival", ["flink", "ds2"])
def test_a_rival_begins_with_what_is_there_whatever_was_declared_for_us(rival: str) -> None:
    declared = {"spark.elastic.query.counts.upperBound": "64", "spark.elastic.query.counts.lower-bound": "9"}
    (result,) = simulate(evolve(SCENE, settings=declared, hours=0.02), [rival])
    assert result.notes.wanted.values == [4]
    assert result.notes.queries["counts"].partitions.values[0] == 4


@pytest.mark.parametrize("policy", ["reactive", "declared", "autoscale", "flink", "dynamic-allocation"])
@pytest.mark.parametrize("whose", ["", "query.counts."])
def test_who_scales_in_a_scenario_is_no_part_of_other_policies(policy: str, whose: str) -> None:
    adaptive = {**SCENE.settings, "spark.elastic.schedulerMode": "adaptive"}
    set_ = {**adaptive, f"spark.elastic.{whose}policy": "autoscale", "spark.elastic.adviseOnly": "true"}
    as_set, alone = (metrics_of(evolve(SCENE, settings=one), policy) for one in (set_, adaptive))
    assert as_set == alone


@pytest.mark.parametrize("name", ["spark.elastic.autoscale.maxLag", "spark.elastic.autoscale.max-lag"])
@pytest.mark.parametrize("said", ["5s", "none"])
def test_the_lag_that_the_settings_allow_counts_more_than_the_objective(name: str, said: str) -> None:
    scene = evolve(SCENE, settings={**SCENE.settings, name: said})
    (result,) = simulate(scene, ["autoscale"])
    assert result.scenario.settings[name] == said
    assert [key for key in result.scenario.settings if "lag" in key.lower()] == [name]
    assert result.scenario.max_lag_s == SCENE.max_lag_s


EXAMPLES = "tests.unit.policies.examples"


def test_a_custom_policy_runs_and_gives_the_same_each_time() -> None:
    first, again = (next(iter(simulate(SCENE, [f"{EXAMPLES}:Steady"]))) for _ in range(2))
    assert first.notes.reasons["policy_says"] >= 1
    assert first.metrics == again.metrics


def test_its_options_are_in_the_settings_and_harm_no_other_contender() -> None:
    option = {"spark.elastic.policy.Steady.slots": "1"}
    scene = evolve(SCENE, settings={**SCENE.settings, **option})
    few, usual = (metrics_of(what, f"{EXAMPLES}:Steady") for what in (scene, SCENE))
    assert few < usual
    assert len(list(simulate(scene, ["autoscale", "flink", f"autoscale,{EXAMPLES}:Steady"]))) == 3


def metrics_of(what: Scenario, policy: str) -> float:
    (result,) = simulate(what, [policy])
    return result.metrics.executor_hours


def test_one_that_fails_is_in_the_simulation_what_it_is_in_an_application() -> None:
    (result,) = simulate(SCENE, [f"{EXAMPLES}:Raises"])
    assert result.notes.reasons["policy_failed"] == 1
    assert result.notes.queries["counts"].commits


@pytest.mark.parametrize(
    ("policy", "option", "said"),
    [
        ("no_such:Policy", {}, "the policy no_such:Policy cannot be imported"),
        (f"{EXAMPLES}:Steady", {"slots": "many"}, "cannot be made with slots=many"),
        ("autoscale", {"slots": "3"}, r"policy\.Steady\.slots is for the policy Steady, which nothing uses"),
        ("autoscale,x=y", {}, "there is no policy"),
        ("autoscale,a b", {}, "is no chain of policies"),
    ],
)
def test_one_that_cannot_be_is_refused(policy: str, option: dict[str, str], said: str) -> None:
    options = {f"spark.elastic.policy.Steady.{name}": text for name, text in option.items()}
    scene = evolve(SCENE, settings={**SCENE.settings, **options})
    with pytest.raises(ValueError, match=said):
        list(simulate(scene, [policy]))
