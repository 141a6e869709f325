package org.apache.spark.sql.elastic

import java.util.UUID
import java.util.concurrent.{Semaphore, TimeUnit}
import java.util.concurrent.locks.ReentrantLock

import scala.util.{Failure, Success, Try}

import org.apache.spark.elastic.{Daemon, Harmless, Linkage, Part, PrepareMove}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.elastic.Moved.StreamExecution

/**
 * The move of a query's state that is prepared while its micro-batches run, at most one at a time. The policy's thread
 * brings the orders. The stream thread tells of committed batches, and switches over at a boundary. Threads of its own
 * do the rest, and the stream thread waits for them only to switch over.
 */
private[elastic] final class Preparation(execution: StreamExecution, query: QueryRun) extends Logging {
  import Preparation._

  private val sc = execution.sparkSession.sparkContext
  @volatile private var current: Option[Copying] = None

  /** Whether the last move only had to switch over. */
  @volatile var hasSwitched = false

  /** Begin what is ordered, or go on with it. The order's outcome follows when only the switch is left. */
  def take(order: PrepareMove): Unit = synchronized {
    val same = current.filter(_.partitions == order.partitions)
    if (!same.exists(_.takes(order))) {
      drop(Replaced)
      if (order.partitions == query.partitions) query.done(order, 0L)
      else
        try {
          Linkage.need(Part.PreparedMoves)
          current = Some(new Copying(order))
        } catch { case Harmless(e) => query.failed(order, String.valueOf(e.getMessage)) }
    }
  }

  /** Follow another committed micro-batch. */
  def committed(): Unit = current.foreach(_.wake())

  /**
   * Switch to this count. Return whether that was prepared; if not, nothing has been changed. A failure leaves what
   * Spark's re-partitioning leaves if it fails.
   */
  def switchTo(partitions: Int): Boolean = {
    hasSwitched = false
    hasSwitched = current.exists(copying => copying.partitions == partitions && copying.use())
    if (hasSwitched) new StateMover(execution).closeSinkGap() else drop("the state was moved otherwise")
    hasSwitched
  }

  /** Delete what is left of a switch that has failed, when the checkpoint is in order again. */
  def settle(): Unit = current.foreach(_.settle())

  /** Give up what is prepared; any thread may call this. */
  def drop(why: String): Unit = current.foreach(_.drop(why))

  private final class Copying(first: PrepareMove) {
    val partitions: Int = first.partitions
    private val began = System.nanoTime()
    private val tag = s"spark-elastic-${UUID.randomUUID}"
    private val what = s"the state in ${execution.resolvedCheckpointRoot} is copied to $partitions partitions"
    private var order: Option[PrepareMove] = Some(first) // until it has its outcome
    private var readyMs: Option[Long] = None
    @volatile private var isOver = false // once true, nothing more is written, except by the switch
    @volatile private var copy: Option[StateCopy] = None
    @volatile private var written: Option[Try[Unit]] = None // the snapshot
    private var writer: Thread = _
    private val working = new ReentrantLock // held while the copy is changed, so perhaps for long
    private val news = new Semaphore(0)

    /** Take a further order for the same count; return whether it does. */
    def takes(next: PrepareMove): Boolean = synchronized {
      if (!isOver) {
        order.foreach(query.failed(_, Replaced))
        order = Some(next)
        readyMs.foreach(_ => answer())
      }
      !isOver
    }

    def wake(): Unit = news.release()

    def drop(why: String): Unit = {
      end(why)
      try sc.cancelJobsWithTag(tag, why)
      catch { case Harmless(_) if sc.isStopped => } // it has no jobs any more
    }

    /** Make the copy the state of the query, on the stream thread. Return whether it could; then nothing else may. */
    def use(): Boolean = isReady && {
      working.lockInterruptibly()
      try
        if (isOver) false
        else {
          end("it is used")
          val isFollowed =
            try {
              catchUp(behind = 0)
              true
            } catch {
              case Harmless(_) if query.isStopped => throw new InterruptedException
              case Harmless(e) =>
                logWarning(s"spark-elastic: query ${query.called}: a prepared move has to be made in a pause", e)
                false
            }
          if (isFollowed) copy.foreach(_.switch())
          isFollowed
        }
      finally working.unlock()
    }

    def settle(): Unit = if (isOver) cleaning(copy.foreach(_.settle()))

    private def run(): Unit =
      try {
        sc.addJobTag(tag)
        // On executors that warm up it would find no slot, and take those of the micro-batches.
        while (!isOver && !query.isWarm(millisSince(began))) news.tryAcquire(WarmUpPollMs, TimeUnit.MILLISECONDS)
        val made =
          new StateCopy(execution.sparkSessionForStream, execution.resolvedCheckpointRoot, query.partitions, partitions)
        copy = Some(made)
        writer = Daemon.start("elastic-copy-writer")(write(made))
        while (!isOver && written.isEmpty) {
          step(made.keep(lastBatch))
          news.tryAcquire(LookMs, TimeUnit.MILLISECONDS)
          news.drainPermits()
        }
        written.foreach(_.get)
        step {
          made.follow(lastBatch)
          made.place()
        }
        val patienceMs = math.max(LeastPatienceMs, millisSince(began))
        val copied = System.nanoTime()
        while (!isOver && lastBatch - made.followed > 1) {
          if (millisSince(copied) > patienceMs)
            throw new IllegalStateException("its state changes faster than the changes can be followed")
          step(made.follow(made.followed + 1))
        }
        ready()
        while (!isOver) {
          step(catchUp(behind = 1))
          news.tryAcquire(LookMs, TimeUnit.MILLISECONDS)
          news.drainPermits()
        }
      } catch {
        case e: Throwable =>
          giveUp(e)
          if (Harmless.unapply(e).isEmpty) throw e
      } finally close()

    private def write(made: StateCopy): Unit = {
      written = Some(
        try
          CurrentExecution.asOurs(sc, what) {
            def places = if (Linkage.has(Part.LostState)) StateLocations.forCopy(execution, first.tasks) else Nil
            val limits = new CopyLimits(first.tasks, first.bytesPerSecond, () => places, () => isOver)
            val from = System.nanoTime()
            made.write(limits)
            Success(renew(made, limits, millisSince(from)))
          }
        catch { case e: Throwable => Failure(e) })
      wake()
    }

    /** Until the changes since the snapshot was begun are few, make another one: it takes less time each time. */
    private def renew(made: StateCopy, limits: CopyLimits, tookMs: Long): Unit =
      if (tookMs > WorthRenewingMs && !isOver && made.isWorthRenewing) {
        val from = System.nanoTime()
        step(made.gather(lastBatch))
        made.renew(limits)
        val nowMs = millisSince(from)
        if (nowMs < tookMs / 2) renew(made, limits, nowMs)
      }

    /** Change the copy if it is still wanted. After a failure it is not: it may be half changed. */
    private def step(body: => Unit): Unit = {
      working.lock()
      try if (!isOver) body
      catch { case e: Throwable => giveUp(e); throw e }
      finally working.unlock()
    }

    private def catchUp(behind: Int): Unit = for (made <- copy) {
      val last = lastBatch
      while (made.followed < last - behind) made.follow(made.followed + 1)
    }

    private def lastBatch: Long =
      new CheckpointLogs(execution.sparkSessionForStream, execution.resolvedCheckpointRoot).commits
        .getLatestBatchId()
        .get

    private def isReady: Boolean = synchronized(readyMs.nonEmpty && !isOver)

    private def ready(): Unit = synchronized {
      if (!isOver) {
        readyMs = Some(millisSince(began))
        answer()
      }
    }

    private def answer(): Unit = {
      order.foreach(query.done(_, readyMs.get))
      order = None
    }

    private def giveUp(e: Throwable): Unit = {
      if (!isOver && !sc.isStopped)
        logWarning(s"spark-elastic: query ${query.called}: a move to $partitions partitions is not prepared", e)
      end(String.valueOf(e.getMessage))
    }

    /** Write nothing more, and say why if an order waits for its outcome. */
    private def end(why: String): Unit = {
      synchronized {
        isOver = true
        order.foreach(query.failed(_, why))
        order = None
      }
      wake()
    }

    private def close(): Unit = cleaning {
      Option(writer).foreach(_.join(LongestWriteMs))
      CurrentExecution.awaitTasks(sc, what)
      working.lock()
      try copy.foreach(_.close())
      finally working.unlock()
    }

    private def cleaning(body: => Unit): Unit =
      try body
      catch {
        case Harmless(e) =>
          logWarning(s"spark-elastic: query ${query.called}: the next start removes a copy of its state: $e")
      }

    private def millisSince(from: Long): Long = (System.nanoTime() - from) / 1000000L

    Daemon.start("elastic-copy")(run())
  }
}

private object Preparation {
  private val Replaced = "another one was ordered after it"
  private val LeastPatienceMs = 60000L
  private val LookMs = 10000L
  private val WorthRenewingMs = 5000L
  private val LongestWriteMs = 30000L
  private val WarmUpPollMs = 50L
}
