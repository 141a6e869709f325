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
 * A loopback port of the system's choice. A connection is handed on when both ends have proved that they know the
 * token, as `gateway/connection.py` says it; the token itself never crosses. All that is said until then has a fixed
 * length, so nobody makes us read or keep more. One thread serves whoever connects, so nobody costs one by silence.
 */
private[spark] final class AuthenticatedPort(handOn: Socket => Unit) extends Logging {
  import AuthenticatedPort._

  private val random = new SecureRandom
  private val selector = Selector.open()
  private val server = ServerSocketChannel.open()
  private val trusted = mutable.Set.empty[SocketChannel]
  private var token = ""
  private var warned = false

  def start(): Unit = {
    // Of IPv4 and IPv6 Java takes the one that it is told to prefer and that the machine has.
    server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress, 0), Backlog)
    server.configureBlocking(false)
    server.register(selector, SelectionKey.OP_ACCEPT)
    Daemon.start("elastic-gateway")(while (server.isOpen) serve())
  }

  def address: InetSocketAddress = server.getLocalAddress.asInstanceOf[InetSocketAddress]

  /** Gives another token, and ends the connections that were made with the one before. */
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
        // Those who wait come first: they are served even where no other one can be accepted.
        clients(selector.selectedKeys).foreach(_.go())
        waiting.filter(System.nanoTime() - _.since > LimitNs).foreach(_.channel.close())
        val another = selector.selectedKeys.removeIf(_.channel eq server)
        selector.selectedKeys.clear()
        if (another) accept()
      }
    } catch {
      // Most likely no file descriptor or thread is left; nobody else would continue when there is one.
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

  /** Somebody who has connected, and has not proved anything yet. */
  private class Client(val channel: SocketChannel) {
    val since: Long = System.nanoTime()
    private val said = ByteBuffer.allocate(Size)
    private var nonces = Array.empty[Byte]

    /** Reads what has come, and answers it. */
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
          trusted.filterInPlace(_.isOpen) += channel
          handOn(channel.socket)
          warned = false
        }
      } catch {
        case e: Throwable =>
          channel.close()
          if (!NonFatal(e)) throw e // nothing that the other end has done
      }
  }
}

private[spark] object AuthenticatedPort {

  /** Bytes of a token, a nonce, and an HMAC-SHA256. */
  private val Size = 32

  /** The oldest has to go when another one comes; the policy process comes again. */
  private val MaxWaiting = 128

  /** Java's own 50 are soon taken, and who finds no room has to wait a second before the system tries again. */
  private val Backlog = 1024
  private val LimitNs = 10000000000L
  private val CheckMs = 250L
  private val PauseMs = 100L
}
