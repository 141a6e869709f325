package org.apache.spark.elastic

import scala.util.Try

import org.apache.spark.SparkConf
import org.apache.spark.network.util.JavaUtils

/** What the shim knows before the policy process has told it more. */
private[spark] object Shim {

  def version: String = Installed.built("version")

  def setting(conf: SparkConf, keys: String*): Option[String] = keys.flatMap(conf.getOption).headOption

  /** The interpreter of the policy process: the one that was set, else the one that Spark runs the driver's Python with. */
  def python(conf: SparkConf): String =
    setting(conf, "spark.elastic.python", "spark.pyspark.driver.python", "spark.pyspark.python")
      .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON"))
      .orElse(sys.env.get("PYSPARK_PYTHON"))
      .getOrElse("python3")

  /** How long a start waits for the policy's answer, by the policy's own default where it is not a time. */
  def startWaitMs(conf: SparkConf): Long =
    setting(conf, "spark.elastic.startTimeout", "spark.elastic.start-timeout")
      .flatMap(text => Try(JavaUtils.timeStringAsMs(text)).toOption)
      .filter(_ >= 0)
      .getOrElse(10000L)

  /** The settings that the policy process gets to see. */
  def shown(key: String): Boolean =
    key.startsWith("spark.elastic.") || key.matches(resources) || others.contains(key)

  private val resources = raw"spark\.(task|executor)\.resource\..+\.amount"

  private val others = Set(
    "spark.task.cpus",
    "spark.executor.cores",
    "spark.decommission.enabled",
    "spark.storage.decommission.enabled",
    "spark.shuffle.service.enabled",
    "spark.master",
    "spark.sql.shuffle.partitions",
    "spark.dynamicAllocation.enabled",
    "spark.eventLog.enabled",
    "spark.eventLog.dir",
    "spark.local.dir",
    "spark.sql.streaming.stateStore.providerClass")
}
