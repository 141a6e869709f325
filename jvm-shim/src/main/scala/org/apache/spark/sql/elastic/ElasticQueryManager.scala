package org.apache.spark.sql.elastic

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.spark.elastic.Harmless
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.classic.{Dataset, SparkSession, StreamingQuery, StreamingQueryManager}
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog}
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.{OutputMode, StreamingQueryException, StreamingQueryListener, Trigger}
import org.apache.spark.util.Clock

/**
 * Spark's manager of a session's queries, with handles that survive restarts. Spark's own part does what it always did
 * for each run beneath; what an application asks (`active`, `get`, `awaitAnyTermination`, `resetTerminated`) is answered
 * here, in terms of handles.
 */
private[elastic] final class ElasticQueryManager(session: SparkSession, conf: SQLConf, control: QueryControl)
    extends StreamingQueryManager(session, conf) {

  private val handles = new ConcurrentHashMap[UUID, StreamingQuery]
  private val endings = new Object
  @volatile private var former: Option[FormerManager] = None
  // As in Spark: none yet; some without a failure; the last failure.
  private var lastEnding: Option[Option[StreamingQueryException]] = None

  /** Takes the place of a manager that the application may still hold. */
  def replace(manager: FormerManager): Unit = {
    manager.shareListeners(this)
    former = Some(manager)
  }

  override def active: Array[StreamingQuery] = handles.values.asScala.toArray

  override def get(id: UUID): StreamingQuery = handles.get(id)

  override def awaitAnyTermination(): Unit = endings.synchronized {
    while (lastEnding.isEmpty) endings.wait()
    lastEnding.flatten.foreach(failure => throw failure)
  }

  override def awaitAnyTermination(timeoutMs: Long): Boolean = {
    val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs)
    endings.synchronized {
      var left = timeoutMs
      while (lastEnding.isEmpty && left > 0) {
        endings.wait(left)
        left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime())
      }
      lastEnding.flatten.foreach(failure => throw failure)
      lastEnding.isDefined
    }
  }

  override def resetTerminated(): Unit = endings.synchronized { lastEnding = None }

  override private[sql] def startQuery(
      userSpecifiedName: Option[String],
      userSpecifiedSinkName: Option[String],
      userSpecifiedCheckpointLocation: Option[String],
      df: Dataset[_],
      extraOptions: Map[String, String],
      sink: Table,
      outputMode: OutputMode,
      useTempCheckpointLocation: Boolean,
      recoverFromCheckpointLocation: Boolean,
      trigger: Trigger,
      triggerClock: Clock,
      catalogAndIdent: Option[(TableCatalog, Identifier)],
      catalogTable: Option[CatalogTable]): StreamingQuery = {
    // `recover`: a run that follows another one of the same query always does.
    def launch(checkpoint: Option[String], recover: Boolean): StreamingQuery =
      super.startQuery(
        userSpecifiedName,
        userSpecifiedSinkName,
        checkpoint,
        df,
        extraOptions,
        sink,
        outputMode,
        useTempCheckpointLocation,
        recover,
        trigger,
        triggerClock,
        catalogAndIdent,
        catalogTable)

    if (!control.isOn) {
      val query = launch(userSpecifiedCheckpointLocation, recoverFromCheckpointLocation)
      if (query.isActive) handles.put(query.id, query)
      if (!query.isActive) handles.remove(query.id, query) // it ended before it was put there
      query
    } else {
      userSpecifiedName.foreach(refuseNameOfRestarting)
      val stateful = StatefulPlan(df.queryExecution.analyzed)
      val location =
        CheckpointLocation.of(session, userSpecifiedName, userSpecifiedCheckpointLocation, useTempCheckpointLocation)
      // Spark fixes the format of a new checkpoint's commit log when it makes the checkpoint's metadata, which is
      // before anybody could be asked what it should be. With the metadata there already, it does so later.
      val made = if (stateful) location.flatMap(_.makeMetadata(session)) else None
      val query = new ElasticQuery(
        this,
        control,
        session,
        location,
        stateful,
        new ThreadContext(session.sparkContext),
        {
          case None => launch(location.map(_.path), recoverFromCheckpointLocation)
          case Some(resolved) => launch(Some(resolved), recover = true)
        })
      query.startFirst { () =>
        made.foreach(_.undo())
        location.foreach(_.deleteIfTemporary(session))
      }
      query
    }
  }

  /** Between two runs of a query Spark does not know that its name is taken. */
  private def refuseNameOfRestarting(name: String): Unit =
    if (active.exists(q => q.name == name)) {
      throw new IllegalArgumentException(
        s"Cannot start query with name $name as a query with that name is already active in this SparkSession")
    }

  /** A query has passed its gate for the first time. */
  def add(query: ElasticQuery): Unit = {
    handles.put(query.id, query)
    former.foreach(_.add(query))
  }

  /** A query is over for good: the application's waiting calls return. */
  def ended(query: StreamingQuery, failure: Option[StreamingQueryException]): Unit = {
    handles.remove(query.id, query)
    endings.synchronized {
      if (lastEnding.isEmpty || failure.nonEmpty) lastEnding = Some(failure)
      endings.notifyAll()
    }
    former.foreach(manager => unlessStopping(manager.ended(query)))
  }

  /** Called by the stream thread of a run, at its end. */
  override private[sql] def notifyQueryTermination(terminated: StreamingQuery): Unit = {
    unlessStopping(super.notifyQueryTermination(terminated))
    terminated match {
      case execution: StreamExecution =>
        Launch.of(execution) match {
          case Some(launch) => launch.query.runEnded(execution)
          case None =>
            val plain = Option(handles.get(execution.id)).getOrElse(terminated)
            ended(plain, terminated.exception)
        }
      case other => ended(other, other.exception)
    }
  }

  /** Spark's part fails where the context has begun to stop; who waits for the query is to hear of its end all the same. */
  private def unlessStopping(body: => Unit): Unit =
    try body
    catch { case Harmless(e) => logWarning("spark-elastic: Spark could not put away a query that has ended", e) }

  /** Called by the stream thread of a run with each of its events; it may hold the thread at the first. */
  override private[sql] def postListenerEvent(event: StreamingQueryListener.Event): Unit = {
    event match {
      case e: StreamingQueryListener.QueryStartedEvent =>
        val execution = session.sharedState.activeStreamingQueries.get(e.id)
        Launch.arriving(execution) match {
          case Some(launch) => launch.query.atGate(launch, execution, () => super.postListenerEvent(e))
          case None => super.postListenerEvent(e)
        }
      case e =>
        Launch.current(e) match {
          case Some(launch) => launch.query.rename(e, launch).foreach(super.postListenerEvent)
          case None => super.postListenerEvent(e)
        }
    }
  }

  /** Posts an event that no stream thread is there to post. */
  def post(event: StreamingQueryListener.Event): Unit = super.postListenerEvent(event)
}
