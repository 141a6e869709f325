package org.apache.spark.elastic

import java.io.File
import java.util.Locale

import scala.util.Try

import org.apache.spark.SparkConf

/** Facts and settings that the shim needs before the policy process configures it. */
private[spark] object Shim {

  def version: String = Installed.built("version")

  def setting(conf: SparkConf, keys: String*): Option[String] = keys.flatMap(conf.getOption).headOption

  /** Whether the plugin is off; case is ignored, as in the policy. */
  def isOff(conf: SparkConf): Boolean =
    setting(conf, "spark.elastic.schedulerMode", "spark.elastic.scheduler-mode").exists(_.trim.equalsIgnoreCase("off"))

  /**
   * Return the interpreter of the policy process: the configured one, else the first Python that Spark would run. The
   * driver's may be a notebook or a script, which would take the jar as its own input.
   */
  def python(conf: SparkConf, env: String => Option[String] = sys.env.get): String =
    setting(conf, "spark.elastic.python")
      .orElse {
        val sparks = Iterator("spark.pyspark.driver.python", "spark.pyspark.python").flatMap(conf.getOption(_)) ++
          Iterator("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON").flatMap(env(_))
        sparks.find(path => new File(path).getName.startsWith("python"))
      }
      .getOrElse("python3")

  /** Return how long a start waits for the policy's answer. */
  def startWaitMs(conf: SparkConf): Long =
    durationMs(conf, 10000L, "spark.elastic.startTimeout", "spark.elastic.start-timeout")

  /** Return the delay before another policy process is tried after too many failures. */
  def retryMs(conf: SparkConf): Long =
    durationMs(conf, 600000L, "spark.elastic.policyRetryInterval", "spark.elastic.policy-retry-interval")

  /** Read a duration as the policy does. An invalid one is the default here, and the policy reports it. */
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

  /** Whether a setting is shown to the policy process. */
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
