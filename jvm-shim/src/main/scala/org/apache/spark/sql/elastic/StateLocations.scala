package org.apache.spark.sql.elastic

import org.apache.spark.elastic.ExecutorInfo
import org.apache.spark.scheduler.{ExecutorCacheTaskLocation, TaskLocation}
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId

/**
 * Spark prefers to run the tasks of a stateful operator where their stores are open, also if that executor is lost.
 * So the next micro-batch would wait for it (`spark.locality.wait`, 3 s). To prevent it, such stores are reported on
 * the executors that are left, in turn: they are opened there next.
 *
 * Tasks that were already waiting when the executor was lost wait on: Spark asked for their locations before that.
 */
private[elastic] object StateLocations {
  def leaveLost(execution: StreamExecution, left: Seq[ExecutorInfo]): Unit = {
    val coordinator = execution.sparkSession.streams.stateStoreCoordinator
    val known = left.map(_.executor).toSet
    val turns = Iterator.continually(left).flatten
    for {
      batch <- Option(execution.lastExecution) if left.nonEmpty
      operator <- batch.executedPlan.collect { case operator: StateStoreWriter => operator }
      info <- operator.stateInfo
      partition <- 0 until info.numPartitions
    } {
      val stores = StoreNames(operator).map(StateStoreProviderId(info, partition, _))
      val lost = stores.filter { store =>
        coordinator.getLocation(store).map(TaskLocation(_)).exists {
          case at: ExecutorCacheTaskLocation => !known(at.executorId)
          case _ => false
        }
      }
      // A task reads all stores of its partition.
      if (lost.nonEmpty) {
        val to = turns.next()
        lost.foreach(coordinator.reportActiveInstance(_, to.host, to.executor, Nil))
      }
    }
  }
}
