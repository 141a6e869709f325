package org.apache.spark.elastic

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend

/**
 * Compares what the listener bus has told of executors with those that the scheduler has: a bus whose queue is full drops
 * events. An event may just be late, so what differs is corrected when it does so twice.
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
    case _ => // one without executors
  }
}
