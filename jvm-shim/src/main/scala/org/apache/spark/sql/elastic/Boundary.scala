package org.apache.spark.sql.elastic

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.spark.elastic._
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger

import Moved._

/**
 * Where the stream thread of a query stands between two micro-batches: it waits for its first slots, carries out orders,
 * and tries again what has failed. All of it happens on that thread, and no batch is ever interrupted for it.
 *
 * @param first the policy's answer at the start; a hold is waited out here
 * @param refusal why the query cannot start
 */
private[elastic] final class Boundary(
    execution: MicroBatchExecution,
    query: QueryRun,
    control: QueryControl,
    first: Option[QueryOrder],
    refusal: Option[Throwable])
    extends Logging {
  import Boundary._

  /** The next micro-batch. */
  @volatile var next: Batch = _

  private var dueAt = 0L // when the next trigger comes, in ms since 1970
  val inRun = new InRun(execution, query)
  // Asynchronous progress tracking writes its logs beside this thread: what is read from them may be old.
  private val canRetry = execution.getClass == classOf[MicroBatchExecution] && Linkage.has(Part.Retries)
  private val readLimits = Option.when(Linkage.has(Part.ReadLimits))(new ReadLimits(execution))
  private var rescale: Option[(Rescale, Long)] = None // and when it was ordered
  private var retried: Batch = _ // the batch that was last given another try
  private var hasMoved = false // and has committed no micro-batch since
  private var isToEnd = false
  private var failure: Option[Throwable] = None // which ends the query, or is tried again

  /** Lets the first micro-batch come when the policy says so. */
  def start(): Unit = {
    refusal.foreach(throw _)
    first match {
      case Some(hold: HoldQuery) =>
        query.showIdle(hold.message) // Spark has said something else since
        begin(query.answer(untilHeld = false))
      case answer => begin(answer)
    }
  }

  private def begin(answer: Option[QueryOrder]): Unit = answer match {
    case Some(end: FailQuery) => throw new IllegalStateException(end.message.getOrElse(Refused))
    case None if execution.sparkSession.sparkContext.isStopped =>
      StreamExecutionAccess.terminate(execution)
      throw new InterruptedException // the application ends, and so does a query that has not begun
    case other => goOn(other)
  }

  /** Runs one micro-batch, as often as it takes. */
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
          }
          goesOn
        case Left(e) =>
          retry(e, inRun.offsets(next), again = current eq retried)
          retried = next
          run(batch)
      }
    }
  }

  /** Waits for the next trigger, and carries out what is ordered meanwhile. */
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
   * Waits as the restart strategy says and lets the failed micro-batch come next, or ends the query.
   *
   * @param offsets what it was to read up to, empty where it is not the batch that has failed
   * @param again whether it has failed before
   */
  @tailrec
  private def retry(e: Throwable, offsets: String, again: Boolean): Unit = {
    rescale = None // what the policy hears next says so
    query.showIdle("A micro-batch has failed")
    query.askAboutFailure(FailureFacts(e, offsets)) match {
      case None => throw e
      case Some(end: FailQuery) =>
        query.keepStore()
        throw end.message.fold(e)(new IllegalStateException(_, e))
      case answer =>
        // Spark tells of the exception that ends a query, and has not met this one.
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
    val partitions = answer.collect { case start: StartQuery => start.partitions }.flatten
    val problem = partitions.filter(_ != query.partitions).flatMap(move)
    query.started(answer, millisSince(from), problem)
  }

  /** Carries out what is ordered, after waiting for it for as long as `waitMs`. */
  private def carryOut(waitMs: Long): Unit = {
    query.endIfTold()
    query.nextOrder(waitMs).foreach(take)
    Iterator.continually(query.nextOrder(0L)).takeWhile(_.nonEmpty).flatten.foreach(take)
    for ((order, since) <- rescale if !isToEnd && canMoveTo(order.partitions, millisSince(since))) {
      rescale = None
      val from = System.nanoTime()
      val problem = if (order.partitions == query.partitions) None else move(order.partitions)
      problem.fold(query.done(order, millisSince(from)))(query.failed(order, _))
      query.showIdle("Waiting for next trigger")
    }
  }

  /** A micro-batch that has been started has to run before the state is moved, and one between two moves. */
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

  /** Gives the query another count, a stateful one with its state. Returns why not, if it has not got it. */
  private def move(partitions: Int): Option[String] = {
    query.showIdle("Rescaling")
    var isBegun = false
    try {
      inRun.look()
      isBegun = true
      hasMoved = inRun.repartition(partitions, next)
      None
    } catch {
      case NonFatal(_) if query.isStopped => throw new InterruptedException // the next start ends what was begun
      case Harmless(e) =>
        logWarning(s"spark-elastic: query ${query.called}: not moved to $partitions partitions", e)
        if (isBegun) {
          failure =
            bringBack(System.nanoTime(), patienceMs(dueAt - System.currentTimeMillis(), intervalMs), FirstPauseMs)
          hasMoved = query.partitions == partitions // it could be ended after all
        }
        Option.when(query.partitions != partitions)(String.valueOf(e.getMessage))
    }
  }

  /** What lies between two triggers; 0 where they come one after another. */
  private def intervalMs: Long = execution.trigger match {
    case ProcessingTimeTrigger(ms) => ms
    case _ => 0L
  }

  /** What we have begun, we end or take back, and try it for so long. Returns what was wrong to the last. */
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

  /** Lets the micro-batches of a query come by way of one. Called on its stream thread, before the first. */
  def put(
      execution: MicroBatchExecution,
      query: QueryRun,
      control: QueryControl,
      first: Option[QueryOrder],
      refusal: Option[Throwable]): Unit =
    Triggers.put(execution, new Boundary(execution, query, control, first, refusal))

  private val PollMs = 1000L
  private val WarmUpPollMs = 50L
  private val FirstPauseMs = 500L
  private val LastPauseMs = 30000L

  private val LeastPatienceMs = 600000L

  /**
   * How long a checkpoint is tried to be brought back; after that its exception is the query's. Plain Spark would meet it
   * with the next trigger, or with a later one if that finds nothing to read: so until the one after it has come.
   */
  def patienceMs(untilTriggerMs: Long, intervalMs: Long): Long = {
    val untilSecond = math.max(0L, untilTriggerMs) + intervalMs
    if (untilSecond < 0) Long.MaxValue else math.max(LeastPatienceMs, untilSecond)
  }

  private val Refused = "refused by the scheduler"
}
