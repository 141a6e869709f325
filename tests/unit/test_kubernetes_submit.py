"""Tests of the recipes for applications on Kubernetes itself: spark-submit, the Spark operator, and the
image.

Kubernetes' own objects, and the pod inside a SparkApplication, are checked against its published schemas. No
package has the schema of a SparkApplication, which is too large to copy: OPERATOR_FIELDS has the fields in
use.
"""

from __future__ import annotations

import copy
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from spark_elastic.core.keys.application import POLICY_FILE
from spark_elastic.core.keys.rescaling import MODE, PYTHON
from spark_elastic.settings import load
from spark_elastic.spark_conf import PLUGIN, PLUGINS, read_properties
from tests.unit.test_kubernetes import COUNT, FOLDER, TEXT, VERSIONS, only
from tests.unit.tools.init_scripts.laid_out import JARS, Machine, jar_name, write_wheel

SUBMIT = FOLDER / "submit"
OPERATOR = FOLDER / "operator" / "spark-application.yaml"
POD = {"template": {"type": "object"}, "serviceAccount": TEXT, "memoryOverhead": TEXT}
# github.com/kubeflow/spark-operator, config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml
OPERATOR_FIELDS = only(
    {
        "apiVersion": {"const": "sparkoperator.k8s.io/v1beta2"},
        "kind": {"const": "SparkApplication"},
        "metadata": only({"name": TEXT}, {"namespace": TEXT}),
        "spec": only(
            {
                "type": {"enum": ["Java", "Python", "Scala", "R"]},
                "sparkVersion": TEXT,
                "driver": only({"cores": COUNT, "memory": TEXT}, POD),
                "executor": only({"cores": COUNT, "memory": TEXT, "instances": COUNT}),
            },
            {
                "mode": {"enum": ["cluster", "client"]},
                "image": TEXT,
                "imagePullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
                "mainApplicationFile": TEXT,
                "restartPolicy": only({"type": {"enum": ["Never", "Always", "OnFailure"]}}),
                # All values are strings: true and 2 without quotes are refused.
                "sparkConf": {"type": "object", "additionalProperties": TEXT},
            },
        ),
    }
)


def documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def application() -> dict[str, Any]:
    (found,) = documents(OPERATOR)
    return found


def driver_pod() -> dict[str, Any]:
    (found,) = documents(SUBMIT / "driver-pod.yaml")
    return found


def pod_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return the pod inside a SparkApplication."""
    return {"apiVersion": "v1", "kind": "Pod", **found["spec"]["driver"]["template"]}


def check_operator(found: dict[str, Any], version: str) -> None:
    jsonschema.validate(found, OPERATOR_FIELDS)
    kubernetes_validate.validate(pod_of(found), version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_have_the_published_form(version: str) -> None:
    objects = [found for file in SUBMIT.glob("*.yaml") for found in documents(file)]
    assert sorted(found["kind"] for found in objects) == ["Pod", "Role", "RoleBinding", "ServiceAccount"]
    for found in objects:
        kubernetes_validate.validate(found, version, strict=True)
    check_operator(application(), version)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "driver", "serviceacount"), "x"),
        (("spec", "sparkConf", "spark.decommission.enabled"), True),
        (("spec", "driver", "template", "spec", "volume"), []),
        (("apiVersion",), "sparkoperator.k8s.io/v1beta1"),
    ],
)
def test_what_the_operator_would_refuse_is_found(path: tuple[str, ...], value: object) -> None:
    broken = copy.deepcopy(application())
    *places, last = path
    place = broken
    for name in places:
        place = place[name]
    place[last] = value
    with pytest.raises(jsonschema.ValidationError):
        check_operator(broken, VERSIONS[0])


def test_an_object_with_an_unknown_field_is_found() -> None:
    broken = driver_pod()
    broken["spec"]["volume"] = []
    with pytest.raises(jsonschema.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[0], strict=True)


def settings() -> dict[str, str]:
    return read_properties(SUBMIT / "application.conf")


@pytest.mark.parametrize("conf", [settings(), application()["spec"]["sparkConf"]], ids=["submit", "operator"])
def test_settings_turn_the_plugin_on_and_can_be_read(conf: dict[str, str]) -> None:
    assert conf[PLUGINS] == PLUGIN
    found = load(conf)
    assert found[MODE] == "adaptive"
    # Executors are given back gracefully, and nothing but the plugin requests any.
    assert conf["spark.decommission.enabled"] == "true"
    assert conf["spark.dynamicAllocation.enabled"] == "false"


def test_both_ways_run_the_same() -> None:
    submitted, operated = settings(), application()["spec"]
    conf = operated["sparkConf"]
    assert conf == {key: submitted[key] for key in conf}
    assert submitted["spark.kubernetes.container.image"] == operated["image"]
    assert submitted["spark.driver.memoryOverhead"] == operated["driver"]["memoryOverhead"]
    assert submitted["spark.executor.cores"] == str(operated["executor"]["cores"])
    ours, theirs = driver_pod(), pod_of(application())
    assert ours["spec"] == theirs["spec"]
    assert ours["metadata"] == theirs["metadata"]


def test_the_drivers_account_is_the_one_that_has_the_role() -> None:
    account, role, binding = documents(SUBMIT / "rbac.yaml")
    name, namespace = account["metadata"]["name"], account["metadata"]["namespace"]
    assert settings()["spark.kubernetes.authenticate.driver.serviceAccountName"] == name
    assert application()["spec"]["driver"]["serviceAccount"] == name
    assert settings()["spark.kubernetes.namespace"] == namespace == application()["metadata"]["namespace"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert "deletecollection" in role["rules"][0]["verbs"]


def test_the_policy_file_is_on_the_volume_and_its_changes_come_through() -> None:
    (container,) = driver_pod()["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    assert str(Path(settings()[POLICY_FILE.full_name]).parent) == mount["mountPath"]
    assert "subPath" not in mount  # Kubernetes never updates a file that is mounted by subPath
    (volume,) = driver_pod()["spec"]["volumes"]
    assert volume["name"] == mount["name"]


def test_the_service_of_the_drivers_ui_finds_the_driver() -> None:
    (service,) = documents(FOLDER / "driver-ui.yaml")
    assert service["spec"]["selector"].items() <= driver_pod()["metadata"]["labels"].items()


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
    python = settings()[PYTHON.full_name]
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


def test_the_image_is_of_the_spark_that_the_settings_name() -> None:
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    (version,) = re.findall(r"^ARG SPARK=(.*)$", text, re.MULTILINE)
    assert application()["spec"]["sparkVersion"] == version
    assert settings()["spark.kubernetes.container.image"].endswith(f":{version}")
