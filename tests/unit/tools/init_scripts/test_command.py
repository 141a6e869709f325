"""Tests of `spark-elastic init-script`, as a user calls it, and of the scripts in conf/."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spark_elastic import __version__
from spark_elastic.core.keys.rescaling import MODE
from spark_elastic.settings import load
from spark_elastic_tools.cli.main import cli
from tests.unit.shellcheck import complaints
from tests.unit.tools.init_scripts.laid_out import WHEEL, jar_name, write_wheel

pytestmark = pytest.mark.long

CONF = Path(__file__).parents[4] / "conf"
SHOWN = {"databricks": CONF / "databricks" / "init.sh", "emr": CONF / "emr" / "bootstrap.sh"}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["init-script", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.mark.parametrize("platform", SHOWN)
def test_the_script_in_conf_is_what_the_command_writes(platform: str) -> None:
    file = SHOWN[platform].relative_to(CONF.parent)
    assert SHOWN[platform].read_text() == run(platform).output, (
        f"type `spark-elastic init-script {platform} --output {file}`"
    )


@pytest.mark.parametrize("more", [(), ("--strict", "--mode", "adaptive")], ids=["index", "place"])
@pytest.mark.parametrize(
    ("platform", "place"), [("databricks", "/Volumes/main/tools/it's here"), ("emr", "s3://b/x")]
)
def test_shellcheck_has_nothing_to_say(
    platform: str, place: str, more: tuple[str, ...], tmp_path: Path
) -> None:
    if more:
        write_wheel(tmp_path)
        more = (*more, "--from", place, "--files", str(tmp_path))
    file = tmp_path / "script.sh"
    assert run(platform, *more, "--output", file).exit_code == 0
    assert complaints(file) == ""


def test_shellcheck_finds_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text("#!/bin/bash\nrm -r $1\n")
    assert "SC2086" in complaints(file)


def test_a_script_can_be_written_to_a_file_and_run(tmp_path: Path) -> None:
    file = tmp_path / "init.sh"
    assert run("databricks", "--output", file).output == ""
    assert os.access(file, os.X_OK)
    assert file.read_text() == run("databricks").output
    refused = run("databricks", "--output", tmp_path / "none" / "init.sh")
    assert (refused.exit_code, refused.output.count("cannot be written")) == (1, 1)


def test_a_script_has_the_checksum_of_each_file_and_pips_line_for_each_wheel(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path)
    for name in (
        "PyYAML-6.0.2-cp311-cp311-manylinux1_x86_64.whl",
        "PyYAML-6.0.2-cp312-cp312-macosx_11_0.whl",
    ):
        (tmp_path / name).write_text(name)
    (tmp_path / jar_name("4.0_2.13")).write_text("jar")
    text = run("databricks", "--from", tmp_path).output
    for path in tmp_path.iterdir():
        assert f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" in text
    ours = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert f"spark-elastic=={__version__} --hash=sha256:{ours}" in text
    (line,) = [line for line in text.splitlines() if "pyyaml==6.0.2" in line]
    assert line.count("--hash=sha256:") == 2
    assert jar_name("4.0_2.13") not in text.partition("REQUIREMENTS=")[2].partition("\n\n")[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("databricks", "--from", "s3://bucket/x"), "'s3://bucket/x' is not a place for databricks"),
        (("databricks", "--from", "/Volumes/main/x"), "name /Volumes/CATALOG/SCHEMA/VOLUME"),
        (("emr", "--from", "dbfs:/x"), "'dbfs:/x' is not a place for emr"),
        (("emr", "--from", "wheels"), "'wheels' is not an absolute folder"),
        (("emr", "--from", "s3://bucket/x"), "with the same files with --files"),
        (("databricks", "--configurations"), "--configurations is for emr: leave it out"),
        (("dataproc",), "'dataproc' is not one of 'databricks', 'emr'"),
    ],
)
def test_wrong_usage_is_refused(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "has no wheel of spark-elastic: type `pip download "),
        ((WHEEL.replace(__version__, "9.9.9"),), f"9.9.9, and this is spark-elastic {__version__}"),
        (
            (WHEEL, "attrs-1.0-py3-none-any.whl", "attrs-2.0-py3-none-any.whl"),
            "has attrs 1.0 and 2.0: keep one",
        ),
        ((WHEEL, jar_name("4.0_2.13", "9.9.9")), f"9.9.9, and this is spark-elastic {__version__}"),
        ((WHEEL, "guava-1.jar"), "is neither a wheel nor a jar of spark-elastic: remove it"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    for name in names:
        (tmp_path / name).write_text(name)
    result = run("emr", "--from", "s3://bucket/x", "--files", tmp_path)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_an_index_has_no_jars_that_stand_alone(tmp_path: Path) -> None:
    write_wheel(tmp_path)
    assert "--hash=sha256:" in run("databricks", "--files", tmp_path).output
    (tmp_path / jar_name("4.0_2.13")).write_text("jar")
    result = run("databricks", "--files", tmp_path)
    assert result.exit_code == 2
    assert f"{jar_name('4.0_2.13')} is in no index" in " ".join(result.output.split())


def test_what_a_place_is_called_reaches_bash_as_it_was_typed(tmp_path: Path) -> None:
    write_wheel(tmp_path)
    place = "/Volumes/main/tools/it's $(here)/x y"
    text = run("databricks", "--from", place, "--files", tmp_path).output
    (line,) = [line for line in text.splitlines() if line.startswith("readonly FROM=")]
    shown = subprocess.run(["bash", "-c", f'{line}\nprintf %s "$FROM"'], capture_output=True, text=True)
    assert shown.stdout == place


def test_configurations_are_emrs_form_of_settings_that_can_be_used() -> None:
    (found,) = json.loads(run("emr", "--configurations", "--mode", "adaptive").output)
    assert found["Classification"] == "spark-defaults"
    assert found["Properties"]["spark.plugins"].endswith("ElasticPlugin")
    assert load(found["Properties"])[MODE] == "adaptive"
