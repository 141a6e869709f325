package org.apache.spark.sql.elastic

import org.apache.spark.sql.elastic.Moved._

/**
 * Does within a run what a new run would do: it reads the checkpoint again, on the stream thread and between two
 * micro-batches. The run, its handle, its sources and its sink stay as they are. The first batch writes
 * `stateSchemaMetadatas` again, and may repeat one of Spark's warnings (`metricWarningLogged`).
 */
private[elastic] final class InRun(execution: MicroBatchExecution, query: QueryRun) {
  private val state = new StateMover(execution)

  /** Read what a move begins with, and change nothing: unavailable storage then costs the move, not the query. */
  def look(): Unit = if (query.stateful) CheckpointFacts.of(execution)

  /**
   * Change the query's count, with any state of micro-batches that have run. Return whether state was moved.
   *
   * @param converts whether the state also gets another store and format
   */
  def repartition(partitions: Int, next: Batch, converts: Boolean): Boolean = {
    val hasState = query.stateful && execution.offsetLog.getLatestBatchId().isDefined
    if (hasState) {
      // Spark forgets where stores are open, and spreads the next tasks evenly. Accepted race: an executor's
      // maintenance may find a store inactive just when its task takes it. That task fails, and Spark repeats it.
      execution.sparkSession.streams.stateStoreCoordinator.deactivateInstances(execution.runId)
      if (converts) convert(partitions)
      else {
        if (!query.preparation.switchTo(partitions)) state.repartition(query.partitions, partitions)
        query.use(partitions)
      }
      resume(newSources = false)
    } else {
      query.use(partitions)
      if (query.stateful) FirstCount.replaceCount(partitions, next, query.session)
    }
    hasState
  }

  private def convert(partitions: Int): Unit = {
    state.convert(partitions)
    CheckpointFacts.of(execution).foreach(query.use)
    new QueryStart(execution, stateful = true).commitLittle()
  }

  /** Complete or undo a re-partitioning that has begun, and continue from what the checkpoint says then. */
  def recover(): Unit = recover(newSources = false)

  private def recover(newSources: Boolean): Unit = {
    if (query.stateful) {
      state.recover()
      query.preparation.settle()
      CheckpointFacts.of(execution).foreach(query.use)
    }
    resume(newSources)
  }

  /** Make the failed micro-batch the next one; `again` says whether it has failed before. */
  def retry(next: Batch, again: Boolean): Unit = {
    execution.sparkSession.sparkContext.cancelJobGroup(execution.runId.toString)
    // As after a run of its own: commits by stores of the failed attempt would count for the next one.
    if (query.stateful) execution.sparkSession.streams.stateStoreCoordinator.deactivateInstances(execution.runId)
    // An error beside the stream thread, such as in removing old logs, would fail each further micro-batch.
    if (execution.errorNotifier.getError().nonEmpty) execution.errorNotifier.markError(null)
    // With its offsets logged, the batch needs its sources only to read between them.
    val newSources = again || !next.isCurrentBatchConstructed
    if (newSources) {
      val trigger = execution.triggerExecutor
      try NewSources.make(execution)(RunSources.tellLatest(execution))
      finally execution.triggerExecutor = trigger // it is the plugin's, and running
    }
    recover(newSources)
  }

  /** Whether a micro-batch is in the log, and so has to run before anything else. */
  def isStarted(batch: Batch): Boolean = batch.isCurrentBatchConstructed

  /** Return the end offsets of a micro-batch; empty until its log has them. */
  def offsets(context: Batch): String =
    if (context.isCurrentBatchConstructed) RunSources.offsets(execution, context) else ""

  /** Make the batch after the checkpoint's last one the next one, as the first batch of a run. */
  private def resume(newSources: Boolean): Unit = {
    // The run has references to both, and would check what is read now against what it knew.
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
    finally MicroBatchAccess.use(execution, watermarks) // a new one would take an idle input to be at 0
    // Before 4.1 the checkpoint's count comes with it, which for a stateless query is only the initial one.
    if (!query.stateful) query.use(partitions)
    context.sinkCommitProgress = written // shown while a query is idle
    execution.triggerExecutor.setNextBatch(context)
  }
}

/**
 * The first micro-batch after the checkpoint was read again. To Spark it is the first of a run, with no batch before
 * it, except for one question: whether to run without data, for windows that have closed and timers. Spark asks the
 * previous batch, at each trigger until there is a batch.
 */
private final class ResumedBatch(execution: MicroBatchExecution, before: Batch)
    extends FirstBatch(execution, before)
    with LoggedAsSpark {

  /** Spark calls this after that question, and before it runs the batch. */
  override def recordTriggerOffsets(from: StreamProgress, to: StreamProgress, latest: StreamProgress): Unit = {
    if (isCurrentBatchConstructed) {
      previousContext = None
      // The answer was computed for a batch id that the re-partitioning has now, with another watermark.
      Option(executionPlan).foreach(_.watermarkPropagator.purge(Long.MaxValue))
    }
    super.recordTriggerOffsets(from, to, latest)
  }
}

private object ResumedBatch {

  /**
   * Make the batch that follows the query's latest one. Values are taken over here, not in a constructor: one that
   * reads `before` in a closure makes it a field, so each batch would hold the one before, back to the first.
   */
  def following(execution: MicroBatchExecution): ResumedBatch = {
    val before = execution.getLatestExecutionContext().asInstanceOf[Batch]
    val resumed = new ResumedBatch(execution, before)
    resumed.offsetSeqMetadata = before.offsetSeqMetadata
    resumed.executionPlan = before.executionPlan // shown while a query is idle
    resumed.currentTriggerStartTimestamp = before.getStartTime()
    // One is enough, however often this is tried.
    resumed.previousContext = Some(before.previousContext.getOrElse(before))
    resumed
  }
}
