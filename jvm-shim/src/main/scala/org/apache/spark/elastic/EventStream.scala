package org.apache.spark.elastic

import java.util.concurrent.TimeUnit

import scala.collection.mutable

import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * The queue of events to the policy process. Producers never wait for the consumer. A full queue merges totals
 * (progress of one query, stages of one query). If there are still too many events, it drops all of them, and the
 * policy reads the state again from a snapshot. Merged and dropped events are counted.
 */
private[spark] final class EventStream {
  import EventStream._

  private case class Entry(event: Event, id: String, at: Long)

  private val entries = mutable.ArrayBuffer.empty[Entry]
  private var sequence = 0L
  private var snapshot: Option[() => Snapshot] = None
  private var snapshotDue = false
  private var readers = 0
  private var firstLazy: Option[Long] = None // from System.nanoTime()
  private var urgent = false
  private var isOff = false
  private var mergedEvents = 0L
  private var dropped = 0L

  /**
   * Set how to take a snapshot; `read` is called under this stream's lock. Events offered between the request for a
   * snapshot and its reading are in it and also follow it, which is nothing new to the policy.
   */
  def snapshotFrom(read: () => Snapshot): Unit = synchronized {
    snapshot = Some(read)
    notifyAll()
  }

  /** Run `change` and offer its event in one step, so that a snapshot sees both or neither. */
  def record(event: Event)(change: => Unit): Unit = synchronized {
    change
    offer(event)
  }

  def offer(event: Event): Unit = synchronized {
    if (!isOff) add(event)
  }

  /** Carry out an order, and offer its outcome. */
  def outcome(order: Action, why: Throwable => String = e => String.valueOf(e.getMessage))(body: => Unit): Unit =
    try {
      val from = System.nanoTime()
      body
      offer(order.done((System.nanoTime() - from) / 1000000L))
    } catch {
      case Harmless(e) => offer(order.failed(why(e)))
      case e: Throwable =>
        offer(order.failed(e.toString))
        throw e // its thread logs it
    }

  private def add(event: Event): Unit = {
    val now = System.currentTimeMillis()
    if (entries.size < MergeAbove || !merge(event, now)) {
      if (entries.size >= DropAbove) {
        dropped += entries.size
        entries.clear()
        snapshotDue = true
      }
      sequence += 1
      entries += Entry(event, s"s$sequence", now)
    }
    val first = firstLazy.isEmpty
    event match {
      case _: QueryProgress | _: BatchPlanned | _: StageCompleted | _: BatchStages | _: ExecutorUsage |
          _: ExecutorsUsed =>
        if (first) firstLazy = Some(System.nanoTime())
      case _ => urgent = true
    }
    // The reader does not know yet that the first lazy event has started the delay of its batch.
    if (urgent || entries.size >= BatchEvents || (first && firstLazy.nonEmpty)) notifyAll()
  }

  private def merge(event: Event, now: Long): Boolean = {
    val at = event match {
      case _: QueryProgress | _: StageCompleted | _: BatchStages =>
        entries.lastIndexWhere(entry => merged(entry.event, event).nonEmpty)
      case _ => -1 // no other kind merges, and the listener bus waits for this lock
    }
    if (at >= 0) {
      val older = entries(at)
      // Keep the older id, and with it the order of ids, and take the newer time.
      entries(at) = Entry(merged(older.event, event).get, older.id, now)
      mergedEvents += 1
    }
    at >= 0
  }

  private def merged(older: Event, newer: Event): Option[Event] = (older, newer) match {
    case (a: QueryProgress, b: QueryProgress) if a.query == b.query && a.run == b.run =>
      Some(b.copy(inputRows = a.inputRows + b.inputRows, merged = a.merged + 1 + b.merged))
    case (a: StageCompleted, b: StageCompleted) if a.copy(durationMs = b.durationMs, work = b.work) == b =>
      Some(b.copy(durationMs = a.durationMs + b.durationMs, work = for (x <- a.work; y <- b.work) yield x + y))
    case (a: BatchStages, b: BatchStages) => Some(b.copy(over = a.over + b.over))
    case _ => None
  }

  /** Start over for a new policy process: it gets a snapshot of the current state, then the events that follow. */
  def restart(): Unit = synchronized {
    readers += 1
    entries.clear()
    snapshotDue = true
    urgent = true
    notifyAll()
  }

  /** Keep no more events, since no process will read them. */
  def off(): Unit = synchronized {
    isOff = true
    entries.clear()
  }

  /** Keep events again, for a reader that knows nothing of the past. */
  def on(): Unit = synchronized {
    isOff = false
    restart()
  }

  def wake(): Unit = synchronized {
    urgent = true
    notifyAll()
  }

  /**
   * Return the next events, at most `BatchEvents`: at once if one of them is urgent, else when the oldest has waited
   * `BatchMs`, and none after `waitMs`. A call that a dead policy process left behind gets none: they would be lost.
   */
  def take(waitMs: Long): Batch = synchronized {
    val reader = readers
    val began = System.nanoTime()
    // Nothing comes before the first snapshot, and no snapshot before there is an application to describe.
    def early = snapshotDue && snapshot.isEmpty
    def left: Long = {
      val ends = firstLazy.filterNot(_ => early).map(_ + BatchMs * 1000000L) ++ Seq(began + waitMs * 1000000L)
      ends.map(_ - System.nanoTime()).min
    }
    while (left > 0 && reader == readers && (early || (!urgent && entries.size < BatchEvents))) {
      TimeUnit.NANOSECONDS.timedWait(this, left)
    }
    if (reader == readers) takeNow(early) else Batch(Nil, mergedEvents, dropped)
  }

  private def takeNow(early: Boolean): Batch = {
    val world =
      if (snapshotDue) snapshot.map { read =>
        snapshotDue = false
        sequence += 1
        Contract.write(read(), s"s$sequence", System.currentTimeMillis())
      }
      else None
    val taken = entries.take(if (early) 0 else BatchEvents).map(e => Contract.write(e.event, e.id, e.at)).toSeq
    entries.remove(0, taken.size)
    urgent = entries.nonEmpty
    firstLazy = None
    Batch(world.toSeq ++ taken, mergedEvents, dropped)
  }
}

private[spark] object EventStream {
  val BatchMs = 50L
  val BatchEvents = 1000
  private val MergeAbove = 1000
  private val DropAbove = 20000

  case class Batch(events: Seq[ObjectNode], merged: Long, dropped: Long)
}
