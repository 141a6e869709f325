package org.apache.spark.elastic

import scala.collection.mutable

/**
 * When executors that have joined begin to work for queries. Ten minutes after it has joined nothing more is noted of an
 * executor, so that those that stay for months remember no queries.
 */
private[spark] final class FirstTasks {
  import FirstTasks._

  private val newcomers = mutable.HashMap.empty[String, Newcomer]
  private val found = mutable.HashMap.empty[String, Vector[NewExecutor]] // by query

  def joined(executor: String): Unit = synchronized {
    newcomers.getOrElseUpdate(executor, new Newcomer)
  }

  def removed(executor: String): Unit = synchronized(newcomers.remove(executor))

  /** Its warm-up is over, and took so long. */
  def warm(executor: String, ms: Long): Unit = synchronized {
    newcomers.get(executor).foreach(_.warmUpMs = Some(ms))
  }

  /** A task of a query was launched (epoch ms): if it is the first one of that query on a newcomer, that is noted. */
  def launched(executor: String, query: String, at: Long): Unit = synchronized {
    newcomers.get(executor).foreach { newcomer =>
      if (at - newcomer.joined > NewMs) newcomers.remove(executor)
      else if (newcomer.queries.add(query)) {
        val used = NewExecutor(executor, newcomer.joined, at, newcomer.warmUpMs)
        found(query) = found.getOrElse(query, Vector.empty) :+ used
      }
    }
  }

  /** What was noted of a query since it was taken. */
  def take(query: String): Option[ExecutorsUsed] = synchronized(found.remove(query).map(ExecutorsUsed(query, _)))
}

private object FirstTasks {
  private val NewMs = 600000L

  private final class Newcomer {
    val joined: Long = System.currentTimeMillis()
    val queries = mutable.HashSet.empty[String]
    var warmUpMs = Option.empty[Long]
  }
}
