package org.apache.spark.sql.elastic

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.elastic.{Contract, FullestPartition}
import org.apache.spark.sql.streaming.SourceProgress

/**
 * The offsets by topic and partition that a source shows in a progress report, as Kafka's does; of any other source
 * there are none. They are read once.
 *
 * @param first where the micro-batch began to read, nothing in a query's first one
 * @param last up to where there was something to read
 */
private[elastic] final class PartitionOffsets private (
    first: PartitionOffsets.ByPartition,
    last: PartitionOffsets.ByPartition) {
  def partitions: Int = last.size

  /** The one with the most rows to be read when the micro-batch began; a partition that is new began at 0. */
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
