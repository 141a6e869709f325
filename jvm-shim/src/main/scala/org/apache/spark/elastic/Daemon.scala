package org.apache.spark.elastic

/** A thread of ours: none of them keeps the JVM of an application that has come to its end. */
private[spark] object Daemon {

  def apply(name: String)(body: => Unit): Thread = {
    val work: Runnable = () => body
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
