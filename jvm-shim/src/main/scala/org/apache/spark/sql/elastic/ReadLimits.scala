package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{Harmless, SourceLimit}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.streaming.{ReadAllAvailable, ReadLimit, SparkDataStream}
import org.apache.spark.sql.elastic.Moved.MicroBatchExecution

/**
 * Limits the rows that a micro-batch reads from sources, as the policy says. Spark takes the limit of each source
 * from a map, which a run creates with its sources. Limits set by the user are kept.
 */
private[elastic] final class ReadLimits(execution: MicroBatchExecution) extends Logging {
  private var ours = Map.empty[SparkDataStream, ReadLimit]

  /** Apply limits to the next micro-batch. Called on the stream thread, between two of them. */
  def use(limits: Seq[SourceLimit]): Unit =
    if (limits.nonEmpty || ours.nonEmpty) {
      try {
        val all = ReadLimitsAccess.get(execution)
        val free = all.filter { case (source, limit) =>
          limit.isInstanceOf[ReadAllAvailable] || ours.get(source).exists(_ eq limit)
        }
        val wanted = StreamSources.of(execution).zip(limits).collect {
          case (source, limit) if limit.rows > 0 && free.contains(source) => source -> ReadLimit.maxRows(limit.rows)
        }
        ReadLimitsAccess.set(execution, all ++ free.map(_._1 -> ReadLimit.allAvailable()) ++ wanted)
        ours = wanted.toMap
      } catch {
        case Harmless(e) =>
          logWarning(s"spark-elastic: query ${QueryRun.called(execution)}: no limit for its micro-batches", e)
      }
    }
}
