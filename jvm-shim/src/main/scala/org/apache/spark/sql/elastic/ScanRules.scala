package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{Hidden, SplitSize, StageAdvice}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{ColumnarRule, FileSourceScanExec, PartitionedFileUtil, SparkPlan}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.internal.SQLConf

/**
 * Has the scans of files in batch queries share out their files as the policy process says. A columnar rule, since those
 * see every plan last, with adaptive execution and without.
 */
private[elastic] final case class ScanRule(session: SparkSession, advice: StageAdvice) extends ColumnarRule {
  import ScanRule._

  override def postColumnarTransitions: Rule[SparkPlan] = (plan: SparkPlan) =>
    if (!advice.isThere || CurrentExecution.streamingQuery(session).isDefined) plan
    else
      UnlessItFails(plan)(plan.transform {
        case scan: FileSourceScanExec if scan.getClass == classOf[FileSourceScanExec] && isSparksChoice(scan) =>
          val opening = scan.relation.sparkSession.sessionState.conf.filesOpenCostInBytes
          new SharedOutScan(scan, opening, asked => if (advice.isThere) advice.tasks(named(asked)) else None)
      })

  private def named(asked: SplitSize) = asked.copy(scan = CurrentExecution.named(session, asked.scan))
}

private[elastic] object ScanRule {
  import ElasticExtensions._

  def inject(extensions: SparkSessionExtensions): Unit =
    extensions.injectColumnar(session => ScanRule(classic(session), advice(session)))

  /** With any of these the application has said how its files are to be split. */
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
 * A scan that asks when it runs, since only then it is known which files runtime filters have left. It equals no scan
 * of Spark's, so that a rule that puts it into a plan has changed that plan; their canonical forms are the same.
 *
 * @param opening what it counts for to open a file, in bytes
 * @param tasks how many tasks are to read; none: as Spark has split the files
 */
private[elastic] final class SharedOutScan(scan: FileSourceScanExec, opening: Long, tasks: SplitSize => Option[Int])
    extends FileSourceScanExec(
      scan.relation,
      scan.stream,
      scan.output,
      scan.requiredSchema,
      scan.partitionFilters,
      scan.optionalBucketSet,
      scan.optionalNumCoalescedBuckets,
      scan.dataFilters,
      scan.tableIdentifier,
      scan.disableBucketedScan) {
  // What `scan` does on the way is shown as done here.
  override lazy val driverMetrics: Map[String, SQLMetric] = scan.driverMetrics

  override lazy val inputRDD: RDD[InternalRow] = scan.inputRDD match {
    case planned: FileScanRDD => UnlessItFails[RDD[InternalRow]](planned)(sharedOut(planned))
    case other => other
  }

  /** Gives what reads the files, and has not been asked for its partitions yet, other ones. */
  private def sharedOut(planned: FileScanRDD): RDD[InternalRow] = {
    val files = FileScanAccess.files(scan)
    val conf = relation.sparkSession.sessionState.conf
    lazy val bytes = files.calculateTotalPartitionBytes // of each file
    val before = planned.filePartitions.size
    // So little is one task whatever anybody says, and so many files are even as Spark has shared them out.
    def many = planned.filePartitions.iterator.map(_.files.length).sum > SharedOutScan.MostFiles
    if (before == 0 || many || (before == 1 && bytes < 2 * opening)) planned
    else {
      val inputs = files.filePartitionIterator.flatMap { folder =>
        folder.files.map { file =>
          val path = file.getPath
          val canBeSplit = relation.fileFormat.isSplitable(relation.sparkSession, relation.options, path)
          FileShares.Input(
            file.getLen,
            canBeSplit,
            PartitionedFileUtil.getPartitionedFile(file, path, folder.values, _, _))
        }
      }.toSeq
      val most = Option.when(!inputs.exists(_.canBeSplit))(inputs.length)
      val question = SplitSize(name, bytes, before, most, opening, conf.filesMaxPartitionBytes)
      tasks(question).foreach(number => SharedOutScan.partitions.set(planned, FileShares.of(inputs, number, opening)))
      planned
    }
  }

  private def name: String =
    tableIdentifier
      .map(_.unquotedString)
      .orElse(relation.location.rootPaths.headOption.map(_.getName))
      .getOrElse(relation.toString)

  override def canEqual(other: Any): Boolean = other.isInstanceOf[SharedOutScan]

  override def equals(other: Any): Boolean = other.isInstanceOf[SharedOutScan] && super.equals(other)

  override def hashCode: Int = super.hashCode

  /** Executors get Spark's own scan: they know no class of ours. */
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
  private val MostFiles = 10000

  // Lazy, so that not to find it costs the advice only.
  private lazy val partitions = Hidden.field("org.apache.spark.sql.execution.datasources.FileScanRDD#filePartitions")
}
