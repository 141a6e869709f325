package org.apache.spark.elastic

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend

/**
 * Compares the executors known from the listener bus with those of the scheduler, since the bus drops events when its
 * queue is full. An event may only be late, so a difference is corrected when it shows twice in a row.
 */
private[spark] final class ExecutorAudit(sc: SparkContext, listener: ClusterListener) extends Logging {
  private var suspected = Set.empty[String]
  private var corrected = 0

  def look(): Unit = sc.schedulerBackend match {
    case backend: CoarseGrainedSchedulerBackend =>
      val there = BackendAccess.executors(backend).asScala.toMap.map { case (id, e) =>
        id -> ExecutorInfo(id, e.executorHost, e.totalCores)
      }
      val told = listener.executors.map(_.executor).toSet
      val differ = (there.keySet ++ told).filter(id => there.contains(id) != told(id))
      val certain = differ & suspected
      if (certain.nonEmpty) {
        corrected += certain.size
        logWarning(
          s"spark-elastic: the listener bus lost events of executors ${certain.mkString(", ")}, corrected now ($corrected so " +
            s"far): spark.scheduler.listenerbus.eventqueue.capacity may be too small")
      }
      certain.foreach(id =>
        there.get(id).fold(listener.remove(id, "the listener bus has lost its removal"))(listener.add))
      suspected = differ -- certain
    case _ => // a backend without executors
  }
}
