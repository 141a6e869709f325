"""Tests of the init script for Databricks, run by bash on a machine laid out like the platform's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from spark_elastic import __version__
from tests.unit.docs.pages import read
from tests.unit.tools.init_scripts.laid_out import HOME, WHEEL, Machine, jar_name, write_wheel

pytestmark = pytest.mark.long

CONF = "databricks/driver/conf/00-spark-elastic.conf"
# The runtime's build renames its jars.
RENAMED = "spark--maven-trees--ml--10.x--graphframes--org.slf4j--slf4j_{}--org.slf4j__slf4j__1.7.16.jar"
ON_A_WORKER = {"DB_IS_DRIVER": "FALSE"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return databricks(tmp_path / "machine")


def databricks(folder: Path, spark: str = "3.5.0", scala: str = "2.12") -> Machine:
    folder.mkdir(parents=True)
    machine = Machine(folder, {"DB_IS_DRIVER": "TRUE"})
    machine.put("databricks/spark/VERSION", spark)
    machine.put("databricks/driver/conf/spark-branch.conf", '[driver] {\n  "spark.master" = "local[*]"\n}\n')
    other = "2.12" if scala == "2.13" else "2.13"
    for name in (RENAMED.format(scala), RENAMED.format(scala).replace("slf4j", "json4s"), "guava-2.13.jar"):
        machine.put(f"databricks/jars/{name}")
    machine.put(f"databricks/jars/one-of-another-scala_{other}-1.jar")
    machine.put_python(machine.root / "databricks" / "python" / "bin" / "python")
    return machine


def placed(machine: Machine) -> list[str]:
    return [path.name for path in (machine.root / "databricks" / "jars").glob("spark-elastic_*.jar")]


def succeed(machine: Machine, script: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    result = machine.run(script, **environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert "error" not in result.stdout, result.stdout
    return result


# The table of the page: runtime, Spark, Scala and the jar.
RUNTIMES = re.findall(
    r"^\| (\d+\.\d.*?) \| ([\d.]+) \| ([\d.]+) \| `([\d._]+)` \|$",
    read("conf/databricks/README.md").text,
    re.MULTILINE,
)


def test_the_page_names_the_runtimes_with_long_term_support() -> None:
    assert {runtime[:4] for runtime, *_ in RUNTIMES} >= {"14.3", "15.4", "16.4", "17.3"}


@pytest.mark.parametrize(
    ("spark", "scala", "kind"),
    [*(pytest.param(*row, id=runtime) for runtime, *row in RUNTIMES), ("4.2.0", "2.13", "4.2_2.13")],
)
def test_the_jar_is_that_of_the_runtime(tmp_path: Path, spark: str, scala: str, kind: str) -> None:
    machine = databricks(tmp_path / "machine", spark, scala)
    succeed(machine, machine.write("databricks"))
    assert placed(machine) == [jar_name(kind)]
    assert (machine.root / "databricks" / "jars" / jar_name(kind)).read_text() == f"jar for {kind}"


def test_a_jar_with_sparks_own_name_says_it_before_the_file_does(machine: Machine) -> None:
    machine.put("databricks/jars/spark-core_2.13-4.0.1.jar")
    succeed(machine, machine.write("databricks"))
    assert placed(machine) == [jar_name("4.0_2.13")]


def test_the_driver_is_told_of_the_plugin_and_of_a_python_that_has_the_policy(machine: Machine) -> None:
    succeed(machine, machine.write("databricks"))
    python = machine.home / "bin" / "python"
    assert (machine.root / CONF).read_text() == (
        "[driver] {\n"
        '  "spark.plugins" = "org.apache.spark.elastic.ElasticPlugin"\n'
        '  "spark.elastic.schedulerMode" = "reactive"\n'
        f'  "spark.elastic.python" = "{python}"\n'
        "}\n"
    )
    asked = [
        str(python),
        "-c",
        "import spark_elastic, sys; print(spark_elastic.__file__, sys.argv[1])",
        "a b",
    ]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said == f"{machine.home}/engine/spark_elastic/__init__.py a b\n"


def test_a_worker_gets_the_jar_alone(machine: Machine) -> None:
    succeed(machine, machine.write("databricks"), **ON_A_WORKER)
    assert placed(machine) == [jar_name("3.5_2.12")]
    assert not (machine.root / CONF).exists()
    assert not (machine.home / "engine").exists()
    assert not [call for call in machine.calls if "install" in call]


def test_other_plugins_stay_and_a_mode_that_is_set_counts(machine: Machine) -> None:
    machine.put(
        "databricks/driver/conf/10-theirs.conf",
        '[driver] {\n  # "spark.plugins" = "old.Plugin"\n  "spark.plugins" = "a.One,a.Two"\n'
        '  "spark.elastic.scheduler-mode" = "adaptive"\n}\n',
    )
    machine.put("databricks/driver/conf/20-later.conf", '[driver] { "spark.plugins" = "a.Three" }\n')
    succeed(machine, machine.write("databricks"))
    text = (machine.root / CONF).read_text()
    ours = "org.apache.spark.elastic.ElasticPlugin"
    assert f'"spark.plugins" = "a.One,a.Two,{ours}"\n' in text
    assert "schedulerMode" not in text


def test_the_mode_that_is_asked_for_is_written(machine: Machine) -> None:
    succeed(machine, machine.write("databricks", mode="adaptive"))
    assert '"spark.elastic.schedulerMode" = "adaptive"' in (machine.root / CONF).read_text()


def test_a_second_run_changes_nothing_and_says_so(machine: Machine) -> None:
    script = machine.write("databricks")
    first = succeed(machine, script)
    assert f"done: spark-elastic {__version__} is installed" in first.stdout
    before, calls = machine.tree(), len(machine.calls)
    second = succeed(machine, script)
    assert f"nothing to do: spark-elastic {__version__} is installed already" in second.stdout
    assert machine.tree() == before
    assert not [call for call in machine.calls[calls:] if "download" in call or "install" in call]


def test_what_it_did_is_in_the_log(machine: Machine) -> None:
    result = succeed(machine, machine.write("databricks"))
    log = machine.log("databricks")
    for line in (
        f"put {jar_name('3.5_2.12')} into",
        "installed the policy engine for",
        f"wrote {machine.root}",
    ):
        assert line in log
    assert set(result.stdout.splitlines()) <= set(log.splitlines())


def test_a_damaged_installation_is_repaired(machine: Machine) -> None:
    script = machine.write("databricks")
    succeed(machine, script)
    (machine.home / "engine" / "spark_elastic" / "__init__.py").write_text("broken")
    (machine.root / "databricks" / "jars" / jar_name("3.5_2.12")).write_text("broken")
    succeed(machine, script)
    assert (machine.home / "engine" / "spark_elastic" / "__init__.py").read_text() != "broken"
    assert (machine.root / "databricks" / "jars" / jar_name("3.5_2.12")).read_text() == "jar for 3.5_2.12"


def test_jars_of_other_versions_go(machine: Machine) -> None:
    machine.put(f"databricks/jars/{jar_name('3.5_2.12', '0.0.1')}")
    machine.put(f"databricks/jars/{jar_name('3.5_2.13')}")
    succeed(machine, machine.write("databricks"))
    assert placed(machine) == [jar_name("3.5_2.12")]


@pytest.mark.parametrize("trouble", ["kill", "no room on the disk"])
def test_a_run_that_ended_half_way_is_done_again(machine: Machine, trouble: str) -> None:
    script = machine.write("databricks")
    machine.trouble.write_text(trouble)
    first = machine.run(script)
    assert first.returncode == (-9 if trouble == "kill" else 0)
    assert not (machine.root / CONF).exists()
    succeed(machine, script)
    assert (machine.root / CONF).exists()
    assert list(machine.home.glob("*.part")) == []


def test_what_pip_says_is_in_the_log(machine: Machine) -> None:
    machine.trouble.write_text("no room on the disk")
    result = machine.run(machine.write("databricks"))
    assert "error: pip could not install the policy engine, see " in result.stdout
    assert "no room on the disk" in machine.log("databricks")


def harmless(machine: Machine, said: str, *, strict: bool, **environment: str) -> None:
    """Run a script that must fail: the cluster starts as plain Spark, unless the script has --strict."""
    result = machine.run(machine.write("databricks", strict=strict), **environment)
    assert result.returncode == (1 if strict else 0), result.stdout
    assert f"error: {said}" in machine.log("databricks")
    assert ("continues without spark-elastic" in result.stdout) != strict
    assert placed(machine) == []
    assert not (machine.root / CONF).exists()
    assert result.stderr == ""
    assert list(machine.folder.glob("tmp.*")) == []


@pytest.mark.parametrize("strict", [False, True])
def test_a_spark_without_a_jar_stays_plain(tmp_path: Path, strict: bool) -> None:
    said = (
        f"spark-elastic {__version__} has no jar for Spark 3.4 with Scala 2.12, only for 3.5_2.12 3.5_2.13 "
        "4.0_2.13 4.1_2.13 4.2_2.13: take a runtime with one of these, or a newer spark-elastic"
    )
    harmless(databricks(tmp_path / "machine", "3.4.1"), said, strict=strict)


def test_a_folder_without_spark_says_what_was_looked_for(machine: Machine) -> None:
    (machine.root / "databricks" / "spark" / "VERSION").unlink()
    said = f"which Spark this is cannot be told: {machine.root}/databricks/jars has no spark-core_*.jar"
    harmless(machine, said, strict=False)


@pytest.mark.parametrize("strict", [False, True])
def test_a_file_with_another_checksum_is_refused(machine: Machine, tmp_path: Path, strict: bool) -> None:
    script = machine.write("databricks", strict=strict, files=write_wheel(tmp_path / "wheels").parent)
    wheel = machine.files / WHEEL
    wheel.write_bytes(wheel.read_bytes() + b"and more")
    result = machine.run(script)
    assert result.returncode == (1 if strict else 0)
    assert f"error: {WHEEL} has the SHA-256 checksum " in result.stdout
    assert placed(machine) == []
    assert not (machine.root / CONF).exists()
    assert not [call for call in machine.calls if "install" in call]


def test_a_file_that_is_not_there_is_named(machine: Machine) -> None:
    script = machine.write("databricks")
    (machine.files / WHEEL).unlink()
    result = machine.run(script)
    assert f"error: {machine.root}/Volumes/main/tools/jars/{WHEEL} cannot be read, see " in result.stdout
    assert result.returncode == 0


@pytest.mark.parametrize("strict", [False, True])
def test_without_a_python_for_the_policy_it_says_which_there_are(machine: Machine, strict: bool) -> None:
    python = machine.root / "databricks" / "python" / "bin" / "python"
    machine.put_python(python, "3.9")
    said = (
        f"the policy engine needs Python 3.10 or later, and there is only {python} (3.9): take a Databricks "
        "Runtime from 14.3 on"
    )
    harmless(machine, said, strict=strict)


def test_a_python_without_pip_is_named(machine: Machine) -> None:
    python = machine.root / "databricks" / "python" / "bin" / "python"
    machine.put_python(python, "3.12", pip=False)
    harmless(machine, f"{python} has no pip: ", strict=False)


def test_a_disk_that_cannot_be_written_keeps_no_cluster_from_starting(machine: Machine) -> None:
    machine.put("opt", "a file instead of the folder")
    result = machine.run(machine.write("databricks"))
    assert result.returncode == 0
    assert "error: line " in machine.log("databricks")
    assert machine.run(machine.write("databricks", strict=True)).returncode == 1


def test_another_platform_is_told_from_databricks(machine: Machine) -> None:
    harmless(machine, "DB_IS_DRIVER is '', not TRUE or FALSE", strict=False, DB_IS_DRIVER="")


def test_settings_go_where_a_later_script_fails(machine: Machine) -> None:
    succeed(machine, machine.write("databricks"))
    (machine.root / "databricks" / "spark" / "VERSION").write_text("3.4.1")
    result = machine.run(machine.write("databricks"))
    assert f"removed {machine.root}/{CONF}" in result.stdout
    assert not (machine.root / CONF).exists()


def test_from_an_index_this_version_is_asked_for(machine: Machine) -> None:
    write_wheel(machine.folder / "index")
    succeed(machine, machine.write("databricks", place=None))
    (download,) = [call for call in machine.calls if " download " in call]
    assert "--only-binary=:all:" in download
    assert "--require-hashes" not in download
    assert placed(machine) == [jar_name("3.5_2.12")]


@pytest.mark.parametrize("role", ["TRUE", "FALSE"])
def test_from_an_index_files_are_taken_by_their_checksums_if_those_are_known(
    machine: Machine, role: str
) -> None:
    index = write_wheel(machine.folder / "index").parent
    (index / "attrs-25.3.0-py3-none-any.whl").write_bytes((index / WHEEL).read_bytes())
    succeed(machine, machine.write("databricks", place=None, files=index), DB_IS_DRIVER=role)
    downloads = [call for call in machine.calls if " download " in call or " install " in call]
    assert len(downloads) == (2 if role == "TRUE" else 1)
    assert all("--require-hashes" in call for call in downloads)
    # A worker needs only our own packages.
    assert ("--no-deps" in downloads[0]) == (role == "FALSE")


def test_files_may_have_a_jar_of_their_own(machine: Machine) -> None:
    (machine.files / jar_name("3.5_2.12")).write_text("a jar of another build")
    succeed(machine, machine.write("databricks"))
    assert (
        machine.root / "databricks" / "jars" / jar_name("3.5_2.12")
    ).read_text() == "a jar of another build"


def test_files_on_dbfs_are_read_through_its_folder(machine: Machine) -> None:
    write_wheel(machine.root / "dbfs" / "tools")
    succeed(machine, machine.write("databricks", place="dbfs:/tools/", files=machine.root / "dbfs" / "tools"))
    assert placed(machine) == [jar_name("3.5_2.12")]


@pytest.mark.parametrize("right", [True, False])
def test_pip_itself_takes_the_wheels_by_their_checksums(machine: Machine, right: bool) -> None:
    """No stand-in here: the script's own arguments are passed to the real pip."""
    script = machine.write("databricks")
    if not right:
        line = f"spark-elastic=={__version__} --hash=sha256:"
        text = script.read_text()
        assert line in text
        at = text.index(line) + len(line)
        script.write_text(text[:at] + "0" * 64 + text[at + 64 :])
    machine.put_real_python(machine.root / "databricks" / "python" / "bin" / "python")
    result = machine.run(script)
    assert (machine.root / CONF).exists() == right, result.stdout
    assert ("DO NOT MATCH THE HASHES" in machine.log("databricks")) != right
    assert (machine.root / HOME / "engine" / "spark_elastic").is_dir() == right
