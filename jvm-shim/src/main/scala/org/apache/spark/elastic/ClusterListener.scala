package org.apache.spark.elastic

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.executor.TaskMetrics
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{ExecutorAdded => _, _}
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend
import org.apache.spark.sql.elastic.CurrentExecution

/**
 * Tracks executors and stages from Spark's listener bus. Its methods only take notes, so the bus never waits.
 *
 * @param lost called when executors are gone, or get no more tasks
 * @param joined called with an executor that joins others
 * @param first notified of executors that come and go, and of the tasks of micro-batches
 */
private[spark] final class ClusterListener(
    sc: SparkContext,
    events: EventStream,
    lost: () => Unit,
    joined: ExecutorInfo => Unit,
    first: FirstTasks)
    extends SparkListener {
  private val book = mutable.LinkedHashMap.empty[String, ExecutorInfo]
  private val excludedNodes = mutable.HashSet.empty[String]
  private val running = mutable.HashMap.empty[Int, RunningStage]

  def executors: Seq[ExecutorInfo] = events.synchronized(book.values.toSeq)

  /** Return the executors that get tasks. */
  def usable: Seq[ExecutorInfo] = executors.filterNot(e => e.excluded || e.decommissioning)

  /** Find executors that started to decommission. Spark posts no event for this, so the scheduler has to be asked. */
  def checkDecommissioning(): Unit = {
    val leaving = executors.filter { e =>
      !e.decommissioning && sc.taskScheduler.getExecutorDecommissionState(e.executor).isDefined
    }
    leaving.foreach(e => change(e.executor, ExecutorDecommissioning(e.executor))(_.copy(decommissioning = true)))
    if (leaving.nonEmpty) lost()
  }

  override def onExecutorAdded(added: SparkListenerExecutorAdded): Unit = {
    val info = added.executorInfo
    add(ExecutorInfo(added.executorId, info.executorHost, info.totalCores))
  }

  def add(executor: ExecutorInfo): Unit = {
    val isExcluded = excludedNodes.synchronized(excludedNodes(executor.host))
    if (usable.nonEmpty && !isExcluded) joined(executor) // before the policy, whose answer may have to wait for it
    events.record(ExecutorAdded(executor.executor, executor.host, executor.cores)) {
      book(executor.executor) = executor
    }
    first.joined(executor.executor) // not before the time of the event
    if (isExcluded) exclude(executor.executor, s"its host ${executor.host} is excluded")
  }

  override def onExecutorRemoved(removed: SparkListenerExecutorRemoved): Unit =
    remove(removed.executorId, removed.reason)

  def remove(executor: String, reason: String): Unit = {
    events.record(ExecutorRemoved(executor, reason))(book.remove(executor))
    first.removed(executor)
    lost()
  }

  override def onExecutorExcluded(e: SparkListenerExecutorExcluded): Unit =
    exclude(e.executorId, s"${e.taskFailures} tasks failed on it")

  override def onExecutorUnexcluded(e: SparkListenerExecutorUnexcluded): Unit = include(e.executorId)

  override def onNodeExcluded(e: SparkListenerNodeExcluded): Unit = {
    excludedNodes.synchronized(excludedNodes += e.hostId)
    on(e.hostId).foreach(exclude(_, s"${e.executorFailures} executors failed on host ${e.hostId}"))
  }

  override def onNodeUnexcluded(e: SparkListenerNodeUnexcluded): Unit = {
    excludedNodes.synchronized(excludedNodes -= e.hostId)
    on(e.hostId).foreach(include)
  }

  private def on(host: String): Seq[String] = executors.filter(_.host == host).map(_.executor)

  private def exclude(executor: String, reason: String): Unit = {
    change(executor, ExecutorExcluded(executor, reason))(_.copy(excluded = true))
    lost()
  }

  private def include(executor: String): Unit =
    change(executor, ExecutorUnexcluded(executor))(_.copy(excluded = false))

  private def change(executor: String, event: Event)(to: ExecutorInfo => ExecutorInfo): Unit =
    events.record(event)(book.get(executor).foreach(known => book(executor) = to(known)))

  override def onStageSubmitted(submitted: SparkListenerStageSubmitted): Unit =
    for {
      properties <- Option(submitted.properties) if properties.getProperty(CurrentExecution.OwnKey) == null
      query <- Option(properties.getProperty(CurrentExecution.QueryIdKey))
      batch <- Option(properties.getProperty(CurrentExecution.BatchIdKey)).map(_.toLong)
    } {
      // The bus may drop the end of a stage. A later batch of its query implies that the stage has ended.
      running --= running.collect { case (id, of) if of.query == query && of.batch < batch => id }
      running(submitted.stageInfo.stageId) =
        new RunningStage(query, batch, readsShuffle = submitted.stageInfo.parentIds.nonEmpty)
    }

  override def onTaskStart(started: SparkListenerTaskStart): Unit =
    for (stage <- running.get(started.stageId))
      first.launched(started.taskInfo.executorId, stage.query, started.taskInfo.launchTime)

  override def onTaskEnd(ended: SparkListenerTaskEnd): Unit =
    for {
      stage <- running.get(ended.stageId) if stage.readsShuffle && ended.taskInfo.successful
      metrics <- Option(ended.taskMetrics)
    } stage.add(metrics)

  override def onStageCompleted(completed: SparkListenerStageCompleted): Unit = {
    val stage = completed.stageInfo
    val known = running.remove(stage.stageId)
    known.flatMap(of => first.take(of.query)).foreach(events.offer)
    for {
      of <- known if of.readsShuffle
      from <- stage.submissionTime
      to <- stage.completionTime if stage.failureReason.isEmpty
    } events.offer(StageCompleted(of.query, of.batch, stage.numTasks, to - from, of.work))
  }
}

/** A stage of a micro-batch, with totals over its completed tasks. */
private final class RunningStage(val query: String, val batch: Long, val readsShuffle: Boolean) {
  private val took = mutable.ArrayBuilder.make[Long]
  private var gcMs = 0L
  private var spilledBytes = 0L

  def add(task: TaskMetrics): Unit = {
    took += task.executorRunTime
    gcMs += task.jvmGCTime
    spilledBytes += task.diskBytesSpilled
  }

  def work: Option[StageWork] = {
    val sorted = took.result().sorted
    sorted.lastOption.map(StageWork(sorted.sum, gcMs, spilledBytes, _, sorted((sorted.length - 1) / 2)))
  }
}

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
