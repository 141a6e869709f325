package org.apache.spark.elastic

import scala.util.control.NonFatal

/**
 * What has gone wrong with us and is to harm nobody else. Other than in Scala's `NonFatal`, code that does not fit is part
 * of it: somebody's own build of Spark may lack what ours was compiled with. So is a plan that is too deep for us, and a
 * thread that we cannot have.
 */
private[spark] object Harmless {
  def unapply(e: Throwable): Option[Throwable] = e match {
    case _: LinkageError | _: StackOverflowError | NonFatal(_) => Some(e)
    case _: OutOfMemoryError if String.valueOf(e.getMessage).contains("native thread") => Some(e)
    case _ => None
  }
}
