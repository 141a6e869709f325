package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{Daemon, ExecutorInfo, FirstTasks}

/** Executors that have joined while queries run, to be warmed up: all that have come by then at once. */
private[elastic] final class NewExecutors(first: FirstTasks) {
  private val lock = new Object
  private var waiting = Seq.empty[ExecutorInfo]
  private var working = false

  /** Takes an executor in. Its warm-up, and that of those that come meanwhile, is a job of this query. */
  def joined(executor: ExecutorInfo, query: QueryRun): Unit = lock.synchronized {
    waiting :+= executor
    if (!working) {
      Daemon.start("elastic-warm-up") {
        try Iterator.continually(next()).takeWhile(_.nonEmpty).foreach(warmUp(query, _))
        catch {
          case e: Throwable =>
            giveUp()
            throw e // its thread tells of it
        }
      }
      working = true
    }
  }

  private def warmUp(query: QueryRun, executors: Seq[ExecutorInfo]): Unit =
    for {
      ms <- WarmUp(query.session, query.rescalable, executors)
      e <- executors
    } first.warm(e.executor, ms)

  private def next(): Seq[ExecutorInfo] = lock.synchronized {
    val (now, later) = waiting.splitAt(NewExecutors.AtOnce)
    waiting = later
    working = now.nonEmpty
    now
  }

  /** Whoever waits for these would wait in vain. */
  private def giveUp(): Unit = lock.synchronized {
    waiting = Nil
    working = false
  }

  def isWorking: Boolean = lock.synchronized(working)
}

private[elastic] object NewExecutors {

  /** All of them read the same files. */
  private val AtOnce = 64
}
