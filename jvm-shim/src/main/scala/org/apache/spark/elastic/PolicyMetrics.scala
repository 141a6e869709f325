package org.apache.spark.elastic

import scala.jdk.CollectionConverters._

import com.codahale.metrics.{Gauge, MetricRegistry}
import com.fasterxml.jackson.databind.JsonNode

/** The policy's metrics as gauges of Spark's metrics system; gauges come and go with the names that it sends. */
private[spark] final class PolicyMetrics {
  @volatile private var latest = Map.empty[String, Double]
  private var registry: Option[MetricRegistry] = None

  /** Add the gauges. Spark adopts only a registry that is not empty, along with later additions to it. */
  def show(in: MetricRegistry): Unit = synchronized {
    registry = Some(in)
    (latest.keySet + "slots").foreach(add(in, _))
  }

  def update(metrics: JsonNode): Unit =
    replace(metrics.properties.asScala.map(metric => metric.getKey -> metric.getValue.asDouble).toMap)

  /** Drop the metrics of a process that has ended, which would look current. */
  def forget(): Unit = replace(Map.empty)

  private def replace(now: Map[String, Double]): Unit = synchronized {
    val before = latest
    latest = now
    registry.foreach { shown =>
      (before.keySet -- latest.keySet - "slots").foreach(shown.remove)
      (latest.keySet -- before.keySet).foreach(add(shown, _))
    }
  }

  private def add(in: MetricRegistry, name: String): Unit =
    if (!in.getMetrics.containsKey(name)) in.register(name, (() => latest.getOrElse(name, 0.0)): Gauge[Double])
}
