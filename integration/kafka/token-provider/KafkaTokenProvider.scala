package org.apache.spark.kafka010

import java.{util => ju}

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.internal.config.SECRET_REDACTION_PATTERN
import org.apache.spark.util.Utils

/*
 * What Spark's Kafka source calls of spark-token-provider-kafka, without its one subject, delegation tokens. It stands in
 * for that module only where its jar can't be fetched; everything else in these tests is the real thing.
 */

private[spark] object KafkaRedactionUtil {

  /** Texts for the log, without what Spark takes for a secret by its name. */
  def redactParams(params: Seq[(String, Object)]): Seq[(String, String)] = {
    val conf = Option(SparkEnv.get).map(_.conf).getOrElse(new SparkConf)
    val texts = params.collect { case (key, value) if value != null => key -> value.toString }
    Utils.redact(Some(conf.get(SECRET_REDACTION_PATTERN)), texts).toSeq
  }
}

/** The settings of a cluster that gives tokens; nobody makes one here. */
private[spark] case class KafkaTokenClusterConf(identifier: String)

private[spark] object KafkaTokenUtil {

  def findMatchingTokenClusterConfig(conf: SparkConf, bootstrapServers: String): Option[KafkaTokenClusterConf] = None

  def needTokenUpdate(params: ju.Map[String, Object], cluster: Option[KafkaTokenClusterConf]): Boolean = false
}

/** Collects the settings of a Kafka client. */
private[spark] class KafkaConfigUpdater(module: String, params: Map[String, Object]) {
  private val settings = new ju.HashMap[String, Object](params.asJava)

  def set(key: String, value: Object): this.type = {
    settings.put(key, value)
    this
  }

  def setIfUnset(key: String, value: Object): this.type = {
    settings.putIfAbsent(key, value)
    this
  }

  def setAuthenticationConfigIfNeeded(): this.type = this

  def setAuthenticationConfigIfNeeded(cluster: Option[KafkaTokenClusterConf]): this.type = this

  def build(): ju.Map[String, Object] = settings
}
