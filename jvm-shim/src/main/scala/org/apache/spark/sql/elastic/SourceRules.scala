package org.apache.spark.sql.elastic

import org.apache.spark.elastic.SourceBounds
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/**
 * Keeps the sources of a micro-batch within the bounds that the policy has given, in tasks that read them. Files are
 * shared out and ranges of Kafka's offsets divided; of other sources partitions are at most joined.
 */
private[elastic] final case class SourceBoundsRule(session: SparkSession, control: Option[QueryControl])
    extends ColumnarRule {

  override def preColumnarTransitions: Rule[SparkPlan] = (plan: SparkPlan) =>
    Option(session.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY))
      .flatMap(id => control.map(_.boundsOf(id)))
      .filter(_.nonEmpty)
      .fold(plan) { bounds =>
        plan.transformUp { case scan: StreamSourceAwareSparkPlan =>
          scan.getStream.flatMap(bounds.get).fold[SparkPlan](scan)(bound(scan, _))
        }
      }

  private def bound(scan: SparkPlan, bounds: SourceBounds): SparkPlan = scan match {
    case files: FileSourceScanExec =>
      def within(planned: Int) = math.min(math.max(planned, bounds.least), bounds.most)
      new SharedOutScan(files, opening = 0, asked => Some(within(asked.planned)).filter(_ != asked.planned))
    case stream: MicroBatchScanExec => joined(new DividedScan(stream, bounds.least), bounds.most)
    case other => joined(other, bounds.most)
  }

  private def joined(scan: SparkPlan, most: Int): SparkPlan = scan.outputPartitioning match {
    case _: UnknownPartitioning if StreamSources.tasks(scan).exists(_ > most) => CoalesceExec(most, scan)
    case _ => scan
  }
}

/** A scan of which Kafka's partitions are divided. It equals none of Spark's, as [[SharedOutScan]] says. */
private final class DividedScan(scan: MicroBatchScanExec, least: Int)
    extends MicroBatchScanExec(
      scan.output,
      scan.scan,
      scan.stream,
      scan.start,
      scan.end,
      scan.keyGroupedPartitioning,
      scan.ordering) {

  override lazy val inputPartitions: Seq[InputPartition] = KafkaPartitions.divide(scan.inputPartitions, least)

  override def equals(other: Any): Boolean = other.isInstanceOf[DividedScan] && super.equals(other)

  override def hashCode: Int = super.hashCode

  /** Executors get Spark's own scan: they know no class of ours. */
  private def writeReplace(): AnyRef = scan

  override def makeCopy(fields: Array[AnyRef]): SparkPlan = scan.makeCopy(fields) match {
    case changed: MicroBatchScanExec =>
      val copy = new DividedScan(changed, least)
      copy.copyTagsFrom(this)
      copy
    case other => other
  }
}
