package org.apache.spark.sql.elastic

import org.apache.spark.sql.connector.read.streaming.{Offset, SparkDataStream}
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.execution.streaming.Source

/**
 * Sources that a run keeps when its checkpoint is read again. When a run starts, Spark reads the last batch of each
 * V1 source once more, so that a new source learns about it. These know it, and the data of that batch may be gone.
 */
private[elastic] object KnownSources {

  /** Read the checkpoint, and make the batch after its last one that of a context. Called on the stream thread. */
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

  /** Spark takes it for a V2 source, which need not be read again. */
  private final class StandIn(val source: Source) extends SparkDataStream {
    override def initialOffset(): Offset = source.initialOffset()
    override def deserializeOffset(json: String): Offset = source.deserializeOffset(json)
    override def commit(end: Offset): Unit = source.commit(end)
    override def stop(): Unit = source.stop()
  }
}
