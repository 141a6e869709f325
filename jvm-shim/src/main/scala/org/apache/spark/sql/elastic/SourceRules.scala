package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{SourceBounds, SplitSize}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory, Scan}
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.elastic.ElasticExtensions._
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.v2.{DataSourceRDD, DataSourceV2ScanExecBase, MicroBatchScanExec}

/**
 * Keeps the number of tasks that read the sources of a micro-batch within the policy's bounds. Files are
 * redistributed and ranges of Kafka's offsets divided; partitions of other sources are at most joined. (Kafka's
 * `minPartitions` would take a new query: it is read when the source is created.)
 */
private[elastic] final case class SourceBoundsRule(session: SparkSession, control: Option[QueryControl])
    extends ColumnarRule {
  import SourceBoundsRule._

  override def preColumnarTransitions: Rule[SparkPlan] = (plan: SparkPlan) =>
    CurrentExecution.streamingQuery(session).fold(plan) { id =>
      control.foreach(_.planned(id, plan))
      control.map(_.boundsOf(id)).filter(_.nonEmpty).fold(plan) { bounds =>
        UnlessItFails(plan)(plan.transformUp { case scan @ StreamOf(stream) =>
          bounds.get(stream).fold[SparkPlan](scan)(bound(scan, _))
        })
      }
    }

  private def bound(scan: SparkPlan, bounds: SourceBounds): SparkPlan = scan match {
    case files: FileSourceScanExec =>
      def within(asked: SplitSize) =
        math.min(math.max(asked.planned, least(bounds, asked.bytes / WorthBytes)), bounds.most)
      new SharedOutScan(files, opening = 0, asked => Some(within(asked)).filter(_ != asked.planned))
    case stream: MicroBatchScanExec =>
      joined(if (math.max(bounds.least, bounds.wanted) > 1) DividedScan(stream, bounds) else stream, bounds.most)
    case other => joined(other, bounds.most)
  }

  private def joined(scan: SparkPlan, most: Int): SparkPlan = scan.outputPartitioning match {
    case _: UnknownPartitioning if StreamSources.tasks(scan).exists(_ > most) => CoalesceExec(most, scan)
    case _ => scan
  }
}

private[elastic] object SourceBoundsRule {

  /** This much is worth its own task of some 10 ms overhead, a fraction of what it takes to read and parse it. */
  private val WorthBytes = 1L << 20
  val WorthRecords = 1000L

  /** Return the lower bound of tasks, raised up to `wanted` as far as each has enough to read. */
  def least(bounds: SourceBounds, worth: Long): Int =
    math.max(bounds.least, math.min(bounds.wanted.toLong, worth).toInt)

  def inject(extensions: SparkSessionExtensions): Unit =
    extensions.injectColumnar(session => SourceBoundsRule(classic(session), controlOf(session.sparkContext)))
}

/**
 * A scan whose Kafka partitions are divided. It does not extend Spark's own, which equals all scans of its stream, so
 * a plan with this one in its place would count as unchanged.
 */
private final case class DividedScan(original: MicroBatchScanExec, bounds: SourceBounds)
    extends DataSourceV2ScanExecBase
    with ReadsStream
    with PostsMetrics {
  override def output: Seq[Attribute] = original.output
  override def scan: Scan = original.scan
  override def keyGroupedPartitioning: Option[Seq[Expression]] = original.keyGroupedPartitioning
  override def ordering: Option[Seq[SortOrder]] = original.ordering
  override def getStream: Option[SparkDataStream] = StreamOf.unapply(original)

  override lazy val inputPartitions: Seq[InputPartition] =
    UnlessItFails(original.inputPartitions) {
      val worth = KafkaPartitions.records(original.inputPartitions) / SourceBoundsRule.WorthRecords
      KafkaPartitions.divide(original.inputPartitions, SourceBoundsRule.least(bounds, worth))
    }
  override lazy val readerFactory: PartitionReaderFactory = original.readerFactory
  override lazy val inputRDD: RDD[InternalRow] = {
    postMetrics()
    new DataSourceRDD(sparkContext, partitions, readerFactory, supportsColumnar, customMetrics)
  }

  override def nodeName: String = original.nodeName
  override protected def doCanonicalize(): SparkPlan = original.canonicalized

  /** Send Spark's own scan to executors, which have no class of the plugin. */
  private def writeReplace(): AnyRef = original
}
