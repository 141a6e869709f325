package org.apache.spark.sql.elastic

import scala.concurrent.Promise

import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.streaming.StreamingQueryListener

/**
 * One attempt to bring up a run of a query. Spark makes the run's stream thread while it handles the attempt, and that
 * thread inherits which attempt it belongs to: so its events find their query without any guessing by id.
 *
 * @param plan the answer of the policy where it has given one already; without one the gate asks
 */
private[elastic] final class Launch(val query: ElasticQuery, val plan: Option[StartPlan]) {

  /** Done when the application's start() may return: the run passed its gate, or is held at it, or failed. */
  val released: Promise[Unit] = Promise[Unit]()

  @volatile var execution: Option[StreamExecution] = None
}

/**
 * How a run is to start; all of it may be "as it is". `action` is what asked for it, to be answered. With a `refusal` it
 * is not to start at all, and fails with that text.
 */
private[elastic] case class StartPlan(
    partitions: Option[Int],
    repartition: Boolean,
    rescalable: Boolean,
    action: Option[String],
    refusal: Option[String] = None)

private[elastic] object Launch {
  private val inherited = new InheritableThreadLocal[Launch]

  /** Marks the calling thread, and the stream thread that Spark makes in it, as this launch's. */
  def enter(launch: Launch): Unit = inherited.set(launch)

  /** The launch of the calling stream thread, which has just begun. */
  def arriving(execution: StreamExecution): Option[Launch] =
    Option(inherited.get).filter(l => l.execution.isEmpty && (execution.queryExecutionThread eq Thread.currentThread))

  def of(execution: StreamExecution): Option[Launch] =
    Option(inherited.get).filter(_.execution.exists(_ eq execution))

  /** The launch whose run posts this event, in its own thread. */
  def current(event: StreamingQueryListener.Event): Option[Launch] = {
    val run = event match {
      case e: StreamingQueryListener.QueryProgressEvent => Some(e.progress.runId)
      case e: StreamingQueryListener.QueryIdleEvent => Some(e.runId)
      case e: StreamingQueryListener.QueryTerminatedEvent => Some(e.runId)
      case _ => None
    }
    Option(inherited.get).filter(_.execution.exists(e => run.contains(e.runId)))
  }
}
