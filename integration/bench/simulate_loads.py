"""The loads on which policies are compared; each needs about 1 to 15 executors of four cores."""

from __future__ import annotations

from attrs import frozen


@frozen
class BenchLoad:
    """A load for `hours` hours; defaults are tuned on the `tuned` ones and reported on all."""

    text: str
    hours: float
    tuned: bool


_RUN = 140 / 60
_DAY = 24.0

LOADS = {
    "cosine": BenchLoad("cosine:mean=150000,amplitude=100000,noise=10000", _RUN, True),
    "cosine, spikes": BenchLoad("cosine:mean=50000,amplitude=25000,noise=5000,spikes=0.03", _RUN, False),
    "random walk": BenchLoad("random-walk:start=150000,step=10000", _RUN, True),
    "increase": BenchLoad("increase:most=240000", _RUN, False),
    "decrease": BenchLoad("decrease:most=240000", _RUN, True),
    "convergence": BenchLoad("convergence:step=150000,noise=15000", _RUN, False),
    "ramp": BenchLoad("ramp:start=20000,slope=2000", _RUN, True),
    "step": BenchLoad("step:before=40000,after=160000,at=40", _RUN, False),
    "square": BenchLoad("square:low=0,high=120000,period=40", _RUN, True),
    "spikes": BenchLoad("spikes:base=30000,height=200000,every=60,length=3", 6.0, False),
    "two peaks": BenchLoad("two-peaks:base=20000,first=180000,second=120000,noise=4000", _DAY, True),
    "sines": BenchLoad(
        "sines:mean=100000,amplitude1=50000,amplitude2=20000,period2=90,noise=5000", _DAY, False
    ),
    "seasonal": BenchLoad("seasonal:base=60000,amplitude=30000,burst=120000,noise=3000", _DAY, True),
    "web": BenchLoad("web:mean=60000", _DAY, False),
    "outage": BenchLoad("outage:rate=60000,at=60,length=20,release=5", _RUN, True),
    "backlog": BenchLoad("constant:rate=60000,poisson=1", _RUN, False),
}
"""The loads by name; the initial rows of `backlog` are defined in the benchmark."""

HELD_BACK = {
    "short waves": BenchLoad("cosine:mean=80000,amplitude=60000,period=20,noise=5000", _RUN, False),
    "flood": BenchLoad("outage:rate=90000,at=30,length=10,release=3", _RUN, False),
    "busy web": BenchLoad("web:mean=100000,day=0.4,sigma=0.3", _DAY, False),
}
"""Chosen when the defaults were settled; nothing is tuned on these loads or their results."""
