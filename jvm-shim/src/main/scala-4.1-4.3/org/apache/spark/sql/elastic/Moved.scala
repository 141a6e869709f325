package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.streaming.{checkpointing, operators, runtime, sinks}

/** Spark's classes whose package depends on the version: shared code takes them from here. */
private[elastic] object Moved extends MovedSession {
  type Batch = runtime.MicroBatchExecutionContext
  type CheckpointFileManager = checkpointing.CheckpointFileManager
  type CommitLog = checkpointing.CommitLog
  type CommitMetadata = checkpointing.CommitMetadata
  type FileStreamSink = sinks.FileStreamSink
  type FileStreamSinkLog = sinks.FileStreamSinkLog
  type MicroBatchExecution = runtime.MicroBatchExecution
  type MultiBatchExecutor = runtime.MultiBatchExecutor
  type OffsetSeq = checkpointing.OffsetSeq
  type OffsetSeqLog = checkpointing.OffsetSeqLog
  type ProcessingTimeExecutor = runtime.ProcessingTimeExecutor
  type SingleBatchExecutor = runtime.SingleBatchExecutor
  type StateStoreWriter = operators.stateful.StateStoreWriter
  type StreamExecution = runtime.StreamExecution
  type StreamProgress = runtime.StreamProgress
  type StreamingRelation = runtime.StreamingRelation
  type TriggerExecutor = runtime.TriggerExecutor
  def LatestSeen = runtime.AcceptsLatestSeenOffsetHandler
}

private[elastic] object MovedFiles {
  def Manager = checkpointing.CheckpointFileManager
}

/** Constants, so that class files that use them contain them, for `Linkage` to find. */
private[elastic] object MovedFields {
  final val SinkLog = "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink#fileLog"
  final val StartLatch = "org.apache.spark.sql.execution.streaming.runtime.StreamExecution#startLatch"
  final val LogicalPlan = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution#logicalPlan"
  final val LazyFlags = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution#bitmap$0:B"
}
