package org.apache.spark.elastic

import java.net.InetAddress
import java.nio.charset.StandardCharsets.UTF_8
import java.security.SecureRandom
import java.util.concurrent.TimeUnit
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode
import py4j.{CallbackClient, GatewayServer}

import org.apache.spark.internal.Logging

/** What the policy process may call: a JSON text in, a JSON text out. */
private[spark] trait PolicyCalls {

  /** Proves to the client that this server knows the token too; the client then trusts the port. */
  def hello(request: String): String

  /** Takes orders, answers with what happened meanwhile; waits for it as long as asked, at most a second. */
  def exchange(request: String): String

  /** Takes the answer to a request, gives the next one of a queue; waits for it as long as asked, at most a second. */
  def serve(request: String): String

  /** Lets an exchange that waits for events come back now: there is something to do for the policy's loop. */
  def wake(): Unit
}

/**
 * The Py4J server on a loopback port of the system's choice. The token reaches the policy process through its standard
 * input, and nothing else: no argument, no environment, no setting, no log.
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

  val token: String = {
    val bytes = new Array[Byte](32)
    new SecureRandom().nextBytes(bytes)
    bytes.map(b => f"$b%02x").mkString
  }

  @volatile private var lastCall = System.nanoTime()
  @volatile private var greeted = false
  @volatile private var waiting = false
  @volatile private var closing = false

  private val server = new GatewayServer.GatewayServerBuilder()
    .entryPoint(this)
    .javaPort(0)
    .javaAddress(InetAddress.getLoopbackAddress)
    .callbackClient(PolicyGateway.noCallbacks())
    .authToken(token)
    .build()

  /** Starts to listen. From a daemon thread, since Py4J's own threads inherit that. */
  def start(): Unit = Daemon.start("elastic-gateway")(server.start(true)).join()

  def port: Int = server.getListeningPort

  /** Milliseconds since the policy process was last heard, less those it needs to start; 0 while it waits for events. */
  def silentMs: Long = {
    val silent = (System.nanoTime() - lastCall) / 1000000L
    if (waiting) 0L else if (greeted) silent else silent - PolicyGateway.StartMs
  }

  /** Whether the policy process has said its first word. */
  def isGreeted: Boolean = greeted

  /** A new policy process. */
  def expectCall(): Unit = {
    greeted = false
    forgiveSilence()
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

  def shutdown(): Unit = server.shutdown()

  override def hello(request: String): String = {
    val hello = Contract.mapper.readValue(request, classOf[HelloRequest])
    if (hello.requests) requests.begin()
    else {
      lastCall = System.nanoTime()
      greeted = true
      events.restart()
    }
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(new SecretKeySpec(token.getBytes(UTF_8), "HmacSHA256"))
    val proof = mac.doFinal(hello.challenge.getBytes(UTF_8)).map(b => f"$b%02x").mkString
    Contract.mapper.writeValueAsString(HelloReply(proof, version, Contract.Number))
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

  /**
   * Nothing here calls Python. Py4J's own choice closes idle connections every 30 s, from a thread that is no daemon and
   * so would keep the JVM of an application that never stops its context.
   */
  private def noCallbacks() =
    new CallbackClient(0, InetAddress.getLoopbackAddress, 0L, TimeUnit.SECONDS)
}
