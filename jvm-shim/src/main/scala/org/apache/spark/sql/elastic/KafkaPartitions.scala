package org.apache.spark.sql.elastic

import scala.collection.mutable

/**
 * Divides the partitions of Kafka that tasks read. Spark's connector is not part of Spark's distribution, so its
 * classes and fields are known by name only. Whatever differs from expectations is left alone.
 */
private[elastic] object KafkaPartitions {
  private val Package = "org.apache.spark.sql.kafka010."

  /** Options with which a user limits what a micro-batch reads. */
  val Limits: Seq[String] = Seq("maxOffsetsPerTrigger", "minOffsetsPerTrigger")

  /** Whether a value is of this class of the connector. */
  def isKafka(value: Any, name: String): Boolean = value != null && value.getClass.getName == Package + name

  /** Return the number of records to read, as far as known. */
  def records(partitions: Seq[Any]): Long = partitions.flatMap(rangeOf).map(_.records).sum

  /**
   * Divide the largest partitions until there are `least`, or each has one record.
   *
   * @param partitions case classes with an offset range among their fields
   */
  def divide[T](partitions: Seq[T], least: Int): Seq[T] = {
    val known = partitions.flatMap(partition => rangeOf(partition).map(partition -> _))
    if (partitions.size >= least || known.size != partitions.size) partitions
    else {
      val parts = mutable.ArrayBuffer.fill(known.size)(1)
      val byShare = Ordering.by((index: Int) => known(index)._2.records.toDouble / parts(index))
      val queue = mutable.PriorityQueue(known.indices.filter(known(_)._2.records > 1): _*)(byShare)
      var more = least - parts.size
      while (more > 0 && queue.nonEmpty) {
        val largest = queue.dequeue()
        parts(largest) += 1
        more -= 1
        if (parts(largest) < known(largest)._2.records) queue.enqueue(largest)
      }
      known.zip(parts).flatMap { case ((partition, range), number) =>
        (0 until number).map { part =>
          val from = range.from + range.records * part / number
          val until = range.from + range.records * (part + 1) / number
          if (number == 1) partition else range.replaced(partition, from, until)
        }
      }
    }
  }

  /** Offsets `from` until `until`, in the field at `place` of a case class. */
  private final case class Range(place: Int, from: Long, until: Long) {
    def records: Long = until - from

    def replaced[T](owner: T, from: Long, until: Long): T = {
      val range = owner.asInstanceOf[Product].productElement(place)
      copied(owner, place -> copied(range, 1 -> from, 2 -> until)).asInstanceOf[T]
    }
  }

  private def rangeOf(owner: Any): Option[Range] = {
    val found = for {
      fields <- Seq(owner).collect { case fields: Product => fields.productIterator.toSeq }
      (range: Product, place) <- fields.zipWithIndex if isKafka(range, "KafkaOffsetRange")
    } yield (place, range.productElement(1), range.productElement(2))
    found.collectFirst { case (place, from: Long, until: Long) => Range(place, from, until) }
  }

  /** Copy a case class with other values at some places. */
  private def copied(original: Any, values: (Int, Any)*): Any = {
    val fields = original.asInstanceOf[Product].productIterator.toSeq
    val changed = values.foldLeft(fields) { case (all, (place, value)) => all.updated(place, value) }
    original.getClass.getConstructors.head.newInstance(changed.map(_.asInstanceOf[AnyRef]): _*)
  }
}
