"""Tests of the Helm chart with Helm itself, which is built from its released sources: minutes, once."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path

import pytest
import yaml

from integration.chart import crds
from integration.chart.helm import CHART, FOLDER, HELM, RELEASE, HelmError, helm, render
from integration.chart.manifests import EXAMPLES, MANIFESTS, manifests
from integration.go_modules import is_built, missing_go
from spark_elastic.settings import SettingsError, load
from spark_elastic.version import __version__
from tests.unit.kubernetes.rendered import Manifest, parse
from tests.unit.kubernetes.test_objects import VERSIONS, check

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(missing_go() is not None and not is_built(HELM), reason=str(missing_go())),
]
EACH = pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
ADAPTIVE, REACTIVE = EXAMPLES / "adaptive.yaml", EXAMPLES / "reactive-hpa.yaml"


def rendered(example: Path, *options: str) -> Manifest:
    return parse(render(example, *options))


@EACH
def test_helm_has_no_complaints(example: Path) -> None:
    said = helm("lint", "--strict", str(CHART), "--values", str(example))
    assert "0 chart(s) failed" in said
    assert "WARNING" not in said


def test_the_manifests_are_what_the_chart_renders() -> None:
    made = dict(manifests())
    assert sorted(MANIFESTS.glob("*.yaml")) == sorted(made)
    for file, text in made.items():
        lines = file.read_text(encoding="utf-8").splitlines()
        differences = list(
            difflib.unified_diff(lines, text.splitlines(), file.name, "the chart", lineterm="")
        )
        assert differences == [], "type `make manifests`"


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize(
    ("example", "options", "words"),
    [
        (ADAPTIVE, ["mode=elastic"], "value must be one of 'reactive', 'adaptive'"),
        (ADAPTIVE, ["image.repository="], "image/repository"),
        (ADAPTIVE, ["executor.max=3"], "'executor' not allowed"),
        (ADAPTIVE, ["driver.memory=1.5g"], "driver/memory"),
        (ADAPTIVE, ["executors.cores=0"], "executors/cores"),
        (ADAPTIVE, ["sparkConf.elastic\\.mode=x"], "'elastic.mode' not allowed"),
        (ADAPTIVE, ["application.file="], "application.file is required, such as local://"),
        (ADAPTIVE, ["application.file=local:///app.jar"], "application.mainClass is required for a jar"),
        (ADAPTIVE, ["executors.min=9"], "executors.min (9) is more than executors.max (4)"),
        (ADAPTIVE, ["sparkConf.spark\\.task\\.cpus=3"], "executors.cores is less than spark.task.cpus"),
        (REACTIVE, ["executors.min=0"], "executors.min is 0"),
        (REACTIVE, ["operator=kubeflow"], "operator kubeflow has no Standalone cluster"),
        (ADAPTIVE, ["operator=apache", "application.kind=None"], "set operator none"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_wrong_values_are_refused_with_a_reason(example: Path, options: list[str], words: str) -> None:
    with pytest.raises(HelmError) as refused:
        render(example, *(part for option in options for part in ("--set", option)))
    assert words in str(refused.value)


def test_users_settings_take_precedence_and_keep_their_form() -> None:
    sizes = "sparkConf.spark\\.elastic\\.autoscale\\.scaleDownWindow=5min"
    found = rendered(
        ADAPTIVE,
        *("--set", sizes),
        *("--set", "sparkConf.spark\\.decommission\\.enabled=false"),
        *("--set", "sparkConf.spark\\.sql\\.files\\.maxPartitionBytes=268435456"),
        *("--set", "sparkConf.spark\\.plugins=com.example.Other"),
    ).conf()
    assert found["spark.decommission.enabled"] == "false"
    assert found["spark.sql.files.maxPartitionBytes"] == "268435456"
    assert found["spark.plugins"] == "com.example.Other,org.apache.spark.elastic.ElasticPlugin"
    load(found)
    with pytest.raises(SettingsError):
        load(rendered(ADAPTIVE, "--set", "sparkConf.spark\\.elastic\\.scheduler=x").conf())


@pytest.mark.parametrize("example", [REACTIVE, EXAMPLES / "reactive-apache.yaml"], ids=lambda path: path.stem)
def test_a_master_keeps_what_it_knows_on_the_volume_of_the_checkpoints(example: Path) -> None:
    assert (
        "SPARK_DAEMON_JAVA_OPTS"
        not in rendered(example, "--set", "checkpoints.claim=").pod("master").environment
    )
    master = rendered(example, "--set", "checkpoints.claim=shared", "--set", "checkpoints.path=/kept").pod(
        "master"
    )
    options = dict(option.split("=") for option in master.environment["SPARK_DAEMON_JAVA_OPTS"].split())
    assert options["-Dspark.deploy.recoveryMode"] == "FILESYSTEM"
    (mount,) = master.container["volumeMounts"]
    (volume,) = master.spec["volumes"]
    assert options["-Dspark.deploy.recoveryDirectory"] == f"{mount['mountPath']}/.{RELEASE}-master"
    assert mount["name"] == volume["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == "shared"


def test_a_policy_file_goes_in_as_it_is() -> None:
    file = FOLDER.parent / "policy.yaml"
    (files,) = rendered(ADAPTIVE, "--set", "policy=null", "--set-file", f"policy={file}").of("ConfigMap")
    assert files["data"]["policy.yaml"].strip() == file.read_text(encoding="utf-8").strip()


def test_without_a_policy_there_is_no_policy_file() -> None:
    found = rendered(REACTIVE)
    assert found.of("ConfigMap") == []
    assert "spark.elastic.policyFile" not in found.conf()


def test_slots_of_a_worker_count_tasks_of_several_cores() -> None:
    found = rendered(REACTIVE, "--set", "executors.cores=8,sparkConf.spark\\.task\\.cpus=2")
    (metric,) = found.one("HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["external"]["target"]["averageValue"] == "4"
    assert found.pod("worker").environment["SPARK_WORKER_CORES"] == "8"


def test_without_an_autoscaler_the_number_of_workers_is_the_lower_bound() -> None:
    found = rendered(REACTIVE, "--set", "autoscaler.kind=none,executors.min=3")
    assert found.one("Deployment", "worker")["spec"]["replicas"] == 3
    assert found.of("HorizontalPodAutoscaler") == []
    options = ("--set", "autoscaler.kind=none,executors.min=3")
    cluster = rendered(EXAMPLES / "reactive-apache.yaml", *options).one("SparkCluster")["spec"]
    assert cluster["clusterTolerations"]["instanceConfig"]["initWorkers"] == 3


def test_keda_scales_the_workers_of_a_spark_cluster_too() -> None:
    found = rendered(EXAMPLES / "reactive-apache.yaml", "--set", "autoscaler.kind=keda")
    assert found.of("HorizontalPodAutoscaler") == []
    scaling = found.one("ScaledObject")
    crds.check(scaling, crds.KEDA)
    assert scaling["spec"]["scaleTargetRef"] == {"kind": "StatefulSet", "name": "orders-worker"}


def test_a_batch_application_is_a_job() -> None:
    for example in (ADAPTIVE, REACTIVE):
        found = rendered(example, "--set", "application.kind=Job")
        check(found, VERSIONS[0])
        job = found.one("Job")["spec"]["template"]["spec"]
        assert (job["restartPolicy"], job["containers"][0]["command"]) == (
            "OnFailure",
            ["/opt/spark/bin/spark-submit"],
        )
    # Kubernetes starts a Job six times again, and so does the operator.
    apache = rendered(EXAMPLES / "adaptive-apache.yaml", "--set", "application.kind=Job")
    again = apache.one("SparkApplication")["spec"]["applicationTolerations"]["restartConfig"]
    assert (again["restartPolicy"], again["maxRestartAttempts"]) == ("OnFailure", 6)


def everything(tmp_path: Path) -> Path:
    """Write values with everything that can be left out."""
    toleration = {"key": "spot", "operator": "Exists"}
    place = {
        "env": [{"name": "TZ", "value": "UTC"}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [toleration],
        "affinity": {"nodeAffinity": {}},
    }
    values = {
        "driver": place,
        "executors": place,
        "application": {"file": "local:///app.jar", "mainClass": "Main", "arguments": ["--day", 1, True]},
        "image": {"pullSecrets": [{"name": "registry"}], "tag": "x"},
        "checkpoints": {"claim": "shared", "path": "/data"},
        "serviceAccount": {"name": "mine", "annotations": {"a": "b"}},
        "networkPolicy": {"enabled": True, "scrapers": [{"podSelector": {}}]},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "podAnnotations": {"a": "b"},
        "policy": {"version": 1, "queries": {"orders": {"upperBound": 4}}},
    }
    file = tmp_path / "everything.yaml"
    file.write_text(yaml.safe_dump(values))
    return file


@EACH
def test_all_that_can_be_set_is_valid_and_arrives(example: Path, tmp_path: Path) -> None:
    found = rendered(example, "--values", str(everything(tmp_path)))
    check(found, VERSIONS[0])
    check(found, VERSIONS[1])
    for pod in found.pods():
        assert pod.spec["nodeSelector"] == {"disk": "ssd"}
        if pod.component == "master":
            continue
        assert pod.environment["TZ"] == "UTC"
        mounted = {mount["name"]: mount["mountPath"] for mount in pod.container["volumeMounts"]}
        assert mounted["checkpoints"] == "/data"


def test_two_releases_in_a_namespace_share_nothing() -> None:
    first, second = rendered(REACTIVE), parse(helm("template", "b", str(CHART), "--values", str(REACTIVE)))
    for kind in ("Service", "Deployment", "HorizontalPodAutoscaler"):
        assert not first.names(kind) & second.names(kind)
    for pod in first.pods():
        assert not any(pod.matches(each["spec"]["selector"]) for each in second.of("Service"))


def test_the_chart_can_be_packed_and_installed_from_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELM_CACHE_HOME", str(tmp_path / "cache"))
    helm("package", str(CHART), "--destination", str(tmp_path))
    (package,) = tmp_path.glob("*.tgz")
    text = helm(
        "template", RELEASE, str(package), "--namespace", "spark", "--values", str(REACTIVE), "--skip-tests"
    )
    assert parse(text) == rendered(REACTIVE)


def test_a_change_of_the_chart_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree(CHART, tmp_path / "chart")
    values = copy / "values.yaml"
    values.write_text(values.read_text().replace("max: 20", "max: 21"))
    monkeypatch.setattr("integration.chart.helm.CHART", copy)
    made = dict(manifests())
    name = MANIFESTS / "reactive-hpa.yaml"
    assert made[name] != name.read_text(encoding="utf-8")
