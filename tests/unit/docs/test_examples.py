"""Tests that the programs that read the examples in README and docs accept them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spark_elastic import __version__
from spark_elastic.policy_file import load_policy
from spark_elastic.settings import load
from spark_elastic.spark_conf import PLUGIN, PLUGINS, read_properties
from spark_elastic_lab.simulator.scenario_file import read_scenario
from spark_elastic_tools.cli.main import cli
from tests.unit.docs.known import KNOWN
from tests.unit.docs.pages import CHECKOUT, GUIDE, Block
from tests.unit.docs.shell import commands
from tests.unit.kubernetes.rendered import manifest

_SIMULATED = next(pattern for pattern in KNOWN if pattern.endswith("simulate --load .*"))


def blocks(language: str) -> list[Block]:
    return [block for page in GUIDE for block in page.blocks if block.language == language]


def having(language: str, words: str) -> list[Block]:
    return [block for block in blocks(language) if words in block.text]


@pytest.mark.parametrize("block", blocks("properties"), ids=str)
def test_settings_can_be_used_as_they_stand(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text(block.text, encoding="utf-8")
    conf = read_properties(file)
    load(conf)
    assert conf.get(PLUGINS, PLUGIN) == PLUGIN


@pytest.mark.parametrize("block", having("yaml", "version: 1"), ids=str)
def test_a_policy_file_can_be_read(block: Block) -> None:
    assert load_policy(block.text.encode()).queries


def test_the_scenario_can_be_read() -> None:
    (block,) = having("yaml", "trigger_s")
    found = read_scenario(block.text)
    assert found.queries[0].source.most_rows == 2_000_000
    assert found.cluster.mtbf_h == 200


def test_every_yaml_is_one_of_those() -> None:
    for block in blocks("yaml"):
        known = {"version", "queries", "groups", "scrape_configs"}
        assert known & set(yaml.safe_load(block.text)), str(block)


def test_the_step_of_emr_calls_the_script_where_it_is() -> None:
    (block,) = blocks("json")
    (step,) = json.loads(block.text)
    shell, script, command = step["Args"]
    assert (step["Jar"], shell, command) == ("command-runner.jar", "bash", "configure")
    text = (CHECKOUT / "conf/emr/bootstrap.sh").read_text(encoding="utf-8")
    assert f"{script.replace('VERSION', __version__)},{command}]" in text


def test_prometheus_asks_where_the_metrics_are_and_whom_the_service_names() -> None:
    (job,) = yaml.safe_load(having("yaml", "scrape_configs")[0].text)["scrape_configs"]
    assert job["metrics_path"] == "/elastic/metrics/"
    kept, *given = job["relabel_configs"]
    service = manifest("reactive-hpa").one("Service", "driver")
    found = {
        f"__meta_kubernetes_service_label_{re.sub(r'[^a-z]', '_', name)}": value
        for name, value in service["metadata"]["labels"].items()
    }
    (port,) = service["spec"]["ports"]
    found["__meta_kubernetes_endpointslice_port_name"] = port["name"]
    assert kept["regex"] == ";".join(found[label] for label in kept["source_labels"])
    # What autoscalers select by.
    assert {each["target_label"] for each in given} == {"namespace", "service"}


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


def test_the_simulation_that_is_shown_runs(tmp_path: Path) -> None:
    (shown,) = (
        command
        for block in blocks("shell")
        for command in commands(block)
        if re.fullmatch(_SIMULATED, " ".join(command)) and "pictures" in command
    )
    *words, folder = shown[1:]
    assert folder == "pictures"
    result = CliRunner().invoke(cli, [*words, str(tmp_path), "--hours", "0.2"])
    assert result.exit_code == 0, result.output
    assert sorted(file.stem for file in tmp_path.iterdir()) == ["autoscale", "flink"]
