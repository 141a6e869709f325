package org.apache.spark.sql.elastic

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import org.apache.spark.elastic._
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.internal.SQLConf

/** All live queries of the application, whatever their session, and the orders that concern them. */
private[spark] final class QueryControl(val events: EventStream) {
  private val queries = new ConcurrentHashMap[UUID, ElasticQuery]
  private val newExecutors = new NewExecutors
  @volatile private var on = true
  @volatile private var waitMs = 10000L
  @volatile private var warmUpMs = 0L
  @volatile private var restarts = false

  /** Whether there is a policy to ask. Without one, queries run as in plain Spark, those under way as they are. */
  def isOn: Boolean = on

  /** Whether the policy is asked about a run that has failed. If not, its query ends there and then, as in plain Spark. */
  def asksAboutFailures: Boolean = on && restarts
  def startWaitMs: Long = waitMs

  def off(): Unit = on = false

  def configure(c: Configure): Unit = {
    waitMs = c.startWaitMs
    warmUpMs = c.warmUpMs
    restarts = c.restarts
  }

  def start(a: StartQuery): Unit =
    find(a.query).start(StartPlan(a.partitions, a.repartition, a.rescalable, Some(a.id)))

  def hold(a: HoldQuery): Unit = {
    find(a.query).hold(a.message)
    events.offer(ActionDone(a.id, 0L))
  }

  def stop(a: StopQuery): Unit = find(a.query).stopForRestart(a.id, a.graceMs)

  def fail(a: FailQuery): Unit = find(a.query).fail(a.message)

  def cancel(a: CancelQuery): Unit = find(a.query).cancel(a.id)

  def takeSavepoint(a: TakeSavepoint): Unit = find(a.query).takeSavepoint(a.id, a.target)

  def setParallelism(a: SetParallelism): Unit = find(a.query).setPartitions(a.partitions)

  def boundSources(a: BoundSources): Unit = find(a.query).boundSources(a.sources)

  /** Between which numbers of tasks a query's sources are to be read. */
  def boundsOf(id: String): Map[SparkDataStream, SourceBounds] =
    Option(queries.get(UUID.fromString(id))).fold(Map.empty[SparkDataStream, SourceBounds])(_.boundsOfSources)

  /** Warms an executor up beside a query, one with state if there is one. */
  def joined(executor: ExecutorFacts): Unit =
    if (on && warmUpMs > 0) {
      val running = queries.values.asScala.filter(_.isUnderWay)
      running.find(_.stateful).orElse(running.headOption).foreach(newExecutors.joined(executor, _))
    }

  def awaitWarmUp(): Unit = newExecutors.await(warmUpMs)

  /** Lets no query wait for executors that are lost. */
  def leaveLost(left: Seq[ExecutorFacts]): Unit = queries.values.asScala.foreach(_.leaveLost(left))

  private def find(id: String): ElasticQuery =
    Option(queries.get(UUID.fromString(id)))
      .getOrElse(throw new IllegalArgumentException(s"there is no query $id"))

  def views: Seq[QueryView] = queries.values.asScala.flatMap(_.view).toSeq

  def tick(): Unit = queries.values.asScala.foreach(_.check())

  /**
   * Takes a new query in. Spark refuses a second query on one checkpoint by asking which runs there are; between two
   * runs of the first it would find none, so that is asked here.
   *
   * @return why it is refused, if it is
   */
  @tailrec
  def admit(id: UUID, query: ElasticQuery): Option[IllegalStateException] = queries.putIfAbsent(id, query) match {
    case null => None
    case other if other.isActive && !stopsOthers(query) =>
      Some(
        new IllegalStateException(
          s"Cannot start query with id $id as another query with same id is already active (it is being rescaled). " +
            s"You may stop the old query by setting ${SQLConf.STREAMING_STOP_ACTIVE_RUN_ON_RESTART.key} to true."))
    case other =>
      if (other.isActive) other.stop()
      queries.remove(id, other)
      admit(id, query)
  }

  private def stopsOthers(query: ElasticQuery): Boolean =
    query.sparkSession.sessionState.conf.getConf(SQLConf.STREAMING_STOP_ACTIVE_RUN_ON_RESTART)

  def remove(id: UUID, query: ElasticQuery): Unit = queries.remove(id, query)
}
