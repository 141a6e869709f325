package org.apache.spark.sql.elastic

import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.api.java.JavaRDD
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.encoders.RowEncoder
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan, UnaryExecNode}
import org.apache.spark.util.Utils

/**
 * Limits for a copy of state that runs beside micro-batches. Spark gives free slots to the oldest job first, so the
 * copy has never more tasks to offer than it may run, preferably where the query keeps no state. Executors get nothing
 * but Spark's own classes.
 *
 * @param tasks the most tasks at once
 * @param bytesPerSecond the most bytes that it writes, on average: it pauses between tasks; 0 for no limit
 * @param places returns the preferred locations of its next task; none if empty
 * @param isOver whether the copy is not wanted any more
 */
private[elastic] final class CopyLimits(
    val tasks: Int,
    bytesPerSecond: Long,
    places: () => Seq[String],
    isOver: () => Boolean) {
  import CopyLimits._

  /** Return rows that are read in few tasks. */
  def reading(rows: RDD[InternalRow]): RDD[InternalRow] = placed(rows.coalesce(tasks))

  /** Return state whose partitions are written in few jobs at once; `written` returns the bytes written so far. */
  def writing(state: DataFrame, written: () => Long): DataFrame = {
    val session = state.sparkSession.asInstanceOf[SparkSession]
    val limited = new QueryExecution(session, state.queryExecution.logical) {
      override def toRdd: RDD[InternalRow] = inFewJobs(super.toRdd, written)
    }
    new Dataset[Row](limited, () => RowEncoder.encoderFor(limited.analyzed.schema))
  }

  /** Compute partitions that only write, in few jobs at once. */
  def run(partitions: RDD[InternalRow], written: () => Long): Unit = inFewJobs(partitions, written).collect()

  private def inFewJobs(rows: RDD[InternalRow], written: () => Long) = {
    val (from, before) = (System.nanoTime(), written())
    new InFewJobs(rows, this, () => pause(from, () => written() - before))
  }

  /** A product's tasks run where one of its sides prefers; that of one element has the other side's partitions. */
  def placed[T: ClassTag](rows: RDD[T]): RDD[T] = places() match {
    case Nil => rows
    case some => rows.sparkContext.makeRDD(Seq("" -> some)).cartesian(rows).values
  }

  private def pause(from: Long, written: () => Long): Unit = if (bytesPerSecond > 0) {
    val dueMs = (written() * 1000.0 / bytesPerSecond).toLong
    def leftMs = dueMs - (System.nanoTime() - from) / 1000000L
    while (leftMs > 0 && !isOver()) Thread.sleep(math.min(leftMs, LookMs).max(0L))
  }

  /** Jobs can only be cancelled while they run. */
  def check(): Unit = if (isOver()) throw new IllegalStateException("the copy is not wanted any more")
}

private object CopyLimits {
  private val LookMs = 500L
}

/** Collects its rows, or what is made of each partition, in a job for each partition. Never sent to executors. */
private final class InFewJobs[T: ClassTag](rows: RDD[T], limits: CopyLimits, pause: () => Unit) extends RDD[T](rows) {
  override def getPartitions: Array[Partition] = rows.partitions
  override def compute(split: Partition, context: TaskContext): Iterator[T] = rows.iterator(split, context)

  override def mapPartitions[U: ClassTag](f: Iterator[T] => Iterator[U], preservesPartitioning: Boolean): RDD[U] =
    new InFewJobs(rows.mapPartitions(f, preservesPartitioning), limits, pause)

  override def collect(): Array[T] = {
    val properties = sparkContext.getLocalProperties
    val all = StateCopy.parallel(rows.partitions.indices, limits.tasks) { partition =>
      limits.check()
      sparkContext.setLocalProperties(Utils.cloneProperties(properties))
      // The function that this runs on executors is Spark's.
      val made = JavaRDD.fromRDD(limits.placed(rows)).collectPartitions(Array(partition)).head.asScala
      pause()
      made
    }
    all.flatten.toArray
  }
}

/** Rows of state, read in few tasks. */
private case class LimitedReadExec(limits: CopyLimits, child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
  override protected def doExecute(): RDD[InternalRow] = limits.reading(child.execute())
}
