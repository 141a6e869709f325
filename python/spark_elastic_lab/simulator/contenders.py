"""Policies as named on the command line: our own by name, and rivals with parameters."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from attrs import frozen

from spark_elastic.core.keys import called
from spark_elastic.core.keys.key import PREFIX
from spark_elastic.core.keys.policies import MAX_LAG_MS, NAMES, POLICY
from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.policies.loading import installed
from spark_elastic_lab.simulator.demand import STEP_S, Demand
from spark_elastic_lab.simulator.driver import EPOCH_MS
from spark_elastic_lab.simulator.rivals.ds2 import Ds2
from spark_elastic_lab.simulator.rivals.fixed import Fixed, Oracle
from spark_elastic_lab.simulator.rivals.flink import Flink
from spark_elastic_lab.simulator.rivals.kubernetes import Keda, LoadHpa
from spark_elastic_lab.simulator.rivals.rival import ADAPTIVE, REACTIVE, Rival
from spark_elastic_lab.simulator.rivals.spark import DynamicAllocation, StreamingAllocation
from spark_elastic_lab.simulator.scenario import Scenario

OWN: Mapping[str, Mapping[str, str]] = {
    "as-set": {},
    "reactive": REACTIVE,
    **{name: {**ADAPTIVE, POLICY.full_name: name} for name in NAMES},
}
"""Our own policies, with the settings that turn them on; `as-set` uses the scenario's own settings.

A chain of them can be named as in ``spark.elastic.policy``.
"""

_WARM_UP_S = 60.0
"""Time (s) from new executors to a rescale: stabilization, cooldown, the end of a micro-batch."""


@frozen(kw_only=True)
class Contender:
    """A policy to compare, with `settings` in addition to the scenario's; `rival` is None for our own.

    The run starts with `initial` executors, or with the scenario's number if that is None.
    """

    name: str
    settings: Mapping[str, str]
    rival: Rival | None = None
    initial: int | None = None


def _oracle(scenario: Scenario, demand: Demand, **given: Any) -> Rival:
    ahead = scenario.cluster.startup_s * (1 + scenario.cluster.startup_spread) + STEP_S + _WARM_UP_S
    return Oracle(demand=demand, ahead_s=ahead, begun=EPOCH_MS, **given)


def _fixed(scenario: Scenario, demand: Demand, executors: float | None = None) -> Rival:
    return Fixed(executors=max(demand.executors) if executors is None else int(executors))


def _keda(scenario: Scenario, demand: Demand, threshold: float | None = None, **given: Any) -> Rival:
    """Create KEDA; the default threshold is one that a user who knows the queries would choose.

    It is the number of rows that an executor processes in half the objective.
    """
    if threshold is None:
        cores = scenario.cluster.cores
        per_row = max(query.cost.read_us + query.cost.work_us for query in scenario.queries)
        threshold = max(1.0, cores * 1e6 / max(per_row, 1e-9) * scenario.max_lag_s / 2)
    return Keda(**{"threshold": threshold, "most": scenario.cluster.quota, **given})


def _within_quota(kind: Callable[..., Rival]) -> Callable[..., Rival]:
    def make(scenario: Scenario, demand: Demand, **given: Any) -> Rival:
        return kind(**{"most": scenario.cluster.quota, **given})

    return make


def _plain(kind: Callable[..., Rival]) -> Callable[..., Rival]:
    def make(scenario: Scenario, demand: Demand, **given: Any) -> Rival:
        return kind(**given)

    return make


RIVALS: Mapping[str, tuple[type[Any], Callable[..., Rival]]] = {
    "flink": (Flink, _plain(Flink)),
    "dynamic-allocation": (DynamicAllocation, _within_quota(DynamicAllocation)),
    "streaming-allocation": (StreamingAllocation, _within_quota(StreamingAllocation)),
    "hpa": (LoadHpa, _within_quota(LoadHpa)),
    "keda": (Keda, _keda),
    "ds2": (Ds2, _plain(Ds2)),
    "fixed": (Fixed, _fixed),
    "oracle": (Oracle, _oracle),
}
"""Every rival by its name: its class, whose numeric fields are its parameters, and its factory."""

_NOT_TYPED = {"demand", "ahead_s", "begun"}


def parameters(name: str) -> Mapping[str, float | None]:
    """Return a rival's parameters and their defaults, None if the scenario determines them."""
    fields = [one for one in attrs.fields(RIVALS[name][0]) if one.init and one.name not in _NOT_TYPED]
    return {one.name: None if one.default is attrs.NOTHING else float(one.default) for one in fields}


def contender(text: str, scenario: Scenario, demand: Demand) -> Contender:
    """Return the policy that a text names: one or a chain of our own and custom policies, or a rival.

    A rival's name may be followed by a colon and ``parameter=number`` pairs, separated by commas. Raises
    ValueError, which says what was found and what is allowed.
    """
    name, _, typed = text.partition(":")
    own = _own(text)
    if own is not None:
        scales = "autoscale" in own.get(POLICY.full_name, "").split(",")
        return Contender(name=text, settings={**(_objective(scenario) if scales else {}), **own})
    if name in OWN:
        raise ValueError(f"'{name}' has no parameters: set `spark.elastic.*` in the settings instead")
    if name not in RIVALS:
        names = (*OWN, *RIVALS)
        near = difflib.get_close_matches(name, names, 1)
        advice = f"type {near[0]}" if near else "name one of them, or a class as package.module:Class"
        raise ValueError(f"there is no policy '{name}', but {', '.join(names)}: {advice}")
    kind, make = RIVALS[name]
    given = _read(name, typed)
    try:
        rival = make(scenario, demand, **given)
    except ValueError as error:
        raise ValueError(f"'{text}' cannot be: {error.args[0]}") from error
    first = (
        rival.decide(ClusterView(at=EPOCH_MS, mode="reactive", slots=0))
        if kind in (Fixed, Oracle)
        else Wish()
    )
    return Contender(name=text, settings=kind.settings, rival=rival, initial=first.executors)


def _objective(scenario: Scenario) -> Mapping[str, str]:
    """Return the objective as a setting for `autoscale`, unless the scenario's settings already have one."""
    if any(called(name.removeprefix(PREFIX)) is MAX_LAG_MS for name in scenario.settings):
        return {}
    return {MAX_LAG_MS.full_name: f"{round(scenario.max_lag_s * 1_000)}ms"}


def _own(text: str) -> Mapping[str, str] | None:
    """Return the settings of a policy or chain that an application can use, or None if it is neither."""
    if text in OWN:
        return OWN[text]
    of_rival = "=" in text or text.partition(":")[0] in RIVALS
    if of_rival or not ("," in text or ":" in text or text in installed()):
        return None
    try:
        chain = POLICY.kind.parse(text)
        if RIVALS.keys() & set(chain):
            raise ValueError(text)  # a rival scales from outside and cannot be in a chain
        return {**ADAPTIVE, POLICY.full_name: POLICY.format(chain)}
    except ValueError:
        raise ValueError(f"'{text}' is no chain of policies, allowed is {POLICY.kind.allowed}") from None


def _read(name: str, typed: str) -> dict[str, float]:
    known, given = parameters(name), dict[str, float]()
    for part in filter(None, typed.split(",")):
        key, _, text = part.partition("=")
        key = key.strip().replace("-", "_")
        if key not in known:
            allowed = ", ".join(known) or "none"
            raise ValueError(f"'{name}' has no parameter '{key}', its parameters are {allowed}: type one")
        try:
            given[key] = float(text)
        except ValueError:
            raise ValueError(f"'{part}' of '{name}' is no number: type {key}=1") from None
        if not math.isfinite(given[key]) and given[key] != known[key]:
            raise ValueError(f"'{part}' of '{name}' is no finite number: type {key}=1")
        if given[key].is_integer():
            given[key] = int(given[key])
    return given
