package org.apache.spark.sql.elastic

import java.util.ConcurrentModificationException
import java.util.concurrent.CountDownLatch

import org.apache.hadoop.fs.Path

import org.apache.spark.SparkThrowable
import org.apache.spark.elastic.{Harmless, Hidden, Linkage, Part}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.elastic.ElasticExtensions._
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.streaming.StreamingQueryListener
import org.apache.spark.sql.streaming.StreamingQueryListener._

/**
 * Notified of each query of a session at its start: Spark calls it on the query's stream thread, before that thread
 * has read the checkpoint, and after all other listeners. Spark logs what it throws, without harm.
 */
private[elastic] final class QueryListener(session: SparkSession, control: QueryControl)
    extends StreamingQueryListener {
  override def onQueryStarted(event: QueryStartedEvent): Unit =
    Option(session.sharedState.activeStreamingQueries.get(event.id))
      .filter(_.queryExecutionThread eq Thread.currentThread)
      .foreach(control.begin)

  override def onQueryProgress(event: QueryProgressEvent): Unit = {} // the boundary sees it earlier
  override def onQueryIdle(event: QueryIdleEvent): Unit = control.idle(event.id, event.runId)
  override def onQueryTerminated(event: QueryTerminatedEvent): Unit = control.ended(event.id, event.runId)
}

private[elastic] object QueryListener extends Logging {
  def inject(extensions: SparkSessionExtensions): Unit = extensions.injectCheckRule { session =>
    controlOf(session.sparkContext) match {
      case Some(control) => beforeStart(classic(session), control)(_)
      case None => (_: LogicalPlan) => ()
    }
  }

  /** Called with each analyzed plan, in the application's thread; a query's plan is that of its sink. */
  private def beforeStart(session: SparkSession, control: QueryControl)(plan: LogicalPlan): Unit = plan match {
    case query: WriteToStream =>
      try {
        beLast(session, control)
        // If the metadata exists, Spark fixes the commit format of a new checkpoint when it first needs it, and not
        // at once, before the policy can be asked.
        if (control.isOn && StatefulPlan(query.inputQuery)) {
          StateMover.makeMetadata(session, new Path(query.resolvedCheckpointLocation))
        }
      } catch {
        // Another process begins the same checkpoint right now; Spark itself would report it here.
        case e: ConcurrentModificationException with SparkThrowable => throw e
        case Harmless(e) =>
          logError(s"spark-elastic: query ${Option(query.name).getOrElse("without a name")} starts as plain Spark", e)
      }
    case other if Linkage.has(Part.StateReads) => UnlessItFails(())(CheckpointFormat.readAsWritten(other))
    case _ =>
  }

  /** Keep the plugin's listener last: it lets `start()` return, and the application's must be notified before. */
  private def beLast(session: SparkSession, control: QueryControl): Unit = {
    val listeners = session.streams.listListeners()
    if (!listeners.lastOption.exists(_.isInstanceOf[QueryListener])) {
      // Add the new one first: a query that starts right now meets two of them, and not none.
      session.streams.addListener(new QueryListener(session, control))
      listeners.filter(_.isInstanceOf[QueryListener]).foreach(session.streams.removeListener)
    }
  }
}

/**
 * The latch that `start()` waits for. Spark opens it when all listeners know that the query has started, and creates
 * the sources after that, which may take long. The plugin creates them earlier, so it has to open the latch first.
 */
private[elastic] object StartLatch extends Logging {
  private lazy val field = Hidden.field(MovedFields.StartLatch)

  def open(execution: StreamExecution): Unit =
    try field.get(execution).asInstanceOf[CountDownLatch].countDown()
    catch {
      case Harmless(e) =>
        logInfo(s"spark-elastic: query ${QueryRun.called(execution)}: start() returns once its sources exist: $e")
    }
}
