package org.apache.spark.sql.elastic

import Moved._

/**
 * What a new run would do, within the one that there is: its checkpoint is read again, on the stream thread and between
 * two micro-batches. The run, its handle, its sources and its sink stay as they are.
 */
private[elastic] final class InRun(execution: MicroBatchExecution, query: QueryRun) {
  private val state = new StateMover(execution)

  /** Reads what a move begins with, and changes nothing: a storage that is away by then costs the move, not the query. */
  def look(): Unit = if (query.stateful) CheckpointFacts.of(execution)

  /** Gives the query another count: a stateful one that has run a micro-batch, with its state. Returns whether it was so. */
  def repartition(partitions: Int, next: Batch): Boolean = {
    val hasState = query.stateful && execution.offsetLog.getLatestBatchId().isDefined
    if (hasState) {
      // Spark forgets where stores are open, and spreads the next tasks evenly. Accepted race: if an executor's maintenance
      // finds a store inactive in the very moment in which its task takes it, that task fails, and Spark repeats it.
      execution.sparkSession.streams.stateStoreCoordinator.deactivateInstances(execution.runId)
      state.repartition(query.partitions, partitions)
      query.use(partitions)
      resume(newSources = false)
    } else {
      query.use(partitions)
      if (query.stateful) FirstCount.replaceCount(partitions, next, query.session)
    }
    hasState
  }

  /** Ends or takes back what a re-partitioning has begun, and continues from what the checkpoint says then. */
  def recover(): Unit = recover(newSources = false)

  private def recover(newSources: Boolean): Unit = {
    if (query.stateful) {
      state.recover()
      CheckpointFacts.of(execution).foreach(found => query.use(found.partitions))
    }
    resume(newSources)
  }

  /**
   * Lets what has failed come next.
   *
   * @param again whether it has failed before
   */
  def retry(next: Batch, again: Boolean): Unit = {
    execution.sparkSession.sparkContext.cancelJobGroup(execution.runId.toString)
    // As after a run of its own. Else what stores of the failed attempt have committed would count for the next one.
    if (query.stateful) execution.sparkSession.streams.stateStoreCoordinator.deactivateInstances(execution.runId)
    // What failed beside the stream thread, such as the removal of old logs, would fail each micro-batch from now on.
    if (execution.errorNotifier.getError().nonEmpty) execution.errorNotifier.markError(null)
    // With its offsets logged the batch needs its sources only to read between them.
    val newSources = again || !next.isCurrentBatchConstructed
    if (newSources) NewSources.make(execution)
    recover(newSources)
  }

  /** Whether a micro-batch is in the log, and has to run before anything else. */
  def isStarted(batch: Batch): Boolean = batch.isCurrentBatchConstructed

  /** What a micro-batch was to read up to; nothing until that is in its log. */
  def offsets(context: Batch): String =
    if (context.isCurrentBatchConstructed) RunSources.offsets(execution, context) else ""

  /** Makes what follows the checkpoint's last batch the next one, as the first batch of a run. */
  private def resume(newSources: Boolean): Unit = {
    // The run has both by reference, and would hold what it knew against what is read now.
    for (last <- Option(execution.lastExecution)) {
      last.watermarkPropagator.purge(Long.MaxValue)
      last.currentStateStoreCkptId.clear()
    }
    val (watermarks, partitions) = (MicroBatchAccess.watermarks(execution), query.partitions)
    val context = ResumedBatch.following(execution)
    val written = context.previousContext.flatMap(_.sinkCommitProgress)
    try
      if (newSources) MicroBatchAccess.populateStartOffsets(execution, context, query.session)
      else KnownSources.populateStartOffsets(execution, context, query.session)
    finally MicroBatchAccess.use(execution, watermarks) // a new one would take an input that is idle to be at 0
    // Before 4.1 the checkpoint's count comes with it, which for a query without state is only what it began with.
    if (!query.stateful) query.use(partitions)
    context.sinkCommitProgress = written // what an idle query shows
    execution.triggerExecutor.setNextBatch(context)
  }
}

/**
 * The first micro-batch after the checkpoint was read again. It is the first of a run to Spark, which has no batch before
 * it, but for one question: whether it is to come although there are no data, for windows that have closed and timers.
 * Spark asks that of the batch before, at each trigger until there is a batch.
 */
private final class ResumedBatch(execution: MicroBatchExecution, before: Batch)
    extends FirstBatch(execution, before)
    with LoggedAsSpark {

  /** Spark calls this after it has asked, and before it runs the batch. */
  override def recordTriggerOffsets(from: StreamProgress, to: StreamProgress, latest: StreamProgress): Unit = {
    if (isCurrentBatchConstructed) {
      previousContext = None
      // The answer has been reckoned for a batch id that the re-partitioning has by now, with another watermark.
      Option(executionPlan).foreach(_.watermarkPropagator.purge(Long.MaxValue))
    }
    super.recordTriggerOffsets(from, to, latest)
  }
}

private object ResumedBatch {

  /**
   * Makes the batch that follows the query's latest one. What it takes over of that is set here: a constructor that reads
   * `before` in a closure makes it a field, by which each batch holds the one before, to the first of the run.
   */
  def following(execution: MicroBatchExecution): ResumedBatch = {
    val before = execution.getLatestExecutionContext().asInstanceOf[Batch]
    val resumed = new ResumedBatch(execution, before)
    resumed.offsetSeqMetadata = before.offsetSeqMetadata
    resumed.executionPlan = before.executionPlan // what an idle query shows
    resumed.currentTriggerStartTimestamp = before.getStartTime()
    // One is enough, however often this is tried.
    resumed.previousContext = Some(before.previousContext.getOrElse(before))
    resumed
  }
}
