package org.apache.spark.sql.elastic

import java.util.concurrent.TimeoutException

import scala.concurrent.Await
import scala.concurrent.duration._

import org.apache.spark.elastic.Harmless
import org.apache.spark.internal.Logging
import org.apache.spark.rdd.{PartitionPruningRDD, RDD}
import org.apache.spark.scheduler.ExecutorCacheTaskLocation
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.state.StateSourceOptions
import org.apache.spark.sql.execution.datasources.v2.state.metadata.StateMetadataPartitionReader
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryCheckpointMetadata
import org.apache.spark.util.{SerializableConfiguration, Utils}

/**
 * Before a query is restarted, executors that have not worked yet read a partition of its state, while it goes on. The
 * first tasks of an executor are slow (classes, generated code, RocksDB's native library), and would make the pause
 * longer. Executors get nothing but Spark's own classes. A help, no more: what fails or takes too long is left.
 */
private[elastic] object WarmUp extends Logging {

  /** So many read at once: all of them read the same files. */
  private val MostExecutors = 64

  /** Returns after `mostMs` at the latest. */
  def apply(session: SparkSession, checkpoint: String, mostMs: Long): Unit =
    try {
      val cold = if (mostMs > 0) newExecutors(session) else Seq.empty
      if (cold.nonEmpty) partOfState(session, checkpoint).foreach { state =>
        val from = System.nanoTime()
        session.sparkContext.setJobDescription("spark-elastic: new executors read a part of the state")
        // A product's tasks run where one of its sides wants to.
        val reading = session.sparkContext.makeRDD(cold).cartesian(state).countAsync()
        val outcome =
          try s"read ${Await.result(reading, mostMs.millis)} rows"
          catch {
            case _: TimeoutException =>
              reading.cancel()
              "were too slow"
          }
        val ms = (System.nanoTime() - from) / 1000000L
        logInfo(s"spark-elastic: the new executors ${cold.map(_._1).mkString(", ")} $outcome in $ms ms")
      }
    } catch { case Harmless(e) => logInfo(s"spark-elastic: new executors were not warmed up: ${e.getMessage}") }

  /** Those that have not ended a task, each with where that is. */
  private def newExecutors(session: SparkSession): Seq[(String, Seq[String])] =
    session.sparkContext.statusStore
      .executorList(activeOnly = true)
      .filter(e => e.totalCores > 0 && e.completedTasks == 0)
      .take(MostExecutors)
      .map(e => e.id -> Seq(ExecutorCacheTaskLocation(Utils.parseHostPort(e.hostPort)._1, e.id).toString))

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
