package org.apache.spark.sql.elastic

import java.util.concurrent.TimeoutException

import scala.concurrent.Await
import scala.concurrent.duration._

import org.apache.spark.elastic.{ExecutorFacts, Harmless}
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.CPUS_PER_TASK
import org.apache.spark.rdd.{PartitionPruningRDD, RDD}
import org.apache.spark.scheduler.ExecutorCacheTaskLocation
import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.state.StateSourceOptions
import org.apache.spark.sql.execution.datasources.v2.state.metadata.StateMetadataPartitionReader
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryCheckpointMetadata
import org.apache.spark.sql.functions.{count, current_timestamp, max}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.SerializableConfiguration

/**
 * The first tasks of an executor are slow (classes, generated code, shuffles, RocksDB's native library). So it begins with
 * some that nobody waits for, on all of its slots: a small query, and a partition of a query's state. They keep it from
 * the micro-batches of that time, which the other executors run. Executors get nothing but Spark's own classes. A help,
 * no more: what fails or takes too long is left.
 */
private[elastic] object WarmUp extends Logging {

  /** Returns after `mostMs` at the latest. With a checkpoint, the executors read a part of its state as well. */
  def apply(session: SparkSession, checkpoint: Option[String], executors: Seq[ExecutorFacts], mostMs: Long): Unit = {
    val from = System.nanoTime()
    val until = mostMs.millis.fromNow
    val outcome =
      try {
        session.sparkContext.setJobDescription("spark-elastic: new executors are warmed up")
        val places = slots(session, executors)
        val work = Iterator(smallQuery(session, places)) ++ checkpoint.iterator.flatMap(partOfState(session, _))
        // A product's tasks run where one of its sides wants to.
        val read = work.map(rows => rowsOf(session.sparkContext.makeRDD(places).cartesian(rows), until)).sum
        s"were warmed up with $read rows"
      } catch {
        case _: TimeoutException => "were too slow to be warmed up"
        case Harmless(e) => s"were not warmed up: ${e.getMessage}"
      }
    val ms = (System.nanoTime() - from) / 1000000L
    logInfo(s"spark-elastic: the new executors ${executors.map(_.executor).mkString(", ")} $outcome, after $ms ms")
  }

  /** Every slot of these executors, with where it is. */
  private def slots(session: SparkSession, executors: Seq[ExecutorFacts]): Seq[(String, Seq[String])] = {
    val cpus = session.sparkContext.conf.get(CPUS_PER_TASK)
    executors.flatMap { e =>
      val place = Seq(ExecutorCacheTaskLocation(e.host, e.executor).toString)
      Seq.fill(math.max(1, e.cores / cpus))(e.executor -> place)
    }
  }

  private def rowsOf(job: RDD[_], until: Deadline): Long = {
    val counting = job.countAsync()
    try Await.result(counting, until.timeLeft)
    catch {
      case e: TimeoutException =>
        counting.cancel()
        throw e
    }
  }

  /** What most micro-batches do: rows are made, partly aggregated, shuffled and aggregated. */
  private def smallQuery(asked: SparkSession, places: Seq[(String, Seq[String])]): RDD[InternalRow] = {
    val session = asked.cloneSession()
    session.conf.set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "false")
    session.conf.set(SQLConf.SHUFFLE_PARTITIONS.key, "1")
    val rows = session.createDataset(session.sparkContext.makeRDD(places))(Encoders.STRING).toDF("executor")
    val timed = rows.withColumn("time", current_timestamp())
    timed.groupBy("executor").agg(count("*"), max("time")).queryExecution.toRdd
  }

  /** One partition of the first store of the last batch, read as a re-partitioning reads it. */
  private def partOfState(session: SparkSession, checkpoint: String): Option[RDD[InternalRow]] = {
    val conf = new SerializableConfiguration(session.sessionState.newHadoopConf())
    for {
      batch <- new StreamingQueryCheckpointMetadata(session, checkpoint).commitLog.getLatestBatchId()
      operator <- new StateMetadataPartitionReader(checkpoint, conf, batch).allOperatorStateMetadata.headOption
      store <- operator.stateStoresMetadata.headOption
    } yield {
      val state = session.read
        .format("statestore")
        .option(StateSourceOptions.PATH, checkpoint)
        .option(StateSourceOptions.BATCH_ID, batch)
        .option(StateSourceOptions.OPERATOR_ID, operator.operatorInfo.operatorId)
        .option(StateSourceOptions.STORE_NAME, store.storeName)
        .option(StateSourceOptions.INTERNAL_ONLY_READ_ALL_COLUMN_FAMILIES, "true")
        .load()
      // A set is a function too, and one of those that executors have the class of.
      PartitionPruningRDD.create(state.queryExecution.toRdd, Set(0))
    }
  }
}
