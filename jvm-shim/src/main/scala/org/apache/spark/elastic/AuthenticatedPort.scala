package org.apache.spark.elastic

import java.net.{InetAddress, InetSocketAddress, Socket}
import java.nio.ByteBuffer
import java.nio.channels.{SelectionKey, Selector, ServerSocketChannel, SocketChannel}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.{MessageDigest, SecureRandom}
import java.util.{Set => JSet}
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

/**
 * A loopback port chosen by the system. A connection is handed on once both ends have proved that they know the
 * token, by the protocol in `gateway/client.py`; the token itself is never sent. Messages until then have a fixed
 * length, so no client makes the driver read or keep more. One thread serves all clients, so silence is cheap.
 * (Py4J's server takes a thread for each, reads lines of any length, and stops permanently when one `accept` fails.)
 */
private[spark] final class AuthenticatedPort(handOn: Socket => Unit) extends Logging {
  private val Size = 32 // bytes of a token, a nonce, and an HMAC-SHA256
  private val MaxWaiting = 128 // unproven clients; then the oldest is dropped, and the policy process connects again
  private val Backlog = 1024 // Java's 50 are soon used up, and a client that finds no room waits a second
  private val LimitNs = 10000000000L
  private val CheckMs = 250L
  private val PauseMs = 100L

  private val random = new SecureRandom
  private val selector = Selector.open()
  private val server = ServerSocketChannel.open()
  private val trusted = mutable.Set.empty[SocketChannel]
  private var token = ""
  private var warned = false

  def start(): Unit = {
    // Java chooses between IPv4 and IPv6 by its settings and by what the machine has.
    server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress, 0), Backlog)
    server.configureBlocking(false)
    server.register(selector, SelectionKey.OP_ACCEPT)
    Daemon.start("elastic-gateway")(while (server.isOpen) serve())
  }

  def address: InetSocketAddress = server.getLocalAddress.asInstanceOf[InetSocketAddress]

  /** Replace and return the token, and close the connections that used the previous one. */
  def renew(): String = synchronized {
    trusted.foreach(_.close())
    trusted.clear()
    token = bytes().map(b => f"$b%02x").mkString
    token
  }

  def close(): Unit = if (selector.isOpen) {
    synchronized {
      server.close()
      (trusted ++ waiting.map(_.channel)).foreach(_.close())
    }
    selector.close()
  }

  private def serve(): Unit =
    try {
      selector.select(if (waiting.isEmpty) 0L else CheckMs)
      synchronized {
        // Waiting clients come first: they are served even when no further connection can be accepted.
        clients(selector.selectedKeys).foreach(_.go())
        waiting.filter(System.nanoTime() - _.since > LimitNs).foreach(_.channel.close())
        val another = selector.selectedKeys.removeIf(_.channel eq server)
        selector.selectedKeys.clear()
        if (another) accept()
      }
    } catch {
      // Most likely no file descriptor or thread is left; no other thread would resume once there is one.
      case e: Throwable =>
        if (!warned && server.isOpen) logWarning(s"spark-elastic: cannot accept connections, retrying: $e")
        warned = true
        Thread.sleep(PauseMs)
    }

  private def accept(): Unit = Option(server.accept()).foreach { channel =>
    if (waiting.size >= MaxWaiting) waiting.minBy(_.since).channel.close()
    channel.configureBlocking(false)
    channel.register(selector, SelectionKey.OP_READ, new Client(channel))
  }

  private def waiting: Seq[Client] = clients(selector.keys)

  private def clients(keys: JSet[SelectionKey]): Seq[Client] =
    keys.asScala.toSeq.filter(_.isValid).map(_.attachment).collect { case client: Client => client }

  private def bytes(): Array[Byte] = Array.fill(Size)(random.nextInt().toByte)

  private def mac(role: String, nonces: Array[Byte]): Array[Byte] = {
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(new SecretKeySpec(token.getBytes(UTF_8), "HmacSHA256"))
    mac.update(s"$role ${address.getAddress.getHostAddress} ${address.getPort} ".getBytes(UTF_8))
    mac.doFinal(nonces)
  }

  /** A client that has connected and has not proved anything yet. */
  private class Client(val channel: SocketChannel) {
    val since: Long = System.nanoTime()
    private val said = ByteBuffer.allocate(Size)
    private var nonces = Array.empty[Byte]

    /** Read what has arrived, and answer a complete message. */
    def go(): Unit =
      try {
        if (channel.read(said) < 0) channel.close()
        else if (!said.hasRemaining && nonces.isEmpty) {
          val ours = bytes()
          nonces = said.array ++ ours
          said.clear()
          channel.write(ByteBuffer.wrap(ours ++ mac("driver", nonces)))
        } else if (!said.hasRemaining) {
          require(MessageDigest.isEqual(said.array, mac("policy", nonces)), "wrong proof")
          channel.write(ByteBuffer.wrap(Array('+'.toByte)))
          channel.keyFor(selector).cancel()
          channel.configureBlocking(true)
          trusted --= trusted.toSeq.filterNot(_.isOpen)
          trusted += channel
          handOn(channel.socket)
          warned = false
        }
      } catch {
        case e: Throwable =>
          channel.close()
          if (!NonFatal(e)) throw e // not caused by the other end
      }
  }
}
