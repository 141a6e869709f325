package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{Daemon, ExecutorInfo, FirstTasks}

/** Executors that have joined while queries run, warmed up together with all that are waiting by then. */
private[elastic] final class NewExecutors(first: FirstTasks) {
  private val lock = new Object
  private var waiting = Seq.empty[ExecutorInfo]
  private var working = false

  /** Add an executor. Its warm-up, and that of later ones meanwhile, is a job of this query. */
  def joined(executor: ExecutorInfo, query: QueryRun): Unit = lock.synchronized {
    waiting :+= executor
    if (!working) {
      Daemon.start("elastic-warm-up") {
        try Iterator.continually(next()).takeWhile(_.nonEmpty).foreach(warmUp(query, _))
        catch {
          case e: Throwable =>
            giveUp()
            throw e // its thread logs it
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

  /** Give up the waiting executors, so that no query waits for them in vain. */
  private def giveUp(): Unit = lock.synchronized {
    waiting = Nil
    working = false
  }

  def isWorking: Boolean = lock.synchronized(working)
}

private[elastic] object NewExecutors {

  /** Limited because all of them read the same files. */
  private val AtOnce = 64
}
