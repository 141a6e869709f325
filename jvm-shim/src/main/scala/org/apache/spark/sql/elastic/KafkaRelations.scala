package org.apache.spark.sql.elastic

import java.util.{Collections, WeakHashMap}

import org.apache.spark.elastic.{SplitOffsets, StageAdvice}
import org.apache.spark.sql.elastic.ElasticExtensions._
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
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
