package org.apache.spark.elastic

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

/**
 * An error in the plugin that must not harm the application. Unlike Scala's `NonFatal`, it includes linkage errors,
 * since a custom build of Spark may lack what the jar was compiled with. It also includes plans too deep for the
 * plugin's recursion, and threads that cannot be created.
 */
private[spark] object Harmless {
  def unapply(e: Throwable): Option[Throwable] = e match {
    case _: LinkageError | _: StackOverflowError | NonFatal(_) => Some(e)
    case _: OutOfMemoryError if String.valueOf(e.getMessage).contains("native thread") => Some(e)
    case _ => None
  }
}

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
