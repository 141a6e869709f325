package org.apache.spark.elastic

import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, LinkedBlockingDeque, TimeUnit, TimeoutException}

/**
 * HTTP requests on their way to the policy process, and answers on their way back. Reads and writes have a line each: a
 * write waits for the policy's loop, a read never. Nobody waits longer than he said, and a request that nobody waits
 * for any more is not handed out.
 */
private[spark] final class Requests {
  import Requests._

  private val lines = Map(false -> new LinkedBlockingDeque[Asked], true -> new LinkedBlockingDeque[Asked])
  private val open = new ConcurrentHashMap[String, Asked]
  @volatile private var readers = 0
  @volatile private var serving = false

  /** Waits for the answer, up to `waitMs`; none if it does not come, at once if nobody is there to give it. */
  def ask(request: HttpRequest, writes: Boolean, waitMs: Long): Option[HttpAnswer] =
    if (!serving) None
    else {
      val asked = new Asked(request, System.nanoTime() + waitMs * 1000000L)
      open.put(request.id, asked)
      lines(writes).add(asked)
      try Option(asked.answer.get(waitMs, TimeUnit.MILLISECONDS))
      catch { case _: TimeoutException => None }
      finally {
        lines(writes).remove(asked)
        open.remove(request.id)
      }
    }

  /** The next request, waiting for one up to `waitMs`. */
  def take(writes: Boolean, waitMs: Long): Option[HttpRequest] = {
    val reader = readers
    Option(lines(writes).poll(waitMs, TimeUnit.MILLISECONDS)).flatMap { asked =>
      if (reader == readers && asked != Last)
        Some(asked.request.copy(leftMs = (asked.until - System.nanoTime()) / 1000000L))
      else {
        // This call was left behind by a policy process that is dead, or the application ends.
        lines(writes).addFirst(asked)
        None
      }
    }
  }

  def answer(answer: HttpAnswer): Unit = Option(open.get(answer.id)).foreach(_.answer.complete(answer))

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
    lines.values.foreach(_.addFirst(Last))
  }
}

private object Requests {
  private final class Asked(val request: HttpRequest, val until: Long) {
    val answer = new CompletableFuture[HttpAnswer]
  }

  /** Comes when nothing will come after it. */
  private val Last = new Asked(null, 0L)
}
