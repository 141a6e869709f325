package org.apache.spark.sql.elastic

import java.util.{Collections, WeakHashMap}

import scala.collection.mutable

import org.apache.spark.elastic.{SplitOffsets, StageAdvice}
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.elastic.ElasticExtensions._
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.sources.BaseRelation

/**
 * Makes batch queries read Kafka in as many tasks as the policy process says, with the connector's option for that.
 * Relations for which the application has set such an option are left alone.
 */
private[elastic] final case class KafkaRelationsRule(session: SparkSession, advice: StageAdvice)
    extends Rule[LogicalPlan] {
  import KafkaRelationsRule._

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!advice.isOn || !CurrentExecution.isBatch(session)) plan
    else
      plan.transform {
        case scan: LogicalRelation if KafkaPartitions.isKafka(scan.relation, "KafkaRelation") =>
          UnlessItFails(scan)(divided(scan))
      }

  private def divided(scan: LogicalRelation): LogicalRelation = {
    val relation = scan.relation
    val options = field(relation, Options).asInstanceOf[CaseInsensitiveMap[String]]
    if (ByUser.exists(options.contains)) scan
    else {
      val question = SplitOffsets(CurrentExecution.named(session, "kafka"), isLate(field(relation, "endingOffsets")))
      val known = question.copy(scan = relation.toString + options).toString
      advice.tasks(question, known).fold(scan)(tasks => scan.copy(relation = copied(relation, options, tasks)))
    }
  }
}

private[elastic] object KafkaRelationsRule {
  def inject(extensions: SparkSessionExtensions): Unit =
    extensions.injectPreCBORule(session => KafkaRelationsRule(classic(session), advice(session)))

  private val Options = "sourceOptions"
  private val Tasks = "minPartitions"
  private val ByUser = Seq(Tasks, "maxRecordsPerPartition")

  /** The fields that the relation is created from. */
  private val Fields = Seq(
    "sqlContext",
    "strategy",
    Options,
    "specifiedKafkaParams",
    "failOnDataLoss",
    "includeHeaders",
    "startingOffsets",
    "endingOffsets")

  // A relation that occurs twice stays one, so that it is read once.
  private val copies = Collections.synchronizedMap(new WeakHashMap[BaseRelation, (Int, BaseRelation)])

  private def copied(relation: BaseRelation, options: CaseInsensitiveMap[String], tasks: Int): BaseRelation =
    copies
      .compute(
        relation,
        (_, last) =>
          if (last != null && last._1 == tasks) last
          else {
            val changed = options + (Tasks -> tasks.toString)
            val values = Fields.map(name => if (name == Options) changed else field(relation, name))
            val made = relation.getClass.getConstructors.head.newInstance(values: _*)
            (tasks, made.asInstanceOf[BaseRelation])
          })
      ._2

  /** Whether the tasks must find out where a partition ends; -1 stands for the latest offset. */
  private def isLate(end: AnyRef): Boolean = end match {
    case fields: Product if fields.productArity > 0 =>
      fields.productIterator.exists { case map: Map[_, _] => map.values.exists(_ == -1L); case _ => false }
    case _ => true
  }

  private def field(relation: BaseRelation, name: String): AnyRef = {
    val field = relation.getClass.getDeclaredField(name)
    field.setAccessible(true)
    field.get(relation)
  }
}

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
