package org.apache.spark.sql.elastic

import java.time.Instant

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.elastic.{Contract, FullestPartition, OffsetsBehind, QueryProgress, SourceRead}
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.streaming.{SourceProgress, StreamingQueryProgress}

/** The part of Spark's progress report that decisions depend on. */
private[elastic] object ProgressFacts {

  /** @param partitions the session's count, for a query whose operators report none */
  def apply(p: StreamingQueryProgress, partitions: Int, sources: Seq[SourceRead]): QueryProgress = {
    val started = Instant.parse(p.timestamp).toEpochMilli
    val offsets = p.sources.toSeq.map(PartitionOffsets.of)
    val duration = Option(p.durationMs.get("triggerExecution")).fold(p.batchDuration)(_.longValue)
    QueryProgress(
      query = p.id.toString,
      run = p.runId.toString,
      batch = p.batchId,
      started = started,
      durationMs = duration,
      inputRows = p.numInputRows,
      inputRowsPerSecond = finite(p.inputRowsPerSecond),
      processedRowsPerSecond = finite(p.processedRowsPerSecond),
      stateRows = p.stateOperators.map(_.numRowsTotal).sum,
      stateBytes = p.stateOperators.map(_.memoryUsedBytes).sum,
      partitions = p.stateOperators.headOption.map(_.numShufflePartitions.toInt).filter(_ > 0).getOrElse(partitions),
      offsetsBehind = p.sources.toSeq.flatMap(behind).maxByOption(_.max),
      recordsBehind =
        p.sources.toSeq.zip(offsets).flatMap { case (source, found) => allBehind(source, found) }.reduceOption(_ + _),
      eventTimeLagMs = Option(p.eventTime.get("max")).map(started - Instant.parse(_).toEpochMilli),
      sources = sources.zip(offsets).map { case (source, found) => source.copy(fullest = found.fullest) })
  }

  /** Return the lag that Spark's Kafka source reports. Other sources report none under these names, or no numbers. */
  private def behind(source: SourceProgress): Option[OffsetsBehind] = {
    def metric(name: String): Option[String] = Option(source.metrics).flatMap(m => Option(m.get(name)))
    for {
      avg <- metric("avgOffsetsBehindLatest").flatMap(_.toDoubleOption)
      max <- metric("maxOffsetsBehindLatest").flatMap(_.toLongOption)
      min <- metric("minOffsetsBehindLatest").flatMap(_.toLongOption)
    } yield OffsetsBehind(finite(avg), max, min)
  }

  /** Return the lag of all partitions, from its mean and their number, which only Kafka's source shows. */
  private def allBehind(source: SourceProgress, offsets: PartitionOffsets): Option[Long] =
    behind(source).filter(_ => offsets.partitions > 0).map(b => math.round(b.avg * offsets.partitions))

  /** Spark reports rates of no rows in no time as NaN or infinite, which JSON cannot express. */
  private def finite(rate: Double): Double = if (rate.isNaN || rate.isInfinite) 0.0 else rate
}

/**
 * The offsets by topic and partition in a source's progress report, as Kafka's has them, else none; parsed once.
 *
 * @param first where the micro-batch began to read, empty in a query's first one
 * @param last up to where there was data to read
 */
private[elastic] final class PartitionOffsets private (
    first: PartitionOffsets.ByPartition,
    last: PartitionOffsets.ByPartition) {
  def partitions: Int = last.size

  /** Return the partition with the most rows to read at the start of the batch. A new partition began at 0. */
  def fullest: Option[FullestPartition] = {
    val rows = last.map { case (partition, offset) =>
      partition -> math.max(0L, offset - first.getOrElse(partition, 0L))
    }
    Option.when(first.nonEmpty && rows.valuesIterator.exists(_ > 0)) {
      val ((topic, partition), most) = rows.maxBy(_._2)
      FullestPartition(s"$topic-$partition", most, rows.valuesIterator.sum, rows.size)
    }
  }
}

private[elastic] object PartitionOffsets {
  private[elastic] type ByPartition = Map[(String, String), Long]

  def of(source: SourceProgress): PartitionOffsets =
    new PartitionOffsets(read(source.startOffset), read(Option(source.latestOffset).getOrElse(source.endOffset)))

  /**
   * Return the rows that scans will read, and those that their sources have beyond these; None if unknown for any scan,
   * or for all.
   */
  def toRead(scans: Seq[SparkPlan]): (Option[Long], Option[Long]) = {
    val found = scans.map {
      case scan: MicroBatchScanExec =>
        val end = read(scan.end.json)
        val latest = Option(scan.stream).collect { case s: SupportsAdmissionControl => s.reportLatestOffset }
        val last = latest.flatMap(Option(_)).map(offset => read(offset.json)).getOrElse(Map.empty)
        (between(read(scan.start.json), end), between(end, last))
      case _ => (None, None)
    }
    val rows = found.map(_._1)
    (Option.when(rows.forall(_.nonEmpty))(rows.flatten.sum), found.flatMap(_._2).reduceOption(_ + _))
  }

  /** Return the rows from `first` to `last`, None if either does not tell partitions apart. A new one begins at 0. */
  private def between(first: ByPartition, last: ByPartition): Option[Long] =
    Option.when(first.nonEmpty && last.nonEmpty) {
      last.iterator.map { case (partition, offset) => math.max(0L, offset - first.getOrElse(partition, 0L)) }.sum
    }

  private def read(offsets: String): ByPartition =
    Option(offsets).flatMap(o => Try(byPartition(o)).toOption).getOrElse(Map.empty)

  private def byPartition(offsets: String): ByPartition = {
    val found = for {
      topic <- Contract.mapper.readTree(offsets).properties.asScala.toSeq
      partition <- topic.getValue.properties.asScala
    } yield (topic.getKey, partition.getKey) -> partition.getValue
    if (found.forall(_._2.isIntegralNumber)) found.map { case (name, offset) => name -> offset.longValue }.toMap
    else Map.empty
  }
}
