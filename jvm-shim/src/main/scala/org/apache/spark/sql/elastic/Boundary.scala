package org.apache.spark.sql.elastic

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.spark.elastic._
import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.streaming.{ReadAllAvailable, ReadLimit, SparkDataStream}
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger

/**
 * The point between two micro-batches on a query's stream thread. There it waits for its first slots, carries out
 * orders, and retries failures. All of it happens on that thread, and no batch is ever interrupted for it. (An
 * earlier version stopped the query and started it again from outside. It took 1,500 lines to make many runs look
 * like one, and most defects were in them.) A failure before the first boundary ends the query, as in plain Spark.
 *
 * @param first the policy's answer at the start; a hold is waited out here
 * @param refusal why the query cannot start
 */
private[elastic] final class Boundary(
    val execution: MicroBatchExecution,
    query: QueryRun,
    control: QueryControl,
    first: Option[QueryOrder],
    refusal: Option[Throwable])
    extends Logging {
  import Boundary._

  /** The next micro-batch. */
  @volatile var next: Batch = _

  private var dueAt = 0L // time of the next trigger, in epoch ms
  val inRun = new InRun(execution, query)
  // Asynchronous progress tracking writes its logs on another thread, so reads of them may be stale.
  private val canRetry = execution.getClass == classOf[MicroBatchExecution] && Linkage.has(Part.Retries)
  private val readLimits = Option.when(Linkage.has(Part.ReadLimits))(new ReadLimits(execution))
  private var rescale: Option[(Rescale, Long)] = None // and the time of the order
  private var retried: Batch = _ // the batch that was last retried
  private var hasMoved = false // and has committed no micro-batch since
  private var isToEnd = false
  private var failure: Option[Throwable] = None // ends the query, or is retried

  /** Start the first micro-batch when the policy allows it. */
  def start(): Unit = {
    refusal.foreach(throw _)
    first match {
      case Some(hold: HoldQuery) =>
        query.showIdle(hold.message) // Spark has overwritten the message
        begin(query.answer(untilHeld = false))
      case answer => begin(answer)
    }
  }

  private def begin(answer: Option[QueryOrder]): Unit = answer match {
    case Some(end: FailQuery) => throw new IllegalStateException(end.message.getOrElse(Refused))
    case None if execution.sparkSession.sparkContext.isStopped =>
      StreamExecutionAccess.terminate(execution)
      throw new InterruptedException // the application is ending, and so is a query that has not begun
    case other => goOn(other)
  }

  /** Run one micro-batch, with as many attempts as it takes. */
  @tailrec
  def run(batch: Batch => Boolean): Boolean = {
    if (failure.isEmpty) carryOut(0L)
    if (isToEnd) false
    else {
      readLimits.foreach(_.use(query.limitsOfSources))
      val current = next
      val outcome =
        try {
          failure.foreach(throw _)
          Right(batch(current))
        } catch {
          case Harmless(e) =>
            query.endIfTold(Some(e))
            if (isAsked) Left(e) else throw e
        }
      failure = None
      outcome match {
        case Right(goesOn) =>
          if (next ne current) {
            hasMoved = false
            retried = null
            query.progressed()
            query.preparation.committed()
          }
          goesOn
        case Left(e) =>
          retry(e, inRun.offsets(next), again = current eq retried)
          retried = next
          run(batch)
      }
    }
  }

  /** Wait for the next trigger, and carry out orders meanwhile. */
  def waitTill(target: Long): Unit = {
    dueAt = target
    def left = target - System.currentTimeMillis()
    while (left > 0 && !isToEnd && failure.isEmpty)
      carryOut(math.min(left, if (rescale.isEmpty) PollMs else WarmUpPollMs))
  }

  private def isAsked: Boolean =
    canRetry && (control.asksAboutFailures || query.isInNewStore) && !query.isStopped &&
      !execution.sparkSession.sparkContext.isStopped

  /**
   * Wait as the restart strategy says and make the failed micro-batch the next one, or end the query.
   *
   * @param offsets the end offsets of the batch, empty if that is not the one that failed
   * @param again whether it has failed before
   */
  @tailrec
  private def retry(e: Throwable, offsets: String, again: Boolean): Unit = {
    rescale = None // the report of the failure implies it
    query.preparation.drop("a micro-batch has failed")
    query.showIdle("A micro-batch has failed")
    query.askAboutFailure(FailureFacts(e, offsets)) match {
      case None => throw e
      case Some(end: FailQuery) =>
        query.keepStore()
        throw end.message.fold(e)(new IllegalStateException(_, e))
      case answer =>
        // Spark logs an exception that ends a query, and does not see this one.
        if (!again)
          logWarning(s"spark-elastic: query ${query.called}: retrying a failed micro-batch\n${FailureFacts.traces(e)}")
        val another =
          try {
            inRun.retry(next, again)
            goOn(answer)
            None
          } catch { case Harmless(e) if isAsked => Some(e) }
        if (another.nonEmpty) retry(another.get, offsets = "", again = true)
    }
  }

  private def goOn(answer: Option[QueryOrder]): Unit = {
    val from = System.nanoTime()
    val problem = answer.collect { case s: StartQuery => s }.flatMap { start =>
      val partitions = start.partitions.getOrElse(query.partitions)
      val converts = start.rescalable && query.isToBeConverted
      if (converts || partitions != query.partitions) move(partitions, converts) else None
    }
    query.started(answer, millisSince(from), problem)
  }

  /** Carry out the orders that arrive, waiting up to `waitMs` for the first one. */
  private def carryOut(waitMs: Long): Unit = {
    query.endIfTold()
    query.nextOrder(waitMs).foreach(take)
    Iterator.continually(query.nextOrder(0L)).takeWhile(_.nonEmpty).flatten.foreach(take)
    for ((order, since) <- rescale if !isToEnd && canMoveTo(order.partitions, millisSince(since))) {
      rescale = None
      val from = System.nanoTime()
      val moves = order.partitions != query.partitions
      val problem = if (moves) move(order.partitions) else None
      val outcome = order.done(millisSince(from)).copy(prepared = moves && query.preparation.hasSwitched)
      problem.fold(query.report(outcome))(query.failed(order, _))
      query.showIdle("Waiting for next trigger")
    }
  }

  /** A started micro-batch has to run before the state is moved, and one has to run between two moves. */
  private def canMoveTo(partitions: Int, orderedMs: Long): Boolean =
    partitions == query.partitions || (!hasMoved && !inRun.isStarted(next) && control.isWarm(orderedMs))

  private def take(order: QueryOrder): Unit = order match {
    case r: Rescale =>
      rescale.foreach { case (before, _) => query.failed(before, "another one was ordered after it") }
      rescale = Some(r -> System.nanoTime())
    case s: TakeSavepoint if s.stop => endWithSavepoint(s)
    case s: TakeSavepoint => query.copyBeside(s)
    case other => query.failed(other, "the query runs, it waits for no answer")
  }

  private def endWithSavepoint(order: TakeSavepoint): Unit =
    try {
      query.showIdle("Taking a savepoint")
      query.copy(order)
      query.done(order, 0L)
      isToEnd = true
      StreamExecutionAccess.terminate(execution)
    } catch { case Harmless(e) if !query.isStopped => query.failed(order, Savepoint.why(query.called)(e)) }

  /**
   * Change the query's partition count, with the state of a stateful one. Return why it was not changed, if so.
   *
   * @param converts whether the state also gets the store and format that can be re-partitioned
   */
  private def move(partitions: Int, converts: Boolean = false): Option[String] = {
    query.showIdle(if (converts) "Converting the checkpoint" else "Rescaling")
    var isBegun = false
    def isMoved = query.partitions == partitions && !(converts && query.isToBeConverted)
    try {
      inRun.look()
      isBegun = true
      hasMoved = inRun.repartition(partitions, next, converts)
      None
    } catch {
      case NonFatal(_) if query.isStopped => throw new InterruptedException // the next start completes it
      case Harmless(e) =>
        logWarning(s"spark-elastic: query ${query.called}: not moved to $partitions partitions", e)
        if (isBegun) {
          failure =
            bringBack(System.nanoTime(), patienceMs(dueAt - System.currentTimeMillis(), intervalMs), FirstPauseMs)
          hasMoved = isMoved // it was completed after all
        }
        Option.when(!isMoved)(String.valueOf(e.getMessage))
    }
  }

  /** Return the interval of the trigger; 0 if micro-batches follow one another. */
  private def intervalMs: Long = execution.trigger match {
    case ProcessingTimeTrigger(ms) => ms
    case _ => 0L
  }

  /** Complete or undo a move that has begun, trying for `patienceMs`. Return the last problem, if it remains. */
  @tailrec
  private def bringBack(since: Long, patienceMs: Long, pauseMs: Long): Option[Throwable] = {
    val problem =
      try {
        inRun.recover()
        None
      } catch {
        case NonFatal(_) if query.isStopped => throw new InterruptedException
        case Harmless(e) => Some(e)
      }
    val leftMs = patienceMs - millisSince(since)
    if (problem.isEmpty || leftMs <= 0) problem
    else {
      logWarning(
        s"spark-elastic: query ${query.called}: retrying its checkpoint in $pauseMs ms, for another " +
          s"${leftMs / 1000} s: ${problem.get}")
      Thread.sleep(pauseMs)
      bringBack(since, patienceMs, math.min(2 * pauseMs, LastPauseMs))
    }
  }

  private def millisSince(from: Long): Long = (System.nanoTime() - from) / 1000000L
}

private[elastic] object Boundary {
  private val PollMs = 1000L
  private val WarmUpPollMs = 50L
  private val FirstPauseMs = 500L
  private val LastPauseMs = 30000L

  private val LeastPatienceMs = 600000L

  /**
   * Return how long to retry a checkpoint before its exception ends the query. Plain Spark would meet it at the next
   * trigger, or later if that finds nothing to read. So the retries last until the trigger after that, at least.
   */
  def patienceMs(untilTriggerMs: Long, intervalMs: Long): Long = {
    val untilSecond = math.max(0L, untilTriggerMs) + intervalMs
    if (untilSecond < 0) Long.MaxValue else math.max(LeastPatienceMs, untilSecond)
  }

  private val Refused = "refused by the scheduler"
}

/**
 * Limits the rows that a micro-batch reads from sources, as the policy says. Spark takes the limit of each source
 * from a map, which a run creates with its sources. Limits set by the user are kept.
 */
private[elastic] final class ReadLimits(execution: MicroBatchExecution) extends Logging {
  private var ours = Map.empty[SparkDataStream, ReadLimit]

  /** Apply limits to the next micro-batch. Called on the stream thread, between two of them. */
  def use(limits: Seq[SourceLimit]): Unit =
    if (limits.nonEmpty || ours.nonEmpty) {
      try {
        val all = ReadLimitsAccess.get(execution)
        val free = all.filter { case (source, limit) =>
          limit.isInstanceOf[ReadAllAvailable] || ours.get(source).exists(_ eq limit)
        }
        val wanted = StreamSources.of(execution).zip(limits).collect {
          case (source, limit) if limit.rows > 0 && free.contains(source) => source -> ReadLimit.maxRows(limit.rows)
        }
        ReadLimitsAccess.set(execution, all ++ free.map(_._1 -> ReadLimit.allAvailable()) ++ wanted)
        ours = wanted.toMap
      } catch {
        case Harmless(e) =>
          logWarning(s"spark-elastic: query ${QueryRun.called(execution)}: no limit for its micro-batches", e)
      }
    }
}
