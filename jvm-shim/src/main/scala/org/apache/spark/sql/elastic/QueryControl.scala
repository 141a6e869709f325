package org.apache.spark.sql.elastic

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.elastic._
import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.elastic.Moved.StreamExecution
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.util.ListenerBus

/** All live queries of the application, in any session, and the orders that concern them. */
private[spark] final class QueryControl(val events: EventStream, first: FirstTasks, startMs: Long) extends Logging {
  private val queries = new ConcurrentHashMap[UUID, QueryRun]
  private val newExecutors = new NewExecutors(first)
  @volatile private var isThere = Linkage.has(Part.Boundaries)
  @volatile private var waitMs = startMs // until the policy configures it
  @volatile private var warmUpMs = 0L
  @volatile private var restarts = false

  /** Whether there is a policy to ask. Without one, new queries are plain Spark, and running ones stay as is. */
  def isOn: Boolean = isThere

  /** Whether the policy is asked about a failed micro-batch. If not, its query ends at once, as in plain Spark. */
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
    // Covers an interrupt that arrived while nothing waited here.
    if (query.isStopped && Thread.interrupted()) interruptAgain(query.execution)
  }

  /**
   * Interrupt again a query that was stopped during its start, since its interrupt is used up. Spark's listener bus
   * would consume another one and remove the listener that it called: the plugin's, which serves other queries too.
   * The thread may enter the bus just after the check. That is accepted: one that began there never returns.
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

  /** Add a query, unless there is no policy to notify. */
  def add(query: QueryRun): Boolean = {
    if (isOn) Option(queries.put(query.execution.id, query)).foreach(over)
    isOn
  }

  def ended(id: UUID, run: UUID): Unit =
    Option(queries.get(id)).filter(_.execution.runId == run).foreach { query =>
      if (queries.remove(id, query)) over(query)
    }

  private def over(query: QueryRun): Unit = {
    query.preparation.drop("the query has ended")
    events.offer(query.terminated)
  }

  /** Called when a query has had nothing to read for a while. */
  def idle(id: UUID, run: UUID): Unit =
    if (Option(queries.get(id)).exists(_.execution.runId == run)) events.offer(QueryIdle(id.toString, run.toString))

  private def find(id: String): Option[QueryRun] = Option(queries.get(UUID.fromString(id)))

  def order(order: QueryOrder): Unit =
    find(order.query)
      .filter(_.execution.runId.toString == order.run)
      .getOrElse(throw new IllegalArgumentException(s"there is no run ${order.run} of a query ${order.query}"))
      .order(order)

  /** Return the query that an order is about. */
  def of(order: AboutQuery): QueryRun =
    find(order.query).getOrElse(throw new IllegalArgumentException(s"there is no query ${order.query}"))

  /** Return the bounds of the tasks that read each source of a query. */
  def boundsOf(id: String): Map[SparkDataStream, SourceBounds] =
    find(id).fold(Map.empty[SparkDataStream, SourceBounds])(_.boundsOfSources)

  /** Called on the stream thread when a micro-batch is planned, or a query that it runs in `foreachBatch`. */
  def planned(id: String, plan: SparkPlan): Unit = if (isOn) find(id).foreach(_.planned(plan))

  /** Whether the policy is asked about stages of a query's micro-batches. */
  def asksAboutStages(id: String): Boolean = find(id).exists(_.asksAboutStages)

  /** Warm an executor up beside a running query, one with state if there is one. */
  def joined(executor: ExecutorInfo): Unit =
    if (isOn && warmUpMs > 0 && Linkage.has(Part.WarmUps)) {
      val running = queries.values.asScala.filter(_.isRunning)
      running.find(_.stateful).orElse(running.headOption).foreach(newExecutors.joined(executor, _))
    }

  /** Whether a rescale ordered this long ago need not wait for the warm-up of new executors. */
  def isWarm(orderedMs: Long): Boolean = !newExecutors.isWorking || orderedMs >= warmUpMs

  /** Keep queries from waiting for executors that are lost. */
  def leaveLost(left: Seq[ExecutorInfo]): Unit = queries.values.asScala.foreach(_.leaveLost(left))

  /** Lift the limits that a previous policy process has set. */
  def limitNothing(): Unit = queries.values.forEach(_.limitNothing())

  def views: Seq[QueryInfo] = queries.values.asScala.flatMap(_.view).toSeq

  /** End queries whose stream thread died: Spark may report nothing, or the listener bus lose the event. */
  def tick(): Unit =
    for (query <- queries.values.asScala if !query.execution.queryExecutionThread.isAlive)
      ended(query.execution.id, query.execution.runId)
}

private[spark] object QueryControl {

  /** Leave queries to plain Spark, except that their checkpoints are read in the format they were written in. */
  def withoutPolicy: QueryControl = {
    val control = new QueryControl(new EventStream, new FirstTasks, 0L)
    control.off()
    control.events.off()
    control
  }
}
