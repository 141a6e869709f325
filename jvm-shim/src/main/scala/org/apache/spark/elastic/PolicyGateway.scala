package org.apache.spark.elastic

import java.net.InetSocketAddress

import scala.jdk.CollectionConverters._

import com.codahale.metrics.{Gauge, MetricRegistry}
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import py4j.{Gateway, GatewayConnection, GatewayServer}

import org.apache.spark.internal.Logging

/**
 * The Py4J gateway for the policy process alone. The token reaches that process through its standard input and
 * nothing else: no argument, environment variable, setting or log. Calls are JSON text in, JSON text out.
 *
 * @param requests requests to the policy process
 * @param metrics its values for Spark's metrics system
 * @param act carries out one action; an exception fails that action alone
 * @param nonsense called about requests that cannot be understood
 */
private[spark] final class PolicyGateway(
    events: EventStream,
    requests: Requests,
    metrics: PolicyMetrics,
    version: String,
    act: Action => Unit,
    nonsense: String => Unit)
    extends Logging {
  private val StartMs = 20000L // that a Python process may need on a busy machine until its first call

  @volatile private var lastCall = System.nanoTime()
  @volatile private var greeted = false
  @volatile private var waiting = false
  @volatile private var closing = false

  private val gateway = new Gateway(this)
  private val port = new AuthenticatedPort(socket => {
    val connection = new GatewayConnection(gateway, socket)
    Daemon.start("elastic-gateway-call")(connection.run())
  })

  def start(): Unit = {
    GatewayServer.turnLoggingOff()
    gateway.startup()
    port.start()
  }

  def address: InetSocketAddress = port.address

  /** Return the ms since the policy process last called, less its time to start; 0 while it waits for events. */
  def silentMs: Long = {
    val silent = (System.nanoTime() - lastCall) / 1000000L
    if (waiting) 0L else if (greeted) silent else silent - StartMs
  }

  /** Whether the policy process has made its first call. */
  def isGreeted: Boolean = greeted

  /** Return the token of a new policy process, and refuse all earlier ones. */
  def expectCall(): String = {
    greeted = false
    forgiveSilence()
    port.renew()
  }

  /** Restart the measurement of silence. */
  def forgiveSilence(): Unit = lastCall = System.nanoTime()

  /** Called when the policy process has ended. */
  def ended(): Unit = {
    requests.end()
    metrics.forget()
  }

  /** Report to the policy process, at its next exchange, that the application is ending. */
  def close(): Unit = {
    closing = true
    events.wake()
    requests.close()
  }

  def shutdown(): Unit = {
    port.close()
    gateway.shutdown()
  }

  /** The first call on a connection: the caller's version, and the connection's purpose. */
  def hello(request: String): String = {
    val hello = Contract.mapper.readValue(request, classOf[HelloRequest])
    if (hello.requests) requests.begin()
    else {
      lastCall = System.nanoTime()
      greeted = true
      events.restart()
    }
    Contract.mapper.writeValueAsString(HelloReply(version, Contract.Number))
  }

  /** Take orders, and return the events that have happened; wait for some as long as asked, at most a second. */
  def exchange(request: String): String = {
    lastCall = System.nanoTime()
    val waitMs =
      try {
        val tree = Contract.mapper.readTree(request)
        val actions = tree.required("actions").elements.asScala.map(Contract.readAction).toSeq
        actions.foreach(run)
        math.max(0L, math.min(1000L, tree.path("wait_ms").asLong(0L)))
      } catch {
        case Harmless(e) =>
          nonsense(e.getMessage)
          throw e
      }
    waiting = true
    val batch =
      try events.take(if (closing) 0L else waitMs)
      finally {
        waiting = false
        lastCall = System.nanoTime()
      }
    val reply: ObjectNode = Contract.mapper.createObjectNode()
    val list = reply.putArray("events")
    batch.events.foreach(list.add(_))
    reply.put("merged", batch.merged).put("dropped", batch.dropped).put("stop", closing).toString
  }

  /**
   * Take the answer to a request, and return the next one of a queue; wait as long as asked, at most a second. This is
   * no sign of life of the policy's loop, so `lastCall` stays the same.
   */
  def serve(request: String): String = {
    val tree = Contract.mapper.readTree(request)
    if (tree.hasNonNull("answer")) requests.answer(tree.get("answer"))
    if (tree.hasNonNull("metrics")) metrics.update(tree.get("metrics"))
    val waitMs = if (closing) 0L else math.max(0L, math.min(1000L, tree.path("wait_ms").asLong(0L)))
    val reply = Contract.mapper.createObjectNode()
    requests.take(tree.required("queue").asText, waitMs).foreach(reply.set[ObjectNode]("request", _))
    reply.put("stop", closing).toString
  }

  /** Let an exchange that waits for events return now: the policy's loop has something to do. */
  def wake(): Unit = events.wake()

  private def run(action: Action): Unit =
    try act(action)
    catch {
      case Harmless(e) =>
        logWarning(s"spark-elastic: ${action.getClass.getSimpleName} failed: ${e.getMessage}")
        events.offer(action.failed(String.valueOf(e.getMessage)))
    }
}

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
