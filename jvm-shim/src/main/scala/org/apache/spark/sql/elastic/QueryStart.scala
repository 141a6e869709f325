package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{Linkage, Part, QueryFacts}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.execution.streaming.{AvailableNowTrigger, ContinuousTrigger, OneTimeTrigger}
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger
import org.apache.spark.sql.execution.streaming.state.{HDFSBackedStateStoreProvider, RocksDBConf}
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.OutputMode

/** A query before its stream thread has read anything: the facts about it, and the choices that are still open. */
private[elastic] final class QueryStart(execution: StreamExecution, stateful: Boolean) extends Logging {
  import QueryStart._

  private val asked = execution.sparkSession.sessionState.conf
  private val conf = StreamSession.of(execution).conf

  /**
   * Start a new checkpoint from the savepoint that the user has named for this query, if any.
   *
   * @throws IllegalStateException if that is impossible: the user does not want to start without it
   */
  def restoreSavepoint(): Unit = {
    val root = execution.resolvedCheckpointRoot
    val named = for {
      name <- Option(execution.name)
      key = s"spark.elastic.query.$name.savepoint"
      savepoint <- execution.sparkSession.sparkContext.conf.getOption(key)
    } yield (name, key, savepoint.trim)
    named.foreach { case (name, key, savepoint) =>
      val copied =
        try {
          Linkage.need(Part.Savepoints)
          Restore(execution.sparkSession, savepoint, root, sinkLog)
        } catch {
          case e: Exception =>
            val why = String.valueOf(e.getMessage)
            throw new IllegalStateException(s"Query $name cannot start from the savepoint $savepoint ($key): $why", e)
        }
      logInfo(
        if (copied) s"spark-elastic: query $name: starting from savepoint $savepoint"
        else s"spark-elastic: query $name: resuming its checkpoint, savepoint $savepoint not used")
    }
    if (named.isEmpty && Linkage.has(Part.Savepoints)) Restore.takeBack(execution.sparkSession, root)
  }

  private def sinkLog: Option[FileStreamSinkLog] = execution.sink match {
    case sink: FileStreamSink => Some(SinkLog.of(sink))
    case _ => None
  }

  /**
   * Prepare a checkpoint for a start, in the format that it was written in.
   *
   * @param isToBeginAnew whether one from the plugin without a committed batch takes the user's store and count
   */
  def prepare(isToBeginAnew: => Boolean): Option[CheckpointFacts] =
    if (!stateful) None
    else {
      val found =
        CheckpointFacts.of(execution).map {
          case facts if facts.batch.isDefined => facts
          case facts if !isChosen && isToBeginAnew => withFirstFormat(begunAnew(facts))
          case facts => withFirstFormat(facts)
        }
      // Spark does not restore the format, and a run with another one could not read its state. A new query sets its
      // own as well, since the thread that starts it may have that of another query (BatchFormatRule).
      val format = found.fold(CheckpointFormat.asked(asked))(_.format)
      CheckpointFormat.Key.foreach(conf.set(_, format.toString))
      val mover = new StateMover(execution)
      mover.takeOver()
      val now = if (mover.recover()) CheckpointFacts.of(execution) else found
      mover.cleanUp()
      if (now.exists(facts => QueryStart.provider(facts.provider) == "rocksdb" && facts.format == 2) && !isChosen)
        commitLittle()
      now
    }

  private def begunAnew(facts: CheckpointFacts): CheckpointFacts = {
    val count = Some(SQLConf.SHUFFLE_PARTITIONS).filter(key => asked.contains(key.key)).map(asked.getConf(_).toString)
    new StateMover(execution).beginAnew(
      Map(SQLConf.STATE_STORE_PROVIDER_CLASS.key -> asked.getConf(SQLConf.STATE_STORE_PROVIDER_CLASS)) ++
        count.map(SQLConf.SHUFFLE_PARTITIONS.key -> _))
    logWarning(s"spark-elastic: query ${execution.id}: starting over with Spark's own state store")
    CheckpointFacts.of(execution).getOrElse(facts)
  }

  /** Any format will do until a batch is committed. RocksDB that the user has not chosen was the plugin's choice. */
  private def withFirstFormat(facts: CheckpointFacts): CheckpointFacts = {
    val isOurs = QueryStart.provider(facts.provider) == "rocksdb" && !isChosen
    facts.copy(format = if (isOurs) 2 else CheckpointFormat.asked(asked))
  }

  private def isChosen: Boolean =
    (SQLConf.STATE_STORE_PROVIDER_CLASS.key +: CheckpointFormat.Key.toSeq).exists(asked.contains)

  /** With format 2 a micro-batch has to run all partitions of its state; Spark checks that unless disabled. */
  private def mayRunParts: Boolean =
    !asked.getConfString("spark.sql.streaming.stateStore.commitValidation.enabled", "true").toBoolean

  /** Format 1 of such state declares its timeout as too short a number. RocksDB refuses that, Spark's own store not. */
  private def hasNarrowTimeout: Boolean =
    asked.getConf(SQLConf.FLATMAPGROUPSWITHSTATE_STATE_FORMAT_VERSION) == 1 && execution.analyzedPlan.exists {
      case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState => true
      case _ => false
    }

  def facts(found: Option[CheckpointFacts]): QueryFacts = {
    val (trigger, triggerMs) = execution.trigger match {
      case ProcessingTimeTrigger(ms) => "processing_time" -> ms
      case AvailableNowTrigger => "available_now" -> 0L
      case OneTimeTrigger => "once" -> 0L
      case ContinuousTrigger(ms) => "continuous" -> ms
      case other => RealTime(other).fold(throw new IllegalStateException(s"unknown trigger $other"))("real_time" -> _)
    }
    val partitions = asked.getConf(SQLConf.SHUFFLE_PARTITIONS)
    val storeNeeded = mayRunParts || hasNarrowTimeout || Connect.runsBatchesElsewhere(execution)
    val facts = QueryFacts(
      query = execution.id.toString,
      name = Option(execution.name),
      stateful = stateful,
      globalState = StatefulPlan.hasGlobalState(execution.analyzedPlan, execution.outputMode),
      trigger = trigger,
      triggerMs = triggerMs,
      sessionPartitions = partitions,
      explicitPartitions = if (asked.contains(SQLConf.SHUFFLE_PARTITIONS.key)) Some(partitions) else None,
      providerChosen = isChosen || storeNeeded,
      storeNeeded = storeNeeded,
      provider = QueryStart.provider(asked.getConf(SQLConf.STATE_STORE_PROVIDER_CLASS)),
      checkpointFormat = CheckpointFormat.asked(asked),
      checkpointPartitions = found.map(_.partitions),
      pending = found.exists(_.pending),
      inPlace = !stateful && !Set("continuous", "real_time").contains(trigger),
      movesState = Linkage.has(Part.StateMoves),
      preparesMoves = Linkage.has(Part.PreparedMoves) && followsChanges,
      sources = StreamSources.facts(execution.analyzedPlan),
      originalSince = if (found.isEmpty) None else new StateMover(execution).originalSince)
    found.fold(facts)(QueryStart.facts(facts, _))
  }

  /**
   * RocksDB chosen by the plugin commits one small file, as the user's store would: changes, no checksum. Each new file
   * costs milliseconds. A checkpoint may be written with and without these settings.
   */
  def commitLittle(): Unit = {
    val little = Seq(Changelogs -> "true", "spark.sql.streaming.checkpoint.fileChecksum.enabled" -> "false")
    for ((key, value) <- little if !asked.contains(key)) conf.set(key, value)
  }

  /** Whether each micro-batch commits its changes, in a form that another partition can have. */
  private def followsChanges: Boolean =
    asked.getConfString(Changelogs, (!isChosen).toString).toBoolean && asked.minBatchesToRetain > 3 &&
      !asked.getConfString("spark.sql.streaming.stateStore.rowChecksum.enabled", "false").toBoolean

  /** Give a new checkpoint the store and the format that its state can be re-partitioned with. */
  def makeRescalable(): Unit = {
    conf.set(SQLConf.STATE_STORE_PROVIDER_CLASS.key, classOf[RocksDBStateStoreProvider].getName)
    commitLittle()
    CheckpointFormat.Key.foreach(conf.set(_, "2"))
    logInfo(
      s"spark-elastic: query ${QueryRun.called(execution)}: new checkpoint, can be rescaled; to start from it without the " +
        s"plugin, set ${CheckpointFormat.Key.mkString}=2, or type 'spark-elastic checkpoint convert'")
  }
}

private[elastic] object QueryStart {
  val Changelogs = s"${RocksDBConf.ROCKSDB_SQL_CONF_NAME_PREFIX}.changelogCheckpointing.enabled"

  def provider(name: String): String =
    if (name == classOf[RocksDBStateStoreProvider].getName) "rocksdb"
    else if (name == classOf[HDFSBackedStateStoreProvider].getName) "hdfs"
    else "other"

  /** Return the facts about a query with what its checkpoint says. */
  def facts(query: QueryFacts, found: CheckpointFacts): QueryFacts =
    query.copy(provider = provider(found.provider), checkpointFormat = found.format)
}

/** Whether a streaming plan keeps state, and with it a partition count that its checkpoint fixes. */
private[elastic] object StatefulPlan {
  def apply(analyzed: LogicalPlan): Boolean = analyzed.exists(node => node.isStreaming && keepsState(node))

  /** Whether an operator has no keys: Spark keeps all of its state in one partition, whatever the count. */
  def hasGlobalState(analyzed: LogicalPlan, mode: OutputMode): Boolean = analyzed.exists {
    case aggregate: Aggregate => aggregate.isStreaming && aggregate.groupingExpressions.isEmpty
    // A limit of a result that is computed again with each batch keeps nothing.
    case limit: GlobalLimit => limit.isStreaming && (mode == OutputMode.Append || !limit.exists(isAggregate))
    case _ => false
  }

  /** Operators with arbitrary state, which not all versions have. */
  private val ofAnyKind = Set("TransformWithState", "TransformWithStateInPandas", "TransformWithStateInPySpark")

  private def isAggregate(node: LogicalPlan): Boolean = node.isInstanceOf[Aggregate] && node.isStreaming

  private def keepsState(node: LogicalPlan): Boolean = node match {
    case _: Aggregate | _: Distinct | _: GlobalLimit => true
    case _: Deduplicate | _: DeduplicateWithinWatermark => true
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState => true
    case join: Join => join.left.isStreaming && join.right.isStreaming
    // Not getSimpleName: Java 8 throws an InternalError for some classes inside Scala's objects.
    case other => ofAnyKind.contains(other.getClass.getName.split("[.$]").last)
  }
}
