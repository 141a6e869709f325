package org.apache.spark.elastic

import java.net.InetSocketAddress

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode
import py4j.{Gateway, GatewayConnection, GatewayServer}

import org.apache.spark.internal.Logging

/** What the policy process may call: a JSON text in, a JSON text out. */
private[spark] trait PolicyCalls {

  /** The first word on a connection: who speaks, and what it is for. */
  def hello(request: String): String

  /** Takes orders, answers with what happened meanwhile; waits for it as long as asked, at most a second. */
  def exchange(request: String): String

  /** Takes the answer to a request, gives the next one of a queue; waits for it as long as asked, at most a second. */
  def serve(request: String): String

  /** Lets an exchange that waits for events come back now: there is something to do for the policy's loop. */
  def wake(): Unit
}

/**
 * Py4J for the policy process, and for nobody else. Its token reaches it through its standard input, and through
 * nothing else: no argument, no environment, no setting, no log.
 *
 * @param requests what is asked of the policy process
 * @param metrics what it tells to Spark's metrics system
 * @param act carries out one action; what it throws is the answer to that action alone
 * @param nonsense is told of requests that cannot be understood
 */
private[spark] final class PolicyGateway(
    events: EventStream,
    requests: Requests,
    metrics: PolicyMetrics,
    version: String,
    act: Action => Unit,
    nonsense: String => Unit)
    extends PolicyCalls
    with Logging {

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

  /** Where the policy process finds us. */
  def address: InetSocketAddress = port.address

  /** Milliseconds since the policy process was last heard, less those it needs to start; 0 while it waits for events. */
  def silentMs: Long = {
    val silent = (System.nanoTime() - lastCall) / 1000000L
    if (waiting) 0L else if (greeted) silent else silent - PolicyGateway.StartMs
  }

  /** Whether the policy process has said its first word. */
  def isGreeted: Boolean = greeted

  /** A new policy process; returns its token. From now on no other one is heard. */
  def expectCall(): String = {
    greeted = false
    forgiveSilence()
    port.renew()
  }

  /** The silence counts from now. */
  def forgiveSilence(): Unit = lastCall = System.nanoTime()

  /** The policy process has ended. */
  def ended(): Unit = {
    requests.end()
    metrics.forget()
  }

  /** Lets the policy process know at its next exchange that the application ends. */
  def close(): Unit = {
    closing = true
    events.wake()
    requests.close()
  }

  def shutdown(): Unit = {
    port.close()
    gateway.shutdown()
  }

  override def hello(request: String): String = {
    val hello = Contract.mapper.readValue(request, classOf[HelloRequest])
    if (hello.requests) requests.begin()
    else {
      lastCall = System.nanoTime()
      greeted = true
      events.restart()
    }
    Contract.mapper.writeValueAsString(HelloReply(version, Contract.Number))
  }

  override def exchange(request: String): String = {
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

  // Not a sign of life of the loop, so it leaves `lastCall` alone.
  override def serve(request: String): String = {
    val tree = Contract.mapper.readTree(request)
    if (tree.hasNonNull("answer")) requests.answer(tree.get("answer"))
    if (tree.hasNonNull("metrics")) metrics.update(tree.get("metrics"))
    val waitMs = if (closing) 0L else math.max(0L, math.min(1000L, tree.path("wait_ms").asLong(0L)))
    val reply = Contract.mapper.createObjectNode()
    requests.take(tree.required("queue").asText, waitMs).foreach(reply.set[ObjectNode]("request", _))
    reply.put("stop", closing).toString
  }

  override def wake(): Unit = events.wake()

  private def run(action: Action): Unit =
    try act(action)
    catch {
      case Harmless(e) =>
        logWarning(s"spark-elastic: ${action.getClass.getSimpleName} failed: ${e.getMessage}")
        events.offer(action.failed(String.valueOf(e.getMessage)))
    }
}

private[spark] object PolicyGateway {

  /** A Python process on a busy machine may take as long to say its first word. */
  private val StartMs = 20000L
}
