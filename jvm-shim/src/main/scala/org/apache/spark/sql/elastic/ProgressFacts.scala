package org.apache.spark.sql.elastic

import java.time.Instant

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.elastic.{Contract, OffsetsBehind, QueryProgress, SourceRead}
import org.apache.spark.sql.streaming.{SourceProgress, StreamingQueryProgress}

/** The part of Spark's progress report that decisions are made from. */
private[elastic] object ProgressFacts {

  /** @param partitions the session's count, for a query whose operators name none */
  def apply(p: StreamingQueryProgress, partitions: Int, sources: Seq[SourceRead]): QueryProgress = {
    val started = Instant.parse(p.timestamp).toEpochMilli
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
      recordsBehind = p.sources.toSeq.flatMap(allBehind).reduceOption(_ + _),
      eventTimeLagMs = Option(p.eventTime.get("max")).map(started - Instant.parse(_).toEpochMilli),
      sources = sources)
  }

  /** What Spark's Kafka source says under these names; other sources say nothing like it, or not as numbers. */
  private def behind(source: SourceProgress): Option[OffsetsBehind] = {
    def metric(name: String): Option[String] = Option(source.metrics).flatMap(m => Option(m.get(name)))
    for {
      avg <- metric("avgOffsetsBehindLatest").flatMap(_.toDoubleOption)
      max <- metric("maxOffsetsBehindLatest").flatMap(_.toLongOption)
      min <- metric("minOffsetsBehindLatest").flatMap(_.toLongOption)
    } yield OffsetsBehind(finite(avg), max, min)
  }

  /** As many as its mean says for all partitions, which only the offsets that Kafka's source shows count. */
  private def allBehind(source: SourceProgress): Option[Long] =
    behind(source).flatMap(b => partitions(source.latestOffset).map(n => math.round(b.avg * n)))

  /** Counts the partitions in offsets by topic and partition. */
  private def partitions(offsets: String): Option[Int] =
    Option(offsets).flatMap(o => Try(Contract.mapper.readTree(o).asScala.map(_.size).sum).toOption).filter(_ > 0)

  /** Spark reports rates of no rows in no time as NaN or infinite, which JSON has no word for. */
  private def finite(rate: Double): Double = if (rate.isNaN || rate.isInfinite) 0.0 else rate
}
