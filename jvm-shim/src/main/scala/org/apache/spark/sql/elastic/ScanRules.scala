package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{Hidden, JoinPartitions, SplitSize, StageAdvice}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow}
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.elastic.ElasticExtensions._
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.internal.SQLConf

/**
 * Makes file scans in batch queries distribute their files as the policy process says, and joins partitions of other
 * sources. A columnar rule, since those see every plan last, with and without adaptive execution.
 */
private[elastic] final case class ScanRule(session: SparkSession, advice: StageAdvice) extends ColumnarRule {
  import ScanRule._

  override def preColumnarTransitions: Rule[SparkPlan] = changed {
    case scan: BatchScanExec => joined(scan, scan.table.name, scan.scan, scan.inputPartitions.length)
    case scan: RowDataSourceScanExec if !KafkaPartitions.isKafka(scan.relation, "KafkaRelation") =>
      val name = scan.tableIdentifier.fold(scan.relation.getClass.getSimpleName)(_.unquotedString)
      joined(scan, name, scan.relation, scan.rdd.getNumPartitions)
  }

  override def postColumnarTransitions: Rule[SparkPlan] = changed {
    case scan: FileSourceScanExec if scan.getClass == classOf[FileSourceScanExec] && isSparksChoice(scan) =>
      val opening = scan.relation.sparkSession.sessionState.conf.filesOpenCostInBytes
      new SharedOutScan(scan, opening, asked => advice.tasks(named(asked), asked.toString))
  }

  private def changed(rule: PartialFunction[SparkPlan, SparkPlan]): Rule[SparkPlan] = (plan: SparkPlan) =>
    if (!advice.isOn || !CurrentExecution.isBatch(session)) plan
    else UnlessItFails(plan)(plan.transformUp(rule))

  private def named(asked: SplitSize) = asked.copy(scan = CurrentExecution.named(session, asked.scan))

  private def joined(scan: SparkPlan, name: String, source: AnyRef, planned: Int): SparkPlan = {
    val joinable = scan.outputOrdering.isEmpty && scan.outputPartitioning.isInstanceOf[UnknownPartitioning]
    val question =
      JoinPartitions(CurrentExecution.named(session, name), source.getClass.getSimpleName, planned, joinable)
    def tasks = advice.tasks(question, question.copy(scan = name).toString)
    if (planned == 0) scan else tasks.filter(_ < planned).fold(scan)(CoalesceExec(_, scan))
  }
}

private[elastic] object ScanRule {
  def inject(extensions: SparkSessionExtensions): Unit =
    extensions.injectColumnar(session => ScanRule(classic(session), advice(session)))

  /** With any of these the application has chosen how its files are split. */
  private val byUser = Seq(
    SQLConf.FILES_MAX_PARTITION_BYTES,
    SQLConf.FILES_MIN_PARTITION_NUM,
    SQLConf.FILES_MAX_PARTITION_NUM,
    SQLConf.LEAF_NODE_DEFAULT_PARALLELISM).map(_.key)

  private def isSparksChoice(scan: FileSourceScanExec): Boolean =
    !scan.bucketedScan && scan.optionalBucketSet.isEmpty &&
      !byUser.exists(scan.relation.sparkSession.sessionState.conf.contains)
}

/**
 * A scan that asks when it runs, since only then the files are known that runtime filters have left. It equals no
 * scan of Spark's, so that a rule that inserts it has changed the plan; their canonical forms are the same. Spark's
 * own RDD gets other partitions, so that reading is not implemented twice and executors meet no class of the plugin.
 *
 * @param opening cost of opening a file, in bytes
 * @param tasks number of tasks that should read; None to keep Spark's splits
 */
private[elastic] final class SharedOutScan(scan: FileSourceScanExec, opening: Long, tasks: SplitSize => Option[Int])
    extends CopiedScan(scan)
    with LimitedByFiles
    with LoggedAsSpark {
  // The metrics of `scan` are shown as this scan's own.
  override lazy val driverMetrics: Map[String, SQLMetric] = scan.driverMetrics

  @volatile private var fewFiles = false

  override def isLimited: Boolean = fewFiles

  override lazy val inputRDD: RDD[InternalRow] = scan.inputRDD match {
    case planned: FileScanRDD => UnlessItFails[RDD[InternalRow]](planned)(sharedOut(planned))
    case other => other
  }

  /** Replace the partitions of an RDD of files, before it has been asked for them. */
  private def sharedOut(planned: FileScanRDD): RDD[InternalRow] = {
    val before = planned.filePartitions.size
    val parts = planned.filePartitions.flatMap(_.files)
    val conf = relation.sparkSession.sessionState.conf
    val bytes = parts.iterator.map(_.length).sum
    // Little data is always one task, and very many files are even as Spark has distributed them.
    if (before == 0 || parts.size > SharedOutScan.MostParts || (parts.size == 1 && bytes < opening)) planned
    else {
      val inputs = inputsOf(parts)
      val most = Option.when(!inputs.exists(_.canBeSplit))(inputs.length)
      val question = SplitSize(name, bytes, inputs.length, before, most, opening, conf.filesMaxPartitionBytes)
      val asked = tasks(question)
      fewFiles = most.exists(_ <= asked.getOrElse(before))
      asked.foreach(number => SharedOutScan.partitions.set(planned, FileShares.of(inputs, number, opening)))
      planned
    }
  }

  private def inputsOf(parts: Seq[PartitionedFile]): Seq[FileShares.Input] =
    // Spark skips the rest of the part in which a corruption shows, so parts have to stay as they are.
    if (new FileSourceOptions(CaseInsensitiveMap(relation.options)).ignoreCorruptFiles)
      parts.map(part => new FileShares.Input(Seq(part), splitable = false))
    else
      FileShares.inputs(parts)(part =>
        relation.fileFormat.isSplitable(relation.sparkSession, relation.options, part.toPath))

  private def name: String =
    tableIdentifier
      .map(_.unquotedString)
      .orElse(relation.location.rootPaths.headOption.map(_.getName))
      .getOrElse(relation.toString)

  override def canEqual(other: Any): Boolean = other.isInstanceOf[SharedOutScan]

  override def equals(other: Any): Boolean = other.isInstanceOf[SharedOutScan] && super.equals(other)

  override def hashCode: Int = super.hashCode

  /** Send Spark's own scan to executors, which have no class of the plugin. */
  private def writeReplace(): AnyRef = scan

  // Spark copies a plan by its fields, for instance to change its filters.
  override def makeCopy(fields: Array[AnyRef]): SparkPlan = scan.makeCopy(fields) match {
    case changed: FileSourceScanExec =>
      val copy = new SharedOutScan(changed, opening, tasks)
      copy.copyTagsFrom(this)
      copy
    case other => other
  }
}

private object SharedOutScan {
  private val MostParts = 10000

  // Lazy, so that a missing field costs only the advice.
  private lazy val partitions = Hidden.field("org.apache.spark.sql.execution.datasources.FileScanRDD#filePartitions")
}
