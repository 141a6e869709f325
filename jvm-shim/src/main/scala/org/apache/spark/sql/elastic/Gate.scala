package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{Harmless, QueryFacts}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.{AvailableNowTrigger, ContinuousTrigger, OneTimeTrigger}
import org.apache.spark.sql.execution.streaming.{ProcessingTimeTrigger, RealTimeTrigger}
import org.apache.spark.sql.execution.streaming.runtime.{StreamExecution, TERMINATED}
import org.apache.spark.sql.execution.streaming.state.{HDFSBackedStateStoreProvider, RocksDBStateStoreProvider}
import org.apache.spark.sql.internal.SQLConf

/** A run whose stream thread is held at its very start: what is known of it, and what can still be changed. */
private[elastic] final class Gate(execution: StreamExecution, stateful: Boolean) extends Logging {
  private val checkpoint = new Checkpoint(execution)
  private val asked = execution.sparkSession.sessionState.conf
  private val conf = execution.sparkSessionForStream.conf
  private var found: Option[CheckpointFacts] = None // read once: each look costs several requests to an object store

  /** Reads the checkpoint, and makes it one that can be started from, with the format that it was written in. */
  def prepare(): Unit = if (stateful) {
    found = checkpoint.read()
    found.foreach(keepFormat)
    mend()
  }

  private def mend(): Unit = if (checkpoint.mend()) found = checkpoint.read()

  /** The format is not written down in what Spark restores: a run with another one could not read its state. */
  private def keepFormat(facts: CheckpointFacts): Unit =
    if (facts.batch.isDefined) conf.set(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key, facts.format.toString)

  def facts(): QueryFacts = {
    val (trigger, triggerMs) = execution.trigger match {
      case ProcessingTimeTrigger(ms) => "processing_time" -> ms
      case AvailableNowTrigger => "available_now" -> 0L
      case OneTimeTrigger => "once" -> 0L
      case ContinuousTrigger(ms) => "continuous" -> ms
      case RealTimeTrigger(ms) => "real_time" -> ms
      case other => throw new IllegalStateException(s"unknown trigger $other")
    }
    val partitions = asked.getConf(SQLConf.SHUFFLE_PARTITIONS)
    val chosen = Seq(SQLConf.STATE_STORE_PROVIDER_CLASS, SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION)
    QueryFacts(
      query = execution.id.toString,
      name = Option(execution.name),
      stateful = stateful,
      trigger = trigger,
      triggerMs = triggerMs,
      sessionPartitions = partitions,
      explicitPartitions = if (asked.contains(SQLConf.SHUFFLE_PARTITIONS.key)) Some(partitions) else None,
      // What cannot be chosen for the query is left to the user as well.
      providerChosen = chosen.exists(entry => asked.contains(entry.key)) || Connect.runsBatchesElsewhere(execution),
      provider = Gate.provider(found.fold(asked.getConf(SQLConf.STATE_STORE_PROVIDER_CLASS))(_.provider)),
      checkpointFormat = found.fold(asked.getConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION))(_.format),
      checkpointPartitions = found.map(_.partitions),
      checkpointBatch = found.flatMap(_.batch),
      inPlace = !stateful && !Set("continuous", "real_time").contains(trigger),
      pending = found.exists(_.pending),
      restartable = StreamSources.outlastRuns(execution.analyzedPlan),
      sources = StreamSources.facts(execution.analyzedPlan))
  }

  /** Does next what the run before would have done next. */
  def goOnFrom(before: StreamExecution): Unit =
    if (stateful && before.lastExecution != null) checkpoint.logBatchWithoutData(before.lastExecution)

  /** The facts as a plan has changed them. */
  def after(plan: StartPlan, facts: QueryFacts): QueryFacts =
    if (plan.rescalable) facts.copy(provider = "rocksdb", checkpointFormat = 2) else facts

  /**
   * Carries out a plan as far as it can.
   *
   * @return the partition count that the run will have, and what went wrong if something did
   */
  def pass(plan: StartPlan): (Int, Option[String]) = {
    if (plan.rescalable) {
      conf.set(SQLConf.STATE_STORE_PROVIDER_CLASS.key, classOf[RocksDBStateStoreProvider].getName)
      conf.set(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key, "2")
    }
    val failure = plan.partitions.flatMap { partitions =>
      try {
        if (plan.repartition) {
          checkpoint.repartition(partitions)
          found = found.map(_.copy(partitions = partitions))
        }
        conf.set(SQLConf.SHUFFLE_PARTITIONS.key, partitions.toString)
        None
      } catch {
        case Harmless(e) =>
          logWarning(s"spark-elastic: ${execution.id} starts with the partitions that it had: ${e.getMessage}")
          // A query that somebody has stopped meanwhile need not wait for it: its next start does the same.
          if (StreamExecutionAccess.state(execution).get != TERMINATED) mend()
          Some(String.valueOf(e.getMessage))
      }
    }
    (found.map(_.partitions).getOrElse(conf.get(SQLConf.SHUFFLE_PARTITIONS.key).toInt), failure)
  }
}

private[elastic] object Gate extends Logging {

  /** Begins a new checkpoint with the savepoint that the user has named for this query, if any. */
  def restore(execution: StreamExecution): Unit =
    for {
      name <- Option(execution.name)
      savepoint <- execution.sparkSession.sparkContext.conf.getOption(s"spark.elastic.query.$name.savepoint")
    } {
      val root = execution.resolvedCheckpointRoot
      val copied =
        try Savepoint.restore(execution.sparkSession, savepoint.trim, root)
        catch {
          case Harmless(e) =>
            throw new IllegalStateException(
              s"Query $name cannot start from the savepoint $savepoint (spark.elastic.query.$name.savepoint): " +
                String.valueOf(e.getMessage),
              e)
        }
      logInfo(
        if (copied) s"spark-elastic: query $name starts from the savepoint $savepoint"
        else s"spark-elastic: query $name goes on from its checkpoint, not from the savepoint $savepoint")
    }

  private def provider(name: String): String =
    if (name == classOf[RocksDBStateStoreProvider].getName) "rocksdb"
    else if (name == classOf[HDFSBackedStateStoreProvider].getName) "hdfs"
    else "other"
}
