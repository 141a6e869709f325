"""The settings of the application: with the plugin in either mode, without it, and those of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from integration.chaos.rows import STATEFUL
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.state_store import REPARTITIONABLE
from spark_elastic_lab.demo.cluster import CONSOLE_LOG4J

Mode = Literal["adaptive", "reactive", "old", "plain"]
#: What starts the executors.
Where = Literal["standalone", "kubernetes"]
#: The queries with state that the application has there: one needs pandas, which the image for pods lacks.
STATEFUL_AT: Mapping[Where, tuple[str, ...]] = {
    "standalone": STATEFUL,
    "kubernetes": tuple(name for name in STATEFUL if name != "memories"),
}
#: The modes in which the bounds of queries are changed.
BOUNDED: tuple[Mode, ...] = ("adaptive", "old")
#: The minimum and the maximum number of workers while nothing is wrong.
FEWEST, MOST = 2, 3
_SCHEDULER = "adaptiveScheduler"
#: The number of stateful queries that may move their state at the same time.
AT_ONCE = 2
#: This query waits for nothing before a rescale, so only a micro-batch lies between two of its moves.
EAGER = "firsts"
#: Queues of Spark's listener bus: the first has the plugin's listeners, the second those of queries, the
#: third Spark's own tracking of executors. Each holds ten events, and has a listener of the application.
QUEUES = ("shared", "streams", "executorManagement")
SLOW_LISTENERS = "SlowListeners"
#: Part of a setting, and of the URL in an exception: nothing of ours may reveal it.
SECRET = "planted-5f0d"
CONF = {
    "spark.hadoop.fs.away.secret.key": SECRET,
    # The data that Spark keeps for its UI stops growing after some minutes.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.executor.cores": "1",
    "spark.executor.memory": "640m",
    "spark.decommission.enabled": "true",
    **{f"spark.scheduler.listenerbus.eventqueue.{queue}.capacity": "10" for queue in QUEUES},
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
}
ADAPTIVE = {
    **WITH_PLUGIN,
    # As users have it: a query that continues without an answer must be tested as well.
    "spark.elastic.startTimeout": "10s",
    "spark.plugins": f"{WITH_PLUGIN['spark.plugins']},{SLOW_LISTENERS}",
    "spark.elastic.schedulerMode": "adaptive",
    f"spark.elastic.{_SCHEDULER}.rescalePolicy": "always",
    f"spark.elastic.{_SCHEDULER}.maxConcurrentRescales": str(AT_ONCE),
    f"spark.elastic.{_SCHEDULER}.submission.resourceStabilizationTimeout": "0",
    f"spark.elastic.{_SCHEDULER}.executing.cooldownAfterRescaling": "2s",
    f"spark.elastic.{_SCHEDULER}.executing.resourceStabilizationTimeout": "1s",
    f"spark.elastic.query.{EAGER}*.{_SCHEDULER}.executing.cooldownAfterRescaling": "0",
    f"spark.elastic.query.{EAGER}*.{_SCHEDULER}.executing.resourceStabilizationTimeout": "0",
    # The bounds of one query must not take slots from the others.
    "spark.elastic.query.*.slotSharingGroup": "all",
}
#: The partitions that plain Spark begins a checkpoint with.
OLD_PARTITIONS = 20
#: How plain Spark begins the checkpoints of the mode "old": in its own store where that is possible.
BEFORE = {
    "spark.plugins": SLOW_LISTENERS,
    "spark.sql.shuffle.partitions": str(OLD_PARTITIONS),
    "spark.chaos.rocksdb": "pairs,memories",
}
OF_MODE: Mapping[Mode, Mapping[str, str]] = {
    "adaptive": ADAPTIVE,
    "reactive": {**ADAPTIVE, "spark.elastic.schedulerMode": "reactive"},
    # One query keeps RocksDB in format 1, as its user has chosen it. The state of the others is converted
    # when they start, and whenever the application has brought it back.
    "old": {
        **ADAPTIVE,
        "spark.elastic.stateStore.convert": "atStart",
        "spark.chaos.rocksdb": "pairs",
        "spark.chaos.back": "totals=hdfs,firsts=hdfs",
        "spark.chaos.partitions": str(OLD_PARTITIONS),
    },
    # The twin: the same application, with its user's settings for state and partitions without the plugin.
    "plain": {
        **REPARTITIONABLE,
        "spark.plugins": SLOW_LISTENERS,
        "spark.sql.shuffle.partitions": str(MOST),
    },
}
RESTARTS = {
    "spark.elastic.restartStrategy.type": "fixed-delay",
    "spark.elastic.restartStrategy.fixedDelay.delay": "2s",
    "spark.elastic.restartStrategy.fixedDelay.attempts": "1000000",
}
#: A query ends with the first batch that fails, as in plain Spark.
NO_RESTARTS = {"spark.elastic.restartStrategy.type": "none"}
LOG4J = f"""\
{CONSOLE_LOG4J}rootLogger.level = warn
logger.elastic.name = org.apache.spark.elastic
logger.elastic.level = info
logger.queries.name = org.apache.spark.sql.elastic
logger.queries.level = info
# Said of each file, and of each batch that takes longer than its trigger.
logger.files.name = org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
logger.files.level = error
logger.trigger.name = org.apache.spark.sql.elastic.Triggers$$anon$3
logger.trigger.level = error
"""
