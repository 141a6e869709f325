package org.apache.spark.elastic

import java.io.File
import java.util.Locale

import scala.util.Try

import org.apache.spark.SparkConf

/** What the shim knows before the policy process has told it more. */
private[spark] object Shim {

  def version: String = Installed.built("version")

  def setting(conf: SparkConf, keys: String*): Option[String] = keys.flatMap(conf.getOption).headOption

  /** Whether nothing is to be done; in any case of its letters, as the policy reads it. */
  def isOff(conf: SparkConf): Boolean =
    setting(conf, "spark.elastic.schedulerMode", "spark.elastic.scheduler-mode").exists(_.trim.equalsIgnoreCase("off"))

  /**
   * The interpreter of the policy process: the one that was set, else the first of those that Spark runs Python with. The
   * driver's may be a notebook or a script, which would take the jar for its own input.
   */
  def python(conf: SparkConf, env: String => Option[String] = sys.env.get): String =
    setting(conf, "spark.elastic.python")
      .orElse {
        val sparks = Iterator("spark.pyspark.driver.python", "spark.pyspark.python").flatMap(conf.getOption(_)) ++
          Iterator("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON").flatMap(env(_))
        sparks.find(path => new File(path).getName.startsWith("python"))
      }
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
    "spark.executor.memoryOverheadFactor",
    "spark.kubernetes.memoryOverheadFactor",
    "spark.executor.minMemoryOverhead",
    "spark.executor.pyspark.memory",
    "spark.memory.offHeap.enabled",
    "spark.memory.offHeap.size",
    "spark.decommission.enabled",
    "spark.storage.decommission.enabled",
    "spark.shuffle.service.enabled",
    "spark.master",
    "spark.sql.shuffle.partitions",
    "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.minExecutors",
    "spark.dynamicAllocation.maxExecutors",
    "spark.eventLog.enabled",
    "spark.eventLog.dir",
    "spark.local.dir",
    "spark.sql.streaming.stateStore.providerClass")
}
