package org.apache.spark.elastic

import java.util.UUID
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, LinkedBlockingDeque, TimeUnit, TimeoutException}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * Requests to the policy process, and its answers. HTTP reads, HTTP writes and questions about batch stages have a
 * queue each: a write waits for the policy's loop, the others never do. No caller waits longer than its timeout, and
 * a request is not handed out once its caller has given up.
 */
private[spark] final class Requests {
  private val queues = Seq("reads", "writes", "stages").map(_ -> new LinkedBlockingDeque[Asked]).toMap
  private val Last = new Asked(null, 0L) // the last entry of a queue
  private val open = new ConcurrentHashMap[String, Asked]
  @volatile private var readers = 0
  @volatile private var serving = false

  /** Whether a policy process is there to answer. */
  def isServed: Boolean = serving

  /** Wait up to `waitMs` for the answer; None if there is none, at once if no process is there to answer. */
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

  /** Return the next request of a queue, waiting for one up to `waitMs`. */
  def take(queue: String, waitMs: Long): Option[ObjectNode] = {
    val reader = readers
    Option(queues(queue).poll(waitMs, TimeUnit.MILLISECONDS)).flatMap { asked =>
      if (reader == readers && asked != Last)
        Some(asked.request.put("left_ms", (asked.until - System.nanoTime()) / 1000000L))
      else {
        // This call was left behind by a dead policy process, or the application is ending.
        queues(queue).addFirst(asked)
        None
      }
    }
  }

  def answer(answer: JsonNode): Unit =
    Option(open.get(answer.path("id").asText)).foreach(_.answer.complete(answer))

  /** Called when a policy process is there to answer. */
  def begin(): Unit = {
    readers += 1
    serving = true
  }

  /** Called when the policy process has ended: callers stop waiting for its answers. */
  def end(): Unit = {
    serving = false
    open.values.forEach(asked => { asked.answer.complete(null); () })
  }

  /** Called when the application ends: no call waits here any longer. */
  def close(): Unit = {
    end()
    queues.values.foreach(_.addFirst(Last))
  }

  private final class Asked(val request: ObjectNode, val until: Long) {
    val answer = new CompletableFuture[JsonNode]
  }
}
