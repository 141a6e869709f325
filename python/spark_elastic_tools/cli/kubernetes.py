"""The checks of `spark-elastic doctor --live` on Kubernetes: settings and, with kubectl, pods and quotas."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from spark_elastic.core.cluster.executors import spark_size
from spark_elastic.core.keys.key import is_on
from spark_elastic_tools.cli.check import Check
from spark_elastic_tools.client import Driver, Failure, Json

_KUBECTL_S = 20
_MOST_FAILURES = "spark.executor.maxNumFailures"
_VALIDITY = "spark.executor.failuresValidityInterval"
_OVERHEAD = "spark.driver.memoryOverhead"
_MIB = 1 << 20
# What a JVM needs beside its heap, as Spark counts it by default, and what the policy process needs, in MiB.
_BESIDE_SHARE, _BESIDE_LEAST, _POLICY = 0.1, 384, 128
# What a pod that is being started waits for without any trouble.
_USUAL = ("ContainerCreating", "PodInitializing")
# As Spark names it, and as the Helm chart does.
_DRIVER_CONTAINERS = ("spark-kubernetes-driver", "driver")
_FACTORS = {"m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_FACTORS |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


class _NotToldError(Exception):
    """kubectl has no answer; the message says why."""


def checks(driver: Driver, application: str) -> Iterator[Check]:
    """Check a running application (its id); yield nothing if Spark does not tell, or runs elsewhere."""
    try:
        conf = driver.spark_settings(application)
    except Failure:
        return
    if not conf.get("spark.master", "").startswith("k8s://"):
        return
    yield from executor_failures(conf)
    namespace = conf.get("spark.kubernetes.namespace", "default")
    try:
        pods = _get(namespace, "pods", f"--selector=spark-app-selector={application},spark-role=executor")
        quotas = _get(namespace, "resourcequotas")
    except _NotToldError as reason:
        yield Check.ok("pods", f"not looked at: {reason}")
        return
    yield from _pods(namespace, pods)
    yield from _quotas(pods, quotas)
    name = conf.get("spark.kubernetes.driver.pod.name")
    if name is not None:
        with suppress(_NotToldError):
            for driver_pod in _get(namespace, "pods", f"--field-selector=metadata.name={name}"):
                yield from _driver_memory(conf, driver_pod)


def executor_failures(conf: Mapping[str, str]) -> Iterable[Check]:
    """Warn that Spark ends an application that runs for long because executors fail now and then."""
    instances = conf.get("spark.executor.instances", "0")
    if _MOST_FAILURES in conf or _VALIDITY in conf or is_on(conf, "spark.dynamicAllocation.enabled"):
        return
    most = max(3, 2 * int(instances)) if instances.isdecimal() else 3
    yield Check.warn(
        "failures",
        f"Spark ends the application after more than {most} failures of executors, however long ago; in "
        "Spark 4.2 a pod that a quota refuses is one",
        f"set {_MOST_FAILURES} to 2147483647 to go on with the executors that are there",
    )


def _driver_memory(conf: Mapping[str, str], pod: Json) -> Iterable[Check]:
    """Warn of a driver's container that has no room for the policy process beside the JVM."""
    containers = pod["spec"]["containers"]
    container = next((each for each in containers if each["name"] in _DRIVER_CONTAINERS), containers[0])
    limit = (container.get("resources", {}).get("limits") or {}).get("memory")
    try:
        heap = spark_size(conf.get("spark.driver.memory", "1g")) // _MIB
    except ValueError:
        return
    if limit is None:
        return
    room = int(_amount(limit)) // _MIB - heap
    of_jvm = max(_BESIDE_LEAST, int(_BESIDE_SHARE * heap))
    if room >= of_jvm + _POLICY:
        yield Check.ok("memory", f"{room} MiB beside the heap of the driver")
        return
    yield Check.warn(
        "memory",
        f"the driver's container has {room} MiB beside the heap of {heap} MiB; its JVM needs up to {of_jvm}, "
        f"and the policy process {_POLICY}",
        f"set {_OVERHEAD} to {of_jvm + _POLICY}m or more, else the kernel may end the container",
    )


def _get(namespace: str, *what: str) -> list[Json]:
    """Return the objects of a kind. Raises _NotToldError."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise _NotToldError("there is no kubectl here")
    command = [kubectl, f"--namespace={namespace}", "get", *what, "--output=json"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_KUBECTL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _NotToldError("kubectl does not answer") from error
    if run.returncode != 0:
        raise _NotToldError(f"kubectl says: {run.stderr.strip().rpartition(chr(10))[2]}")
    return list(json.loads(run.stdout)["items"])


def _pods(namespace: str, pods: Sequence[Json]) -> Iterable[Check]:
    phases = Counter(pod["status"].get("phase") for pod in pods)
    if not pods:
        yield Check.warn(
            "pods",
            f"no executor of it has a pod in the namespace {namespace}",
            "let kubectl use the application's cluster; if it does, search the driver's log for 'forbidden'",
        )
    elif phases["Running"]:
        yield Check.ok("pods", f"{phases['Running']} running")
    waiting: dict[str, list[str]] = {}
    for pod in pods:
        if pod["status"].get("phase") == "Pending":
            waiting.setdefault(_why_pending(pod), []).append(pod["metadata"]["name"])
    for why, names in waiting.items():
        yield Check.warn(
            "pods",
            f"{len(names)} pending: {why}",
            f"type kubectl --namespace={namespace} describe pod {names[0]} for more",
        )


def _why_pending(pod: Json) -> str:
    status = pod["status"]
    for container in status.get("containerStatuses") or ():
        state = container.get("state", {}).get("waiting") or {}
        if state.get("reason", _USUAL[0]) not in _USUAL:
            return ": ".join(filter(None, (state["reason"], state.get("message"))))
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False"):
            return str(condition.get("message") or condition.get("reason"))
    return "being started"


def _quotas(pods: Sequence[Json], quotas: Sequence[Json]) -> Iterable[Check]:
    """Warn of quotas that have no room for one more executor like those that are there."""
    needs = _needs(pods[0]) if pods else {"pods": 1.0}
    for quota in quotas:
        status = quota.get("status", {})
        hard, used = status.get("hard") or {}, status.get("used") or {}
        full = [
            f"{name} {used[name]} of {hard[name]}"
            for name, need in needs.items()
            if name in hard and name in used and _amount(hard[name]) - _amount(used[name]) < need
        ]
        if full:
            yield Check.warn(
                "quota",
                f"{quota['metadata']['name']} has no room for another executor: {', '.join(full)}",
                "raise it, or lower spark.elastic.maxExecutors",
            )


def _needs(pod: Json) -> dict[str, float]:
    """Return what a pod takes of a quota, by the quota's names."""
    needs = {"pods": 1.0}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources", {})
        for kind in ("requests", "limits"):
            for name, text in (resources.get(kind) or {}).items():
                names = (f"requests.{name}", name) if kind == "requests" else (f"limits.{name}",)
                for each in names:
                    needs[each] = needs.get(each, 0.0) + _amount(text)
    return needs


def _amount(quantity: str) -> float:
    """Return Kubernetes' `500m` or `2Gi` as a number; what it cannot read counts as nothing."""
    found = re.fullmatch(r"([0-9.]+(?:[eE][+-]?\d+)?)([A-Za-z]*)", quantity)
    return float(found[1]) * _FACTORS.get(found[2], 0.0) if found else 0.0
