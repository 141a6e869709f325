package org.apache.spark.sql.elastic

import org.apache.spark.sql.connector.read.streaming.{Offset, SparkDataStream}
import org.apache.spark.sql.execution.streaming.Source

import Moved._

/**
 * Sources that a run keeps when its checkpoint is read again. At the start of a run Spark reads the last batch of
 * each source of the first API once more, so that a new source knows of it. These know, and what that batch has read may
 * be away by now.
 */
private[elastic] object KnownSources {

  /** Reads the checkpoint and makes what follows its last batch the batch of a context; called on the stream thread. */
  def populateStartOffsets(execution: MicroBatchExecution, context: Batch, session: SparkSession): Unit = {
    val standIns = StreamExecutionAccess
      .sources(execution)
      .collect { case source: Source => source -> new StandIn(source) }
      .toMap[SparkDataStream, SparkDataStream]
    RunSources.replacedWhile(execution, source => standIns.getOrElse(source, source)) {
      MicroBatchAccess.populateStartOffsets(execution, context, session)
    }
    context.startOffsets = ofSources(context.startOffsets)
    context.endOffsets = ofSources(context.endOffsets)
    execution.committedOffsets = ofSources(execution.committedOffsets)
  }

  private def ofSources(offsets: StreamProgress): StreamProgress =
    new StreamProgress(offsets.baseMap.map {
      case (standIn: StandIn, offset) => standIn.source -> offset
      case other => other
    })

  /** To Spark it is of the second API, whose sources need not be read again. */
  private final class StandIn(val source: Source) extends SparkDataStream {
    override def initialOffset(): Offset = source.initialOffset()
    override def deserializeOffset(json: String): Offset = source.deserializeOffset(json)
    override def commit(end: Offset): Unit = source.commit(end)
    override def stop(): Unit = source.stop()
  }
}
