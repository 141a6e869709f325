"""What `autoscale` goes by, and how many executors an application may have."""

from __future__ import annotations

from spark_elastic.core.keys.key import Key
from spark_elastic.core.keys.kinds import BOOL, duration, number, or_none, size, whole

LOAD = Key[float | None](
    "autoscale.load",
    or_none(number("above 0, up to 1", lambda value: 0 < value <= 1, "0.75")),
    None,
    "Part of the trigger interval that a micro-batch is to take. Without an interval: the rows "
    "that arrive, as a part of those that it can process. None: as much as the variation of the input "
    "leaves, 0.8 to 0.93.",
    per_query="always",
)
BAND = Key(
    "autoscale.loadBand",
    number("from 0 to 0.5", lambda value: 0 <= value <= 0.5, "0.1"),
    0.1,
    "How far the load may be above `autoscale.load` before more slots are wanted. Down there is no band but "
    "within 10 min of a step up: then as many slots stay as a target lower by so much needs.",
    per_query="always",
)
MAX_LAG_MS = Key[int | None](
    "autoscale.maxLag",
    or_none(duration(1_000)),
    None,
    "Longest time from when a row is in the source until its micro-batch is committed. None: only the load "
    "counts.",
    per_query="always",
)
CATCH_UP_MS = Key(
    "autoscale.catchUp",
    duration(1_000),
    600_000,
    "Time in which rows that have piled up are to be processed, besides those that arrive; "
    "`autoscale.maxLag` if that is shorter.",
    per_query="always",
)
BACKPRESSURE = Key(
    "autoscale.backpressure",
    BOOL,
    True,
    "Whether micro-batches read no more of Kafka than they process in about their trigger interval, so that "
    "one of them does not read a whole backlog. Sources with `maxOffsetsPerTrigger` or "
    "`minOffsetsPerTrigger` keep that.",
    per_query="always",
)
WINDOW_MS = Key(
    "autoscale.scaleDownWindow",
    duration(),
    300_000,
    "A query is scaled down to the most that it has needed in this time. It is scaled up at once.",
    per_query="always",
)
MOST_DOWN = Key(
    "autoscale.scaleDownMaxFactor",
    number("above 0, up to 1", lambda value: 0 < value <= 1, "0.6"),
    0.6,
    "Largest part of its slots that a query gives up in one step.",
    per_query="always",
)
BATCH_GAIN = Key[float | None](
    "autoscale.batchGain",
    or_none(number("0 or above", lambda value: value >= 0, "1")),
    1.0,
    "Batch stages get one more executor if it saves them so many times the time that it takes to come. More: "
    "fewer executors, longer jobs. None: nothing is requested for them (adaptive mode, `policy autoscale`).",
)
MIN_EXECUTORS = Key(
    "minExecutors",
    whole(0),
    0,
    "Fewest executors that are kept, whatever queries need (adaptive mode).",
)
MAX_EXECUTORS = Key[int | None](
    "maxExecutors",
    or_none(whole(1)),
    None,
    "Most executors that are requested, whatever queries need (adaptive mode).",
)
QUOTA_CORES = Key[int | None](
    "quota.cores",
    or_none(whole(1)),
    None,
    "Most cores that requested executors have together (adaptive mode): as many are requested as fit.",
)
QUOTA_MEMORY = Key[int | None](
    "quota.memory",
    or_none(size(1)),
    None,
    "Most memory that requested executors have together, as the cluster manager counts it: overhead, "
    "off-heap memory and that of Python are among it, but on Standalone (adaptive mode).",
)
