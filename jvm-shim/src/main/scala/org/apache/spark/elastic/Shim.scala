package org.apache.spark.elastic

import java.util.Locale

import scala.util.Try

import org.apache.spark.SparkConf

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

  /** How long a start waits for the policy's answer. */
  def startWaitMs(conf: SparkConf): Long =
    durationMs(conf, 10000L, "spark.elastic.startTimeout", "spark.elastic.start-timeout")

  /** How long another policy process is waited for that is tried after too many have failed. */
  def retryMs(conf: SparkConf): Long =
    durationMs(conf, 600000L, "spark.elastic.policyRetryInterval", "spark.elastic.policy-retry-interval")

  /** A time as the policy reads it, its own default where it is none: the policy says so, and what is allowed. */
  private def durationMs(conf: SparkConf, default: Long, keys: String*): Long =
    setting(conf, keys: _*)
      .map(_.trim.toLowerCase(Locale.ROOT))
      .flatMap {
        case Duration(number, unit) =>
          Try(Math.multiplyExact(number.toLong, units.find(known => unit.matches(known._1)).get._2)).toOption
        case _ => None
      }
      .getOrElse(default)

  private val Duration = raw"(\d+)\s*([a-z]*)".r

  private val units =
    Seq("|ms|milli.*" -> 1L, "s|sec.*" -> 1000L, "m|min.*" -> 60000L, "h|hour.*" -> 3600000L, "d|day.*" -> 86400000L)

  /** The settings that the policy process gets to see. */
  def shown(key: String): Boolean =
    key.startsWith("spark.elastic.") || key.matches(resources) || others.contains(key)

  private val resources = raw"spark\.(task|executor)\.resource\..+\.amount"

  private val others = Set(
    "spark.task.cpus",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
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
