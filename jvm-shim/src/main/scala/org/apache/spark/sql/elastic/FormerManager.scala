package org.apache.spark.sql.elastic

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.classic.{SparkSession, StreamingQuery, StreamingQueryManager}
import org.apache.spark.sql.internal.StaticSQLConf

/**
 * Spark's own manager, where the application had got hold of it before ours took its place. It may keep it for good, so
 * that has to go on answering: it shares our listeners and is told which queries there are.
 */
private[elastic] final class FormerManager(former: StreamingQueryManager, session: SparkSession) {

  /** From now on a listener that is added to either manager is added to both. */
  def shareListeners(ours: StreamingQueryManager): Unit = {
    val before = former.listListeners()
    val bus = field("listenerBus")
    bus.set(former, bus.get(ours))
    // Each manager has made its own of those that a setting names.
    val named = session.sparkContext.conf.get(StaticSQLConf.STREAMING_QUERY_LISTENERS).getOrElse(Nil)
    before
      .filterNot(listener => ours.listListeners().contains(listener) || named.contains(listener.getClass.getName))
      .foreach(ours.addListener)
  }

  def add(query: StreamingQuery): Unit = session.sharedState.activeQueriesLock.synchronized {
    field("activeQueries").get(former).asInstanceOf[mutable.HashMap[UUID, StreamingQuery]].put(query.id, query)
  }

  /** Takes the query off its list and wakes who waits for the end of any. */
  def ended(query: StreamingQuery): Unit = former.notifyQueryTermination(query)

  private def field(name: String): java.lang.reflect.Field = {
    val field = classOf[StreamingQueryManager].getDeclaredField(name)
    field.setAccessible(true)
    field
  }
}
