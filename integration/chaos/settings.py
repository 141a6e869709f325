"""What the application is told: with the plugin in either mode, without it, and what both have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.state_store import REPARTITIONABLE
from spark_elastic_lab.demo.cluster import CONSOLE_LOG4J

Mode = Literal["adaptive", "reactive", "plain"]
#: There are so many workers, at least and at most, while nothing is wrong.
FEWEST, MOST = 2, 3
_SCHEDULER = "adaptiveScheduler"
#: So many of the stateful queries may move their state at once.
AT_ONCE = 2
#: Waits for nothing before it is rescaled, so that only a micro-batch lies between two of its moves.
EAGER = "firsts"
#: Queues of Spark's listener bus: the plugin's listeners are in the first, those of queries in the second,
#: Spark's own account of executors in the third. Each holds ten events, and has one of the application, too.
QUEUES = ("shared", "streams", "executorManagement")
SLOW_LISTENERS = "SlowListeners"
#: In a setting, and in the URL of an exception: nothing that is ours may have it.
SECRET = "planted-5f0d"
CONF = {
    "spark.hadoop.fs.away.secret.key": SECRET,
    # What Spark keeps for its UI grows no more after some minutes.
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
    # As users have it: that a query goes on without an answer is to be met as well.
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
    # Bounds of one are not to take slots from the others.
    "spark.elastic.query.*.slotSharingGroup": "all",
}
OF_MODE: Mapping[Mode, Mapping[str, str]] = {
    "adaptive": ADAPTIVE,
    "reactive": {**ADAPTIVE, "spark.elastic.schedulerMode": "reactive"},
    # The twin: the same application, with what its user would set without us for state and partitions.
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
