package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Harmless
import org.apache.spark.internal.Logging

/** Guards changes to plans: an error costs the change, never the query. */
private[elastic] object UnlessItFails extends Logging {
  def apply[T](asItIs: => T)(changed: => T): T =
    try changed
    catch {
      case Harmless(e) =>
        logWarning("spark-elastic: a part of a plan is left unchanged", e)
        asItIs
    }
}
