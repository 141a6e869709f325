package org.apache.spark.elastic

import org.apache.spark.internal.Logging

/** Daemon threads. None keeps the JVM alive after the application has ended, and none ends silently with an error. */
private[spark] object Daemon extends Logging {

  def apply(name: String)(body: => Unit): Thread = {
    val work: Runnable = () =>
      try body
      catch {
        case _: InterruptedException => // the thread was asked to end
        case e: Throwable => logError(s"spark-elastic: thread $name ended", e)
      }
    val thread = new Thread(work, name)
    thread.setDaemon(true)
    thread
  }

  def start(name: String)(body: => Unit): Thread = {
    val thread = Daemon(name)(body)
    thread.start()
    thread
  }
}
