package org.apache.spark.sql.elastic

import org.apache.spark.elastic.ExecutorFacts

/** Executors that have joined while queries run, to be warmed up: all that have come by then at once. */
private[elastic] final class NewExecutors {
  private val lock = new Object
  private var waiting = Seq.empty[ExecutorFacts]
  private var working = false

  /** Takes an executor in. Its warm-up, and that of those that come meanwhile, is a job of this query. */
  def joined(executor: ExecutorFacts, query: ElasticQuery): Unit = lock.synchronized {
    waiting :+= executor
    if (!working) {
      query.beside("elastic-warm-up") { (session, checkpoint) =>
        Iterator.continually(next()).takeWhile(_.nonEmpty).foreach(WarmUp(session, checkpoint, _))
      }
      working = true
    }
  }

  private def next(): Seq[ExecutorFacts] = lock.synchronized {
    val (now, later) = waiting.splitAt(NewExecutors.AtOnce)
    waiting = later
    working = now.nonEmpty
    lock.notifyAll()
    now
  }

  /** Returns when all are warm, after `mostMs` at the latest. */
  def await(mostMs: Long): Unit = lock.synchronized {
    val until = System.nanoTime() + mostMs * 1000000L
    def leftMs = (until - System.nanoTime()) / 1000000L
    while (working && leftMs > 0) lock.wait(leftMs)
  }
}

private[elastic] object NewExecutors {

  /** All of them read the same files. */
  private val AtOnce = 64
}
