package org.apache.spark.elastic

import scala.collection.mutable

/**
 * When executors that have joined begin to work for queries. One that has not within ten minutes is forgotten, so that
 * executors that stay for months remember no queries.
 */
private[spark] final class FirstTasks {
  import FirstTasks._

  private val newcomers = mutable.HashMap.empty[String, Newcomer]

  def joined(executor: String): Unit = synchronized {
    newcomers(executor) = new Newcomer(System.nanoTime())
  }

  def removed(executor: String): Unit = synchronized(newcomers.remove(executor))

  /** Its warm-up is over, and took so long. */
  def warm(executor: String, ms: Long): Unit = synchronized {
    newcomers.get(executor).foreach(_.warmUpMs = Some(ms))
  }

  /** A task of a query was launched (epoch ms); says so if it is the first one of that query on a newcomer. */
  def launched(executor: String, query: String, at: Long): Option[ExecutorUsed] = synchronized {
    newcomers.get(executor).flatMap { newcomer =>
      if (System.nanoTime() - newcomer.since >= NewNs) {
        newcomers.remove(executor)
        None
      } else Option.when(newcomer.queries.add(query))(ExecutorUsed(query, executor, at, newcomer.warmUpMs))
    }
  }
}

private object FirstTasks {
  private val NewNs = 600L * 1000000000L

  private final class Newcomer(val since: Long) {
    val queries = mutable.HashSet.empty[String]
    var warmUpMs = Option.empty[Long]
  }
}
