package org.apache.spark.elastic

import org.apache.spark.internal.Logging

/** A thread of ours: none of them keeps the JVM of an application that has come to its end, or ends silently by an error. */
private[spark] object Daemon extends Logging {

  def apply(name: String)(body: => Unit): Thread = {
    val work: Runnable = () =>
      try body
      catch {
        case _: InterruptedException => // it was told to end
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
