package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{ExecutorInfo, Harmless}
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.CPUS_PER_TASK
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.ExecutorCacheTaskLocation
import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.functions.{count, current_timestamp, max}
import org.apache.spark.sql.internal.SQLConf

import Moved.SparkSession

/**
 * The first tasks of an executor are slow (classes, generated code, shuffles, RocksDB's native library). So it begins with
 * some that nobody waits for: a small query, on all of its slots, and a dry run of a re-partitioning. They keep it from
 * the micro-batches of that time, which the other executors run. Executors get nothing but Spark's own classes. A help, no
 * more: what fails is left.
 */
private[elastic] object WarmUp extends Logging {

  /** Returns when these executors are warm, after so many ms, or are not. With a checkpoint, the dry run is with its state. */
  def apply(session: SparkSession, checkpoint: Option[String], executors: Seq[ExecutorInfo]): Option[Long] = {
    val from = System.nanoTime()
    val failure =
      try {
        val cpus = session.sparkContext.conf.get(CPUS_PER_TASK)
        CurrentExecution.asOurs(session.sparkContext, "new executors are warmed up") {
          session.withActive { // parts of plans look for it
            runSmallQuery(session, executors.flatMap(e => Seq.fill(math.max(1, (e.cores / cpus).toInt))(place(e))))
            checkpoint.foreach(root => DryRun(session, root, at(session, executors.map(place), _)))
          }
        }
        None
      } catch { case Harmless(e) => Some(e.getMessage) }
    val ms = (System.nanoTime() - from) / 1000000L
    val outcome = failure.fold("are warm")(message => s"were not warmed up: $message")
    logInfo(s"spark-elastic: new executors ${executors.map(_.executor).mkString(", ")} $outcome after $ms ms")
    Option.when(failure.isEmpty)(ms)
  }

  /** Something for a task to run on this executor, and that it is to run there. */
  private def place(e: ExecutorInfo): (String, Seq[String]) =
    e.executor -> Seq(ExecutorCacheTaskLocation(e.host, e.executor).toString)

  /** For each place all of `rows`: a product's tasks run where one of its sides wants to. */
  private def at(
      session: SparkSession,
      places: Seq[(String, Seq[String])],
      rows: RDD[InternalRow]): RDD[(String, InternalRow)] =
    session.sparkContext.makeRDD(places).cartesian(rows)

  /** What most micro-batches do: rows are made, partly aggregated, shuffled and aggregated. */
  private def runSmallQuery(asked: SparkSession, places: Seq[(String, Seq[String])]): Unit = {
    val session = asked.cloneSession()
    session.conf.set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "false")
    session.conf.set(SQLConf.SHUFFLE_PARTITIONS.key, "1")
    val rows = session.createDataset(session.sparkContext.makeRDD(places))(Encoders.STRING).toDF("executor")
    val timed = rows.withColumn("time", current_timestamp()).groupBy("executor").agg(count("*"), max("time"))
    at(session, places, timed.queryExecution.toRdd).count()
  }
}
