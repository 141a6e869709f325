"""Tests of the image: the shell lines of its layer, on a machine laid out like Apache's image."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from spark_elastic.core.keys.rescaling import PYTHON
from spark_elastic.spark_conf import read_properties
from tests.unit.kubernetes.rendered import FOLDER, NAMES, Manifest, Object, manifest
from tests.unit.tools.init_scripts.laid_out import JARS, Machine, jar_name, write_wheel


def layer() -> str:
    """Return the shell lines of the image's layer."""
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    (run,) = re.findall(r"^RUN --mount=type=bind,target=/wheels ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert isinstance(run, str)
    return run.replace("\\\n", "")


def build(machine: Machine, core: str, python: str = "3.10") -> subprocess.CompletedProcess[str]:
    """Run the layer's lines on an image laid out under the machine's root."""
    (machine.root / "opt" / "spark-elastic").mkdir(parents=True)
    machine.put(f"opt/spark/jars/{core}")
    write_wheel(machine.root / "wheels")
    machine.put_python(machine.bin / "python3", python)
    lines = layer().replace("/opt/", f"{machine.root}/opt/").replace("/wheels", f"{machine.root}/wheels")
    return subprocess.run(
        ["/bin/sh", "-c", lines], env={"PATH": f"{machine.bin}:/usr/bin:/bin"}, capture_output=True, text=True
    )


@pytest.mark.parametrize("kind", JARS)
def test_the_image_has_the_jar_for_its_spark_and_the_policy(tmp_path: Path, kind: str) -> None:
    spark, scala = kind.split("_")
    machine = Machine(tmp_path)
    result = build(machine, f"spark-core_{scala}-{spark}.1.jar")
    assert (result.returncode, result.stderr) == (0, "")
    jars = machine.root / "opt" / "spark" / "jars"
    assert [path.name for path in jars.glob("spark-elastic_*")] == [jar_name(kind)]
    assert not (machine.root / "opt" / "spark-elastic" / "engine" / "spark_elastic" / "jars").exists()
    python = read_properties(FOLDER / "submit" / "application.conf")[PYTHON.full_name]
    asked = [f"{machine.root}{python}", "-c", "import spark_elastic; print(spark_elastic.__file__)"]
    said = subprocess.run(asked, capture_output=True, text=True, env={"PATH": str(machine.bin)}).stdout
    assert said.startswith(f"{machine.root}/opt/spark-elastic/engine/")


def test_an_image_of_a_spark_without_a_jar_is_not_built(tmp_path: Path) -> None:
    assert build(Machine(tmp_path), "spark-core_2.12-3.4.1.jar").returncode != 0


@pytest.mark.parametrize(("python", "fits"), [("3.8", False), ("3.9", False), ("3.10", True), ("3.12", True)])
def test_an_image_whose_python_is_too_old_says_so(tmp_path: Path, python: str, fits: bool) -> None:
    result = build(Machine(tmp_path), "spark-core_2.12-3.5.6.jar", python)
    assert (result.returncode == 0) == fits
    assert ("this image has a Python before 3.10" in result.stderr) != fits


def test_all_pods_have_the_image_of_the_spark_that_its_file_names() -> None:
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    (version,) = re.findall(r"^ARG SPARK=(.*)$", text, re.MULTILINE)
    wanted = f"REGISTRY/spark-elastic:{version}"
    for name in NAMES:
        found = manifest(name)
        images = {pod.container.get("image", wanted) for pod in found.pods()}
        images |= {
            each["spec"]["sparkConf"].get("spark.kubernetes.container.image", wanted) for each in made(found)
        }
        assert images <= {wanted}
        assert {each["spec"].get("sparkVersion", version) for each in made(found)} <= {version}
    submitted = read_properties(FOLDER / "submit" / "application.conf")
    assert submitted["spark.kubernetes.container.image"] == wanted


def made(found: Manifest) -> list[Object]:
    """Return the objects that an operator makes pods of."""
    return found.of("SparkApplication") + found.of("SparkCluster")
