package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{Harmless, Linkage, Part, SourceFacts, SourceRead}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.elastic.Moved.{StreamExecution, StreamingRelation}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.FileFormat
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.streaming.StreamingQueryProgress

/** The sources of a query, in the order of their numbers in its checkpoint, and the tasks that read them. */
private[elastic] object StreamSources extends Logging {

  def facts(analyzed: LogicalPlan): Seq[SourceFacts] =
    analyzed
      .collect {
        case relation: StreamingRelation => relation -> relation.sourceName
        case relation: StreamingRelationV2 => relation -> relation.sourceName
      }
      .distinct
      .map {
        case (files: StreamingRelation, name) =>
          SourceFacts(name, classOf[FileFormat].isAssignableFrom(files.dataSource.providingClass))
        case (other: StreamingRelationV2, name) =>
          val isKafka = other.source.exists(KafkaPartitions.isKafka(_, "KafkaSourceProvider"))
          SourceFacts(name, divisible = isKafka, ordered = isKafka, limitable = isKafka && isUnlimited(other))
        case (_, name) => SourceFacts(name, divisible = false)
      }

  private def isUnlimited(relation: StreamingRelationV2): Boolean =
    Linkage.has(Part.ReadLimits) && !KafkaPartitions.Limits.exists(relation.extraOptions.containsKey)

  /** Return what the micro-batch that has just run has read of each source. */
  def read(execution: StreamExecution, p: StreamingQueryProgress): Seq[SourceRead] = {
    val streams = of(execution)
    val tasks =
      try
        Option(execution.lastExecution)
          .filter(_.currentBatchId == p.batchId)
          .fold(Map.empty[SparkDataStream, Tasks])(run =>
            readers(run.executedPlan, Int.MaxValue).groupMap(_._1)(_._2).map { case (of, read) =>
              of -> read.reduce(_ + _)
            })
      catch {
        case Harmless(e) =>
          logDebug("it is not known in how many tasks the sources were read", e)
          Map.empty[SparkDataStream, Tasks]
      }
    p.sources.toSeq.zipWithIndex.map { case (source, number) =>
      val read = streams.lift(number).flatMap(tasks.get)
      SourceRead(source.numInputRows, read.map(_.number), read.exists(_.areLimited))
    }
  }

  def of(execution: StreamExecution): Seq[SparkDataStream] =
    Option(StreamExecutionAccess.sources(execution)).fold(Seq.empty[SparkDataStream])(_.toSeq.distinct)

  /** A number of tasks; limited if the files could not be split. */
  private final case class Tasks(number: Int, areLimited: Boolean) {
    def +(other: Tasks): Tasks = Tasks(number + other.number, areLimited || other.areLimited)
  }

  /** @param most number of tasks that follow in the same stage */
  private def readers(plan: SparkPlan, most: Int): Seq[(SparkDataStream, Tasks)] = plan match {
    case adaptive: AdaptiveSparkPlanExec => readers(adaptive.executedPlan, most)
    case stage: QueryStageExec => readers(stage.plan, Int.MaxValue)
    case exchange: Exchange => readers(exchange.child, Int.MaxValue)
    case CoalesceExec(number, child) => readers(child, math.min(number, most))
    case leaf @ StreamOf(stream) => tasks(leaf).map(n => stream -> Tasks(math.min(n, most), areLimited(leaf))).toSeq
    case unary: UnaryExecNode => readers(unary.child, most)
    case other => other.children.flatMap(readers(_, Int.MaxValue))
  }

  private def areLimited(leaf: SparkPlan): Boolean = leaf match {
    case files: LimitedByFiles => files.isLimited
    case _ => false
  }

  /** Return the number of tasks in which a plan reads its source, if known. */
  def tasks(leaf: SparkPlan): Option[Int] = {
    val read = leaf match {
      case scan: DataSourceV2ScanExecBase => scan.inputRDDs()
      case scan: DataSourceScanExec => scan.inputRDDs()
      case scan: CodegenSupport => scan.inputRDDs()
      case _ => Nil
    }
    Option.when(read.nonEmpty)(read.map(_.getNumPartitions).sum)
  }
}

/** A scan that may have no more tasks than files. Streams do not depend on the scans that extend it. */
private[elastic] trait LimitedByFiles {

  /** Whether there are fewer files than tasks and none can be split; known once the scan has run. */
  def isLimited: Boolean
}
