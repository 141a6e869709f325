"""The rule of Flink's autoscaler: from rates to a parallelism.

Source: apache/flink-kubernetes-operator, module flink-autoscaler (``ScalingMetricEvaluator``,
``AutoScalerUtils``, ``JobVertexScaler``), with its options and their defaults.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen


@frozen(kw_only=True)
class FlinkOptions:
    """Options ``job.autoscaler.*``; names that end in ``_s`` are s.

    Utilizations that are None are `boundary` above and below the target.
    """

    target: float = 0.7
    boundary: float = 0.3
    max_utilization: float | None = None
    min_utilization: float | None = None
    catch_up_s: float = 1_800.0
    restart_s: float = 300.0
    down_factor: float = 0.6
    up_factor: float = 100_000.0
    min_parallelism: int = 1
    max_parallelism: int = 200
    backlog_s: float = 300.0

    @property
    def most_used(self) -> float:
        """The load above which it scales up."""
        return self.target + self.boundary if self.max_utilization is None else self.max_utilization

    @property
    def least_used(self) -> float:
        """The load below which it scales down."""
        return self.target - self.boundary if self.min_utilization is None else self.min_utilization


@frozen(kw_only=True)
class Rates:
    """Rates of a vertex (rows/s): what comes in, and what it could do while it works, infinity without work.

    `lag` is in rows; `lag_rate` is what of it is to be done each second, None: by the time to catch up.
    `catching_up` says that the lag is more than the backlog threshold, so that only what is needed counts.
    """

    target: float
    true: float
    lag: float = 0.0
    lag_rate: float | None = None
    catching_up: bool = False


@frozen(kw_only=True)
class Evaluated:
    """What the rule makes of them: a new parallelism, and whether the rates are outside of their band."""

    capacity: float
    up: float
    down: float
    factor: float
    parallelism: int
    outside: bool


def capacity(rates: Rates, utilization: float, options: FlinkOptions, *, with_restart: bool) -> float:
    """Return the rate that is to be possible at a utilization (0 to 1): input, backlog, restart."""
    if utilization <= 0:
        return math.inf
    catch_up = _catch_up(rates, options)
    restart = 0.0
    if with_restart and options.catch_up_s > 0:
        restart = rates.target * options.restart_s / options.catch_up_s
    return math.floor(catch_up + restart + rates.target / min(1.0, utilization) + 0.5)


def evaluate(rates: Rates, parallelism: int, options: FlinkOptions, scalability: float = 1.0) -> Evaluated:
    """Return what the rule wants; `scalability` is how much of itself an instance more adds (0 to 1)."""
    most, least = (1.0, 0.0) if rates.catching_up else (options.most_used, options.least_used)
    up = capacity(rates, most, options, with_restart=False)
    down = capacity(rates, least, options, with_restart=True)
    wanted = capacity(rates, options.target, options, with_restart=True)
    factor = wanted / rates.true / scalability
    factor = min(max(factor, 1 - options.down_factor), 1 + options.up_factor)
    lower = min(parallelism, options.min_parallelism)
    upper = max(parallelism, options.max_parallelism)
    # What is a whole number but for rounding is one.
    raw = math.ceil(factor * parallelism - 1e-9)
    return Evaluated(
        capacity=wanted,
        up=up,
        down=down,
        factor=factor,
        parallelism=min(max(raw, lower), upper),
        outside=rates.true < up or rates.true > down,
    )


def scalability(history: Sequence[tuple[int, float]], fewest: int = 3, least: float = 0.5) -> float:
    """Fit how much an instance more speeds a vertex up, from (parallelism, true rate); 1 without enough."""
    if len(history) < fewest:
        return 1.0
    base, rate = min(history)
    alone = rate / base
    fitted = sum(count * true for count, true in history) / (alone * sum(count**2 for count, _ in history))
    return math.ceil(min(1.0, max(least, fitted)) * 100 - 1e-9) / 100


def _catch_up(rates: Rates, options: FlinkOptions) -> float:
    if rates.lag_rate is not None:
        return rates.lag_rate
    return rates.lag / options.catch_up_s if options.catch_up_s > 0 else 0.0
