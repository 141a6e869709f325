package org.apache.spark.elastic

import scala.util.control.NonFatal

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
