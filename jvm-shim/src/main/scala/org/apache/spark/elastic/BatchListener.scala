package org.apache.spark.elastic

import java.util.Properties

import scala.collection.mutable

import org.apache.spark.Success
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.scheduler._
import org.apache.spark.sql.elastic.CurrentExecution
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/**
 * Tracks the stages of batch jobs from Spark's listener bus, leaving out those of streaming queries. It only counts,
 * and reports all stages once a second: a later report replaces an earlier one, and stages in between cost nothing.
 */
private[spark] final class BatchListener extends SparkListener {

  /** Jobs with one of these properties are not batch jobs. */
  private val NotBatch = Seq(CurrentExecution.QueryIdKey, CurrentExecution.OwnKey)
  private val LooksPerRepeat = 10L
  private val MostOwners = 1000

  @volatile private var isOn = true
  private val owners = mutable.LinkedHashMap.empty[String, Owner]
  private val jobs = mutable.HashMap.empty[Int, Seq[Int]] // stage ids by job
  private val stages = mutable.LinkedHashMap.empty[(Int, Int), Running] // by id and attempt
  private var suspected = Set.empty[(Int, Int)]
  private var told = BatchStages(Nil, Nil)
  private var over = 0
  private var looks = 0L

  /** Turn the tracking on, or turn it off and clear it. */
  def turn(on: Boolean): Unit = synchronized {
    isOn = on
    if (!on) {
      owners.clear()
      jobs.clear()
      stages.clear()
    }
  }

  /** Return the current stages if they differ from the last report, or if that is some time ago. */
  def changed(executors: => Seq[ExecutorInfo]): Option[BatchStages] = synchronized {
    looks += 1
    val busy = stages.values.flatMap(_.tasks.keys).toSet
    val idle = if (stages.isEmpty) Nil else executors.map(_.executor).filterNot(busy)
    val now = BatchStages(stages.values.map(_.stage).toList, idle)
    Option.when(now != told || over > 0 || (stages.nonEmpty && looks % LooksPerRepeat == 0)) {
      val ended = over
      told = now
      over = 0
      now.copy(over = ended)
    }
  }

  /** Return the bytes of shuffle data that an executor has written for work that has not ended. */
  def written(executor: String): Long = synchronized(owners.values.map(_.written(executor)).sum)

  /** End stages whose end event was lost: those not `active` in two audits in a row, since events may be late. */
  def audit(active: => Set[Int]): Unit = {
    val there = if (synchronized(stages.isEmpty)) Set.empty[Int] else active
    synchronized {
      val inactive = stages.keys.filterNot { case (stage, _) => there(stage) }.toSet
      inactive.intersect(suspected).foreach(ended)
      suspected = inactive
    }
  }

  private def ended(stage: (Int, Int)): Unit = if (stages.remove(stage).nonEmpty) over += 1

  private def endStages(isOver: Int => Boolean): Unit =
    stages.keys.filter { case (stage, _) => isOver(stage) }.toList.foreach(ended)

  private def ownerOf(properties: Properties, job: => String): Option[String] =
    Option(properties).filter(found => NotBatch.forall(found.getProperty(_) == null)).map { found =>
      Option(found.getProperty(SQLExecution.EXECUTION_ID_KEY)).getOrElse(job)
    }

  override def onJobStart(start: SparkListenerJobStart): Unit = if (isOn) synchronized {
    for (name <- ownerOf(start.properties, s"job ${start.jobId}")) {
      val owner = owners.getOrElseUpdate(name, new Owner)
      jobs(start.jobId) = start.stageInfos.map(_.stageId)
      start.stageInfos.foreach { info =>
        owner.stages += info.stageId
        info.shuffleDepId.foreach(owner.shuffleOf(info.stageId) = _)
      }
      if (owners.size > MostOwners) forget(owners.head._1)
    }
  }

  // The bus may lose the end of a stage, so the end of its job counts as well.
  override def onJobEnd(end: SparkListenerJobEnd): Unit = synchronized {
    for (of <- jobs.remove(end.jobId)) {
      val others = jobs.valuesIterator.flatten.toSet
      endStages(stage => of.contains(stage) && !others(stage))
    }
    owners.remove(s"job ${end.jobId}")
  }

  private def forget(name: String): Unit = for (owner <- owners.remove(name)) {
    endStages(owner.stages)
    jobs.filter(_._2.forall(owner.stages)).keys.toList.foreach(jobs.remove)
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd => synchronized(forget(end.executionId.toString))
    case _ =>
  }

  override def onStageSubmitted(submitted: SparkListenerStageSubmitted): Unit = if (isOn) synchronized {
    val info = submitted.stageInfo
    if (info.resourceProfileId == ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID) {
      for (owner <- owners.values.find(_.stages(info.stageId))) {
        val read = info.parentIds.map(owner.shuffleOf.get(_).flatMap(owner.shuffles.get))
        val bytes = Option.when(read.nonEmpty && read.forall(_.nonEmpty))(read.flatten.sum)
        val stage = BatchStage(info.stageId, info.numTasks, bytes = bytes)
        stages((info.stageId, info.attemptNumber())) = new Running(owner, info.shuffleDepId, stage)
      }
    }
  }

  override def onStageCompleted(completed: SparkListenerStageCompleted): Unit = synchronized {
    ended((completed.stageInfo.stageId, completed.stageInfo.attemptNumber()))
  }

  override def onTaskStart(start: SparkListenerTaskStart): Unit = synchronized {
    for (running <- stages.get((start.stageId, start.stageAttemptId))) {
      running.count(start.taskInfo.executorId, 1)
      val s = running.stage
      running.stage = s.copy(running = s.running + 1, launched = s.launched.orElse(Some(start.taskInfo.launchTime)))
    }
  }

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized {
    for (running <- stages.get((end.stageId, end.stageAttemptId))) {
      running.count(end.taskInfo.executorId, -1)
      val s = running.stage.copy(running = math.max(0, running.stage.running - 1))
      running.stage =
        if (end.reason != Success) s
        else {
          val metrics = Option(end.taskMetrics)
          val written = metrics.fold(0L)(_.shuffleWriteMetrics.bytesWritten)
          running.wrote(end.taskInfo.executorId, written)
          s.copy(
            done = math.min(s.tasks, s.done + 1),
            runMs = s.runMs + end.taskInfo.duration,
            readBytes = s.readBytes + metrics.fold(0L)(_.shuffleReadMetrics.totalBytesRead),
            writtenBytes = s.writtenBytes + written)
        }
    }
  }

  /** A SQL execution, or a job outside any. Its shuffles are read until it ends. */
  private final class Owner {
    val stages = mutable.HashSet.empty[Int]
    val shuffleOf = mutable.HashMap.empty[Int, Int] // shuffle ids by the stage that writes them
    val shuffles = mutable.HashMap.empty[Int, Long] // bytes by shuffle id
    val written = mutable.HashMap.empty[String, Long].withDefaultValue(0L) // bytes by executor
  }

  private final class Running(owner: Owner, shuffle: Option[Int], var stage: BatchStage) {
    val tasks = mutable.HashMap.empty[String, Int] // by executor

    def count(executor: String, change: Int): Unit = {
      val now = tasks.getOrElse(executor, 0) + change
      if (now > 0) tasks(executor) = now else tasks.remove(executor)
    }

    def wrote(executor: String, bytes: Long): Unit = for (id <- shuffle) {
      owner.shuffles(id) = owner.shuffles.getOrElse(id, 0L) + bytes
      owner.written(executor) += bytes
    }
  }
}
