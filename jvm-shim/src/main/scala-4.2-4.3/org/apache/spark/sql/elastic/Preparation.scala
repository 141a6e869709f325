package org.apache.spark.sql.elastic

import java.util.UUID

import org.apache.spark.elastic.{Daemon, Harmless, Linkage, Part, PrepareMove}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.elastic.Moved.StreamExecution

/**
 * The move of a query's state that is prepared while its micro-batches run, at most one at a time. The stream thread
 * takes the orders, tells of committed batches, and switches over at a boundary; a thread of its own does the rest.
 */
private[elastic] final class Preparation(execution: StreamExecution, query: QueryRun) extends Logging {
  import Preparation._

  private val sc = execution.sparkSession.sparkContext
  @volatile private var current: Option[Copying] = None

  /** Whether the last move only had to switch over. */
  @volatile var hasSwitched = false

  /** Begin what is ordered, or go on with it. The order's outcome follows when only the switch is left. */
  def take(order: PrepareMove): Unit = {
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

  /** Switch to this count. Return whether that was prepared; if not, nothing has been changed. */
  def switchTo(partitions: Int): Boolean = {
    val prepared = current.filter(_.partitions == partitions)
    hasSwitched = false
    hasSwitched = prepared.exists(_.use())
    if (hasSwitched) {
      current = None
      new StateMover(execution).closeSinkGap()
    } else drop("the state was moved otherwise")
    hasSwitched
  }

  /** Give up what is prepared; any thread may call this. */
  def drop(why: String): Unit = {
    current.foreach(_.drop(why))
    current = None
  }

  private final class Copying(first: PrepareMove) {
    val partitions: Int = first.partitions
    private val began = System.nanoTime()
    private val tag = s"spark-elastic-${UUID.randomUUID}"
    private val what = s"the state in ${execution.resolvedCheckpointRoot} is copied to $partitions partitions"
    private var order: Option[PrepareMove] = Some(first) // until it has its outcome
    private var readyMs: Option[Long] = None
    @volatile private var isOver = false
    @volatile private var isInDoubt = false // what became of the switch: the next start finds out
    private val following = new Object // locks the copy, so that nobody else waits for the storage
    private var copy: StateCopy = _

    /** Take a further order for the same count; return whether it does. */
    def takes(next: PrepareMove): Boolean = synchronized {
      if (!isOver) {
        order.foreach(query.failed(_, Replaced))
        order = Some(next)
        answer()
      }
      !isOver
    }

    def wake(): Unit = synchronized(notifyAll())

    def drop(why: String): Unit = {
      end(why)
      sc.cancelJobsWithTag(tag, why)
    }

    /** Make the copy the state of the query, on the stream thread. Return whether it could; then nothing else may. */
    def use(): Boolean = following.synchronized {
      val isReady = synchronized(!isOver && readyMs.nonEmpty)
      val isFollowed = isReady &&
        (try {
          catchUp(behind = 0)
          true
        } catch {
          case Harmless(e) =>
            logWarning(s"spark-elastic: query ${query.called}: a prepared move is made in a pause", e)
            false
        })
      if (isFollowed) {
        isInDoubt = true
        try {
          copy.use()
          isInDoubt = false
        } finally end("it has been used")
      }
      isFollowed
    }

    private def run(): Unit =
      try {
        sc.addJobTag(tag)
        // On executors that warm up it would find no slot, and take those of the micro-batches.
        while (!isOver && !query.isWarm(millisSince(began))) Thread.sleep(WarmUpPollMs)
        step {
          copy = new StateCopy(
            execution.sparkSessionForStream,
            execution.resolvedCheckpointRoot,
            query.partitions,
            partitions)
        }
        CurrentExecution.asOurs(sc, what) {
          if (!isOver) copy.write(new CopyLimits(first.tasks, first.bytesPerSecond, StateLocations.free(execution)))
        }
        step {
          copy.follow(lastBatch)
          copy.place()
        }
        val (copied, patienceMs) = (System.nanoTime(), math.max(LeastPatienceMs, millisSince(began)))
        while (!isOver && lastBatch - copy.followed > 1) {
          if (millisSince(copied) > patienceMs)
            throw new IllegalStateException("its state changes faster than the changes can be followed")
          step(copy.follow(copy.followed + 1))
        }
        synchronized {
          readyMs = Some(millisSince(began))
          answer()
        }
        while (!isOver) {
          step(catchUp(behind = 1))
          synchronized(if (!isOver) wait(LookMs))
        }
      } catch {
        case Harmless(e) =>
          if (!isOver && !sc.isStopped)
            logWarning(s"spark-elastic: query ${query.called}: a move to $partitions partitions is not prepared", e)
          end(String.valueOf(e.getMessage))
      } finally close()

    /** Do something with the copy, unless it is over. */
    private def step(body: => Unit): Unit = following.synchronized(if (!isOver) body)

    private def catchUp(behind: Int): Unit = {
      val last = lastBatch
      while (copy.followed < last - behind) copy.follow(copy.followed + 1)
    }

    private def lastBatch: Long = {
      val logs = new CheckpointLogs(execution.sparkSessionForStream, execution.resolvedCheckpointRoot)
      logs.commits.getLatestBatchId().get
    }

    private def answer(): Unit = for (ms <- readyMs; waiting <- order) {
      query.done(waiting, ms)
      order = None
    }

    private def end(why: String): Unit = synchronized {
      isOver = true
      order.foreach(query.failed(_, why))
      order = None
      notifyAll()
    }

    private def close(): Unit =
      try {
        CurrentExecution.awaitTasks(sc, what)
        following.synchronized(if (copy != null && !isInDoubt) copy.close())
      } catch {
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
  private val WarmUpPollMs = 50L
}
