package org.apache.spark.sql.elastic

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.elastic.{Contract, FullestPartition}
import org.apache.spark.sql.streaming.SourceProgress

/**
 * The offsets by topic and partition in a source's progress report, as Kafka's source has them; empty for other
 * sources. They are parsed once.
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
