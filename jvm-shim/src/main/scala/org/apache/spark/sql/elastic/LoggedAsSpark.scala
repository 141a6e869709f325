package org.apache.spark.sql.elastic

import org.apache.spark.internal.Logging

/** Logs under the name of the Spark class that it extends, as alerts and log settings expect. */
private[elastic] trait LoggedAsSpark extends Logging {
  override protected def logName: String = {
    val names = Iterator.iterate[Class[_]](getClass)(_.getSuperclass).map(_.getName)
    names.find(!_.startsWith("org.apache.spark.sql.elastic.")).get
  }
}
