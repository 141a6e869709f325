package org.apache.spark.elastic

import java.util.UUID
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, LinkedBlockingDeque, TimeUnit, TimeoutException}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * What is asked of the policy process, and its answers on their way back. HTTP requests that read, those that write and
 * questions about batch stages have a queue each: a write waits for the policy's loop, the others never. Nobody waits
 * longer than he said, and a request that nobody waits for any more is not handed out.
 */
private[spark] final class Requests {
  import Requests._

  private val queues = Queues.map(_ -> new LinkedBlockingDeque[Asked]).toMap
  private val open = new ConcurrentHashMap[String, Asked]
  @volatile private var readers = 0
  @volatile private var serving = false

  /** Whether somebody is there to answer. */
  def isServed: Boolean = serving

  /** Waits for the answer, up to `waitMs`; none if it does not come, at once if nobody is there to give it. */
  def ask(queue: String, request: ObjectNode, waitMs: Long): Option[JsonNode] =
    if (!serving) None
    else {
      val id = UUID.randomUUID().toString
      val asked = new Asked(request.put("id", id), System.nanoTime() + waitMs * 1000000L)
      open.put(id, asked)
      queues(queue).add(asked)
      try Option(asked.answer.get(waitMs, TimeUnit.MILLISECONDS))
      catch { case _: TimeoutException => None }
      finally {
        queues(queue).remove(asked)
        open.remove(id)
      }
    }

  /** The next request of a queue, waiting for one up to `waitMs`. */
  def take(queue: String, waitMs: Long): Option[ObjectNode] = {
    val reader = readers
    Option(queues(queue).poll(waitMs, TimeUnit.MILLISECONDS)).flatMap { asked =>
      if (reader == readers && asked != Last)
        Some(asked.request.put("left_ms", (asked.until - System.nanoTime()) / 1000000L))
      else {
        // This call was left behind by a policy process that is dead, or the application ends.
        queues(queue).addFirst(asked)
        None
      }
    }
  }

  def answer(answer: JsonNode): Unit =
    Option(open.get(answer.path("id").asText)).foreach(_.answer.complete(answer))

  /** A policy process is there to answer. */
  def begin(): Unit = {
    readers += 1
    serving = true
  }

  /** The policy process is gone: who waits for its answer hears so now. */
  def end(): Unit = {
    serving = false
    open.values.forEach(asked => { asked.answer.complete(null); () })
  }

  /** The application ends: nobody waits here any more. */
  def close(): Unit = {
    end()
    queues.values.foreach(_.addFirst(Last))
  }
}

private object Requests {
  val Queues: Seq[String] = Seq("reads", "writes", "stages")

  private final class Asked(val request: ObjectNode, val until: Long) {
    val answer = new CompletableFuture[JsonNode]
  }

  /** Comes when nothing will come after it. */
  private val Last = new Asked(null, 0L)
}
