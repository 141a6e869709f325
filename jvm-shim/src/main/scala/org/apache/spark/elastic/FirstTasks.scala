package org.apache.spark.elastic

import scala.collection.mutable

/**
 * Records when executors that have joined start to work for queries. Ten minutes after it has joined, nothing more is
 * recorded for an executor, so that long-lived ones do not accumulate queries.
 */
private[spark] final class FirstTasks {
  private val newcomers = mutable.HashMap.empty[String, Newcomer]
  private val found = mutable.HashMap.empty[String, Vector[NewExecutor]] // by query

  def joined(executor: String): Unit = synchronized {
    newcomers.getOrElseUpdate(executor, new Newcomer)
  }

  def removed(executor: String): Unit = synchronized(newcomers.remove(executor))

  /** Record the duration of an executor's warm-up. */
  def warm(executor: String, ms: Long): Unit = synchronized {
    newcomers.get(executor).foreach(_.warmUpMs = Some(ms))
  }

  /** Record the launch of a query's task (epoch ms), if it is the query's first one on a new executor. */
  def launched(executor: String, query: String, at: Long): Unit = synchronized {
    newcomers.get(executor).foreach { newcomer =>
      if (at - newcomer.joined > NewMs) newcomers.remove(executor)
      else if (newcomer.queries.add(query)) {
        val used = NewExecutor(executor, newcomer.joined, at, newcomer.warmUpMs)
        found(query) = found.getOrElse(query, Vector.empty) :+ used
      }
    }
  }

  /** Return the records of a query, and clear them. */
  def take(query: String): Option[ExecutorsUsed] = synchronized(found.remove(query).map(ExecutorsUsed(query, _)))

  private val NewMs = 600000L

  private final class Newcomer {
    val joined: Long = System.currentTimeMillis()
    val queries = mutable.HashSet.empty[String]
    var warmUpMs = Option.empty[Long]
  }
}
