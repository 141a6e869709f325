package org.apache.spark.sql.elastic

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.elastic._
import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.util.ListenerBus

import Moved.StreamExecution

/** All live queries of the application, whatever their session, and the orders that concern them. */
private[spark] final class QueryControl(val events: EventStream, first: FirstTasks, startMs: Long) extends Logging {
  private val queries = new ConcurrentHashMap[UUID, QueryRun]
  private val newExecutors = new NewExecutors(first)
  @volatile private var isThere = Linkage.has(Part.Boundaries)
  @volatile private var waitMs = startMs // until the policy has said so itself
  @volatile private var warmUpMs = 0L
  @volatile private var restarts = false

  /** Whether there is a policy to ask. Without one, queries run as in plain Spark, those under way as they are. */
  def isOn: Boolean = isThere

  /** Whether the policy is asked about a failed micro-batch. If not, its query ends there and then, as in plain Spark. */
  def asksAboutFailures: Boolean = isThere && restarts
  def startWaitMs: Long = waitMs

  def off(): Unit = isThere = false
  def on(): Unit = isThere = Linkage.has(Part.Boundaries)

  def configure(c: Configure): Unit = {
    waitMs = c.startWaitMs
    warmUpMs = c.warmUpMs
    restarts = c.restarts
  }

  /** Called on the stream thread of a query that starts. */
  def begin(execution: StreamExecution): Unit =
    if (!Option(queries.get(execution.id)).exists(_.execution eq execution)) begin(new QueryRun(execution, this))

  private def begin(query: QueryRun): Unit = {
    try query.begin()
    catch {
      case _: InterruptedException | Harmless(_) if query.isStopped => interruptAgain(query.execution)
      case e @ (_: InterruptedException | Harmless(_)) =>
        logError(s"spark-elastic: query ${query.called} starts as plain Spark", e)
        if (queries.get(query.execution.id) eq query) query.started(None, 0L)
    }
    // One that came while nobody waited here.
    if (query.isStopped && Thread.interrupted()) interruptAgain(query.execution)
  }

  /**
   * Ends a query that was stopped while it was with us. Its interrupt is used up. Spark's listener bus would take another
   * one from the thread, and remove the listener that it has called: ours, which hears of the other queries as well. That
   * the thread comes to the bus in the moment after the look is accepted: it has left it for good where it began there.
   */
  private def interruptAgain(execution: StreamExecution): Unit = {
    val stopped = execution.queryExecutionThread
    Daemon.start("elastic-interrupt") {
      while (stopped.isAlive) {
        val inBus = stopped.getStackTrace.exists(_.getClassName == classOf[ListenerBus[_, _]].getName)
        if (!inBus) stopped.interrupt()
        stopped.join(if (inBus) 1 else 50)
      }
    }
  }

  /** Takes a query in, unless there is nobody to tell of it. */
  def add(query: QueryRun): Boolean = {
    if (isOn) Option(queries.put(query.execution.id, query)).foreach(before => events.offer(before.terminated))
    isOn
  }

  def ended(id: UUID, run: UUID): Unit =
    Option(queries.get(id)).filter(_.execution.runId == run).foreach { query =>
      if (queries.remove(id, query)) events.offer(query.terminated)
    }

  /** It has had nothing to read for a while. */
  def idle(id: UUID, run: UUID): Unit =
    if (Option(queries.get(id)).exists(_.execution.runId == run)) events.offer(QueryIdle(id.toString, run.toString))

  def order(order: QueryOrder): Unit =
    Option(queries.get(UUID.fromString(order.query)))
      .filter(_.execution.runId.toString == order.run)
      .getOrElse(throw new IllegalArgumentException(s"there is no run ${order.run} of a query ${order.query}"))
      .order(order)

  def keep(order: KeepText): Unit =
    Option(queries.get(UUID.fromString(order.query)))
      .getOrElse(throw new IllegalArgumentException(s"there is no query ${order.query}"))
      .keep(order)

  /** Between which numbers of tasks a query's sources are to be read. */
  def boundsOf(id: String): Map[SparkDataStream, SourceBounds] =
    Option(queries.get(UUID.fromString(id))).fold(Map.empty[SparkDataStream, SourceBounds])(_.boundsOfSources)

  /** Whether the policy is asked about stages of a query's micro-batches. */
  def asksAboutStages(id: String): Boolean = Option(queries.get(UUID.fromString(id))).exists(_.asksAboutStages)

  /** Warms an executor up beside a query, one with state if there is one. */
  def joined(executor: ExecutorInfo): Unit =
    if (isOn && warmUpMs > 0 && Linkage.has(Part.WarmUps)) {
      val running = queries.values.asScala.filter(_.isRunning)
      running.find(_.stateful).orElse(running.headOption).foreach(newExecutors.joined(executor, _))
    }

  /** Whether a rescale that was ordered so long ago need not wait for the warm-up of new executors. */
  def isWarm(orderedMs: Long): Boolean = !newExecutors.isWorking || orderedMs >= warmUpMs

  /** Lets no query wait for executors that are lost. */
  def leaveLost(left: Seq[ExecutorInfo]): Unit = queries.values.asScala.foreach(_.leaveLost(left))

  /** Lifts what a policy process before this one has limited. */
  def limitNothing(): Unit = queries.values.forEach(_.limitNothing())

  def views: Seq[QueryInfo] = queries.values.asScala.flatMap(_.view).toSeq

  /** A stream thread can die without a word of Spark, and the listener bus can lose one. */
  def tick(): Unit =
    for (query <- queries.values.asScala if !query.execution.queryExecutionThread.isAlive)
      ended(query.execution.id, query.execution.runId)
}

private[spark] object QueryControl {

  /** Queries are left to plain Spark, but for their checkpoints: these are read in the format that they were written in. */
  def withoutPolicy: QueryControl = {
    val control = new QueryControl(new EventStream, new FirstTasks, 0L)
    control.off()
    control.events.off()
    control
  }
}
