package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.streaming

/** Spark's classes whose package depends on the version: shared code takes them from here. */
private[elastic] object Moved extends MovedSession with MovedBatch {
  type CheckpointFileManager = streaming.CheckpointFileManager
  type CommitLog = streaming.CommitLog
  type CommitMetadata = streaming.CommitMetadata
  type FileStreamSink = streaming.FileStreamSink
  type FileStreamSinkLog = streaming.FileStreamSinkLog
  type MicroBatchExecution = streaming.MicroBatchExecution
  type MultiBatchExecutor = streaming.MultiBatchExecutor
  type OffsetSeq = streaming.OffsetSeq
  type OffsetSeqLog = streaming.OffsetSeqLog
  type ProcessingTimeExecutor = streaming.ProcessingTimeExecutor
  type SingleBatchExecutor = streaming.SingleBatchExecutor
  type StateStoreWriter = streaming.StateStoreWriter
  type StreamExecution = streaming.StreamExecution
  type StreamProgress = streaming.StreamProgress
  type StreamingRelation = streaming.StreamingRelation
  type TriggerExecutor = streaming.TriggerExecutor
  def LatestSeen = streaming.AcceptsLatestSeenOffsetHandler
}

private[elastic] object MovedFiles {
  def Manager = streaming.CheckpointFileManager
}

/** Constants, so that class files that use them contain them, for `Linkage` to find. */
private[elastic] object MovedFields {
  final val SinkLog = "org.apache.spark.sql.execution.streaming.FileStreamSink#fileLog"
  final val StartLatch = "org.apache.spark.sql.execution.streaming.StreamExecution#startLatch"
  final val LogicalPlan = "org.apache.spark.sql.execution.streaming.MicroBatchExecution#logicalPlan"
  final val LazyFlags = "org.apache.spark.sql.execution.streaming.MicroBatchExecution#bitmap$0:B"
}
