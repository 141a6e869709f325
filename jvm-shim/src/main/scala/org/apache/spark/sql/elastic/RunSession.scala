package org.apache.spark.sql.elastic

import org.apache.spark.sql.classic.SparkSession

/**
 * Each run has a session of its own, a clone of the application's as that is when the run begins. All runs of a query are
 * to have the first one's: what the application sets later is not meant for it, and what its batches have set stays.
 */
private[elastic] object RunSession {

  /** Makes a session that nobody uses yet equal to that of the run before: settings, database, views and functions. */
  def handOver(before: SparkSession, to: SparkSession): Unit = {
    val (old, now) = (before.sessionState, to.sessionState)
    now.conf.clear()
    old.conf.getAllConfs.foreach { case (key, value) => now.conf.setConfString(key, value) }
    now.catalog.clearTempTables()
    old.catalog.copyStateTo(now.catalog)
    for {
      name <- old.functionRegistry.listFunction()
      builder <- old.functionRegistry.lookupFunctionBuilder(name)
      if !now.functionRegistry.lookupFunctionBuilder(name).exists(_ eq builder)
      info <- old.functionRegistry.lookupFunction(name)
    } now.functionRegistry.registerFunction(name, info, builder)
  }
}
