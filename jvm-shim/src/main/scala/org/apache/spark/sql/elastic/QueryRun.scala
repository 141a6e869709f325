package org.apache.spark.sql.elastic

import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}
import java.util.concurrent.locks.ReentrantLock

import scala.annotation.tailrec
import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.elastic._
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.CPUS_PER_TASK
import org.apache.spark.scheduler.{ExecutorCacheTaskLocation, TaskLocation}
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/**
 * A query as the policy sees it: the events about it, and the orders for it. Orders arrive in the policy's thread.
 * Those for the stream thread wait in the mailbox until it reaches a boundary.
 */
private[elastic] final class QueryRun(val execution: StreamExecution, control: QueryControl) extends Logging {
  import QueryRun._

  val stateful: Boolean = StatefulPlan(execution.analyzedPlan)
  private val (query, run) = (execution.id.toString, execution.runId.toString)
  val called: String = QueryRun.called(execution)
  private val mailbox = new LinkedBlockingQueue[QueryOrder]
  @volatile private var facts: Option[QueryFacts] = None
  @volatile private var runState: RunState = Held
  @volatile private var failure: Option[Failure] = None
  @volatile private var count: Option[Int] = None
  @volatile private var sourceBounds = Seq.empty[SourceBounds]
  @volatile private var rowLimits = Seq.empty[SourceLimit]
  @volatile private var hasBoundary = false
  @volatile private var stages = false // until an order to start says otherwise
  @volatile private var end: Option[String] = None // the reason, once it has to end
  private val copying = new ReentrantLock
  private val keptBounds = new KeptText(execution, "bounds")
  private val keptBatches = new KeptText(execution, "batches")
  private val keptStore = new KeptText(execution, "store") // exists if the plugin's store must not be chosen again
  private var isToldToWait = false // of the stream thread
  private var lastPlanned = -1L // of the stream thread
  lazy val preparation = new Preparation(execution, this)

  /** Return the session that its batches run in. */
  def session: SparkSession = StreamSession.of(execution)

  def asksAboutStages: Boolean = stages

  def partitions: Int = count.getOrElse(session.sessionState.conf.numShufflePartitions)

  // ---- on the stream thread

  /** Called before anything is read. Returns when the query may begin, or has to wait at its first boundary. */
  def begin(): Unit = {
    val start = new QueryStart(execution, stateful)
    val refusal = Try(start.restoreSavepoint()).failed.toOption
    val found = start.prepare(keptStore.read().nonEmpty)
    count = found.map(_.partitions)
    facts = Some(start.facts(found).copy(keptBounds = keptBounds.read(), keptBatches = keptBatches.read()))
    val answer =
      if (control.add(this) && refusal.isEmpty)
        ask(QuerySubmitted(facts.get, run), untilHeld = true, control.startWaitMs)
      else None
    val rescalable = answer.exists {
      case s: StartQuery => s.rescalable; case h: HoldQuery => h.rescalable; case _ => false
    }
    if (rescalable && found.isEmpty) {
      start.makeRescalable()
      facts = facts.map(_.copy(provider = "rocksdb", checkpointFormat = 2))
    }
    execution match {
      case batches: MicroBatchExecution
          if RealTime(batches.trigger).isEmpty && Linkage.has(Part.Boundaries) && RunTrigger.canPut(batches) =>
        if (control.isOn || refusal.nonEmpty) {
          showIdle("Initializing sources") // as Spark, which does it next
          if (Linkage.has(Part.EarlyStart)) StartLatch.open(batches)
          Triggers.put(batches, new Boundary(batches, this, control, answer, refusal))
          hasBoundary = true
        }
      case _ =>
        refusal.foreach(
          logError(s"spark-elastic: query $called: could not be stopped from starting without its savepoint", _))
        started(answer, 0L)
    }
  }

  /** Ask the policy and wait for its answer; None if there is none in time. */
  private def ask(question: Event, untilHeld: Boolean, waitMs: Long): Option[QueryOrder] = {
    isToldToWait = false
    control.events.offer(question)
    answer(untilHeld, waitMs)
  }

  def askAboutFailure(e: Failure): Option[QueryOrder] = {
    failure = Some(e)
    runState = Failed
    lastPlanned = -1L // the batch is planned again
    ask(QueryFailed(query, run, e), untilHeld = false, math.max(control.startWaitMs, FailureWaitMs))
  }

  /** Return the answer to a question. The policy answers at once, or says that it takes longer. */
  def answer(untilHeld: Boolean, waitMs: Long = control.startWaitMs): Option[QueryOrder] = {
    val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMs)
    @tailrec def next(): Option[QueryOrder] =
      if (!control.isOn) None
      else if (!isToldToWait && System.nanoTime() >= deadline) {
        logWarning(s"spark-elastic: query $called: no answer from the policy, continues as plain Spark")
        None
      } else
        mailbox.poll(PollMs, TimeUnit.MILLISECONDS) match {
          case null => next()
          case hold: HoldQuery =>
            isToldToWait = true
            showIdle(hold.message)
            done(hold, 0L)
            if (untilHeld) Some(hold) else next()
          case answer @ (_: StartQuery | _: FailQuery) => Some(answer)
          case savepoint: TakeSavepoint =>
            copyBeside(savepoint.copy(stop = false)) // the answer decides what becomes of the query
            next()
          case other =>
            failed(other, s"query $query waits for an answer")
            next()
        }
    next()
  }

  /** Show in the query's status what it waits for. */
  def showIdle(message: String): Unit = ShownStatus.idle(execution, message)

  /** Return an order for the boundary, or None after `waitMs`. */
  def nextOrder(waitMs: Long): Option[QueryOrder] = Option(mailbox.poll(waitMs, TimeUnit.MILLISECONDS))

  /** End the query if it was ordered to, with the reason. */
  def endIfTold(cause: Option[Throwable] = None): Unit =
    end.foreach(why => throw new IllegalStateException(why, cause.orNull))

  /** Mark the query as running, with the outcome of the order to start, if any. */
  def started(order: Option[QueryOrder], tookMs: Long, problem: Option[String] = None): Unit = {
    runState = Running
    failure = None
    order.foreach(o => problem.fold(done(o, tookMs))(failed(o, _)))
    order.foreach { case start: StartQuery => stages = start.stages; case _ => }
    control.events.offer(QueryStarted(query, run, partitions))
  }

  /**
   * Report what a micro-batch is about to read, once: if it is much, more slots can be on their way before it ends.
   * Plans that read no source are of no batch with rows, or of a query that runs in one.
   */
  def planned(plan: SparkPlan): Unit =
    try {
      val batch = session.sparkContext.getLocalProperty(CurrentExecution.BatchIdKey)
      if (batch != null && batch.toLong > lastPlanned) {
        val scans = plan.collect { case scan @ StreamOf(_) => scan }
        if (scans.nonEmpty) {
          lastPlanned = batch.toLong
          val (rows, behind) = PartitionOffsets.toRead(scans)
          control.events.offer(BatchPlanned(query, run, lastPlanned, rows, behind))
        }
      }
    } catch {
      case Harmless(e) => logDebug(s"spark-elastic: query $called: what a batch reads was not reported", e)
    }

  /** Called when a micro-batch has been committed. */
  def progressed(): Unit =
    try {
      val p = execution.lastProgress
      control.events.offer(ProgressFacts(p, partitions, StreamSources.read(execution, p)))
    } catch {
      case Harmless(e) => logWarning(s"spark-elastic: query $called: a batch was not reported to the policy: $e")
    }

  def use(partitions: Int): Unit = {
    session.conf.set(SQLConf.SHUFFLE_PARTITIONS.key, partitions.toString)
    count = Some(partitions)
  }

  /** Take over what the checkpoint says after a change of its state. */
  def use(found: CheckpointFacts): Unit = {
    use(found.partitions)
    facts = facts.map { before =>
      val now = QueryStart.facts(before, found)
      if (now == before) before else now.copy(originalSince = new StateMover(execution).originalSince)
    }
  }

  /** Whether its checkpoint exists and has another form than the plugin gives to new ones. */
  def isToBeConverted: Boolean =
    facts.exists(f => f.checkpointPartitions.nonEmpty && (f.provider != "rocksdb" || f.checkpointFormat < 2))

  // ---- on the policy's thread

  /** Carry out an order, or leave it to the stream thread. */
  def order(order: QueryOrder): Unit = order match {
    case _: Rescale | _: PrepareMove if runState != Running =>
      throw new IllegalStateException(s"query $query does not run")
    case _: Rescale | _: PrepareMove if !hasBoundary =>
      throw new IllegalStateException(s"query $query is left to plain Spark")
    case r: Rescale if !stateful =>
      use(r.partitions)
      done(r, 0L)
    case p: PrepareMove => preparation.take(p) // a micro-batch may run for long
    case b: BoundSources =>
      Linkage.need(Part.SourceBounds)
      sourceBounds = b.sources
      done(b, 0L)
    case l: LimitRows =>
      Linkage.need(Part.ReadLimits)
      rowLimits = l.sources
      done(l, 0L)
    case c: CancelQuery => beside(c)(execution.stop())
    case f: FailQuery if runState == Running && hasBoundary && f.message.nonEmpty =>
      end = f.message
      beside(f)(leaveBatch())
    case s: TakeSavepoint if !hasBoundary => copyBeside(s)
    case _: StartQuery | _: HoldQuery | _: FailQuery if runState == Running =>
      throw new IllegalStateException(s"query $query runs, it waits for no answer")
    case other => mailbox.put(other)
  }

  /** A micro-batch may have several jobs, so cancel until none of them is waited for. */
  private def leaveBatch(): Unit = while (execution.isActive) {
    execution.sparkSession.sparkContext.cancelJobGroup(run)
    Thread.sleep(PollMs)
  }

  /** Copy what is committed, while the query keeps running. */
  def copyBeside(order: TakeSavepoint): Unit = beside(order, Savepoint.why(called)) {
    copy(order)
    if (order.stop) execution.stop()
  }

  /** Take a savepoint, after any other one of this query has ended. */
  def copy(order: TakeSavepoint): Unit = {
    Linkage.need(Part.Savepoints)
    copying.lockInterruptibly()
    try {
      val root = execution.resolvedCheckpointRoot
      val taken = Savepoint.take(execution.sparkSession, root, order.target, order.within, query, order.format)
      control.events.offer(SavepointTaken(query, run, order.id, taken.path, taken.batch, taken.bytes))
      if (order.keep > 0) Savepoint.removeOlder(execution.sparkSession, root, taken, query, order.keep)
    } finally copying.unlock()
  }

  /** Whether the policy is asked about a failure that is not retried: the next start may take another store. */
  def isInNewStore: Boolean =
    control.isOn && rescalable.nonEmpty && facts.exists(f => !f.providerChosen && f.checkpointPartitions.isEmpty) &&
      Try(execution.commitLog.getLatestBatchId().isEmpty).getOrElse(false)

  /** Keep the note about the store, before the application is notified that the query has failed. */
  def keepStore(): Unit =
    if (keptStore.wanted.nonEmpty && keptStore.kept.isEmpty)
      try keptStore.write()
      catch { case Harmless(e) => logWarning(s"spark-elastic: query $query: could not note its state store", e) }

  def keep(order: KeepText): Unit = {
    val kept = Map("bounds" -> keptBounds, "batches" -> keptBatches, "store" -> keptStore)(order.name)
    kept.wanted = order.text
    beside(order)(kept.write())
  }

  def dropOriginal(order: DropOriginal): Unit = beside(order)(new StateMover(execution).dropOriginal())

  /** Run an order on its own thread. It has an outcome even if no thread can be created. */
  private def beside(order: Action, why: Throwable => String = e => String.valueOf(e.getMessage))(body: => Unit): Unit =
    try Daemon.start("elastic-order")(control.events.outcome(order, why)(body))
    catch { case e: Throwable => failed(order, e.toString) }

  def done(order: Action, tookMs: Long): Unit = report(order.done(tookMs))
  def report(outcome: ActionDone): Unit = control.events.offer(outcome)
  def failed(order: Action, error: String): Unit = control.events.offer(order.failed(error))

  // ---- for others

  def isRunning: Boolean = runState == Running

  /** Whether a change ordered this long ago need not wait for the warm-up of new executors. */
  def isWarm(orderedMs: Long): Boolean = control.isWarm(orderedMs)

  def isStopped: Boolean = StreamExecutionAccess.isTerminated(execution)

  /** Return its checkpoint, if its state can be re-partitioned. */
  def rescalable: Option[String] =
    Option.when(stateful && facts.exists(_.provider == "rocksdb"))(execution.resolvedCheckpointRoot)

  def boundsOfSources: Map[SparkDataStream, SourceBounds] =
    if (sourceBounds.isEmpty) Map.empty else StreamSources.of(execution).zip(sourceBounds).toMap

  /** Return the row limits of the next micro-batch's sources; none without a policy. */
  def limitsOfSources: Seq[SourceLimit] = if (control.isOn) rowLimits else Nil
  def limitNothing(): Unit = rowLimits = Nil

  /** Best effort: a failure to report new locations only costs some waiting. */
  def leaveLost(left: Seq[ExecutorInfo]): Unit =
    if (stateful && runState == Running && Linkage.has(Part.LostState)) {
      try StateLocations.leaveLost(execution, left)
      catch { case Harmless(e) => logInfo(s"spark-elastic: query $called: may wait for lost executors: $e") }
    }

  /** Return the end of the query, as the policy is notified of it. */
  def terminated: QueryTerminated = {
    val exception = execution.exception
    QueryTerminated(query, run, exception.map(FailureFacts.text), exception.flatMap(FailureFacts.condition))
  }

  /** Return the query as a snapshot has it, without locks. */
  def view: Option[QueryInfo] =
    facts
      .map(_.copy(keptBounds = keptBounds.kept, keptBatches = keptBatches.kept))
      .map(QueryInfo(_, run, runState.name, Some(partitions).filter(_ => runState != Held), failure))
}

private[elastic] object QueryRun {

  /** Return the name of a query in the log. */
  def called(execution: StreamExecution): String = Option(execution.name).getOrElse(execution.id.toString)

  private val PollMs = 100L
  // Without an answer, a failed query ends. In this time a policy process that hangs or fails is replaced.
  private val FailureWaitMs = 120000L

  sealed private abstract class RunState(val name: String)
  private case object Held extends RunState("held")
  private case object Running extends RunState("running")
  private case object Failed extends RunState("failed")
}

/**
 * Spark prefers to run the tasks of a stateful operator where their stores are open, also if that executor is lost.
 * So the next micro-batch would wait for it (`spark.locality.wait`, 3 s). To prevent it, such stores are reported on
 * the executors that are left, in turn: they are opened there next.
 *
 * Tasks that were already waiting when the executor was lost wait on: Spark asked for their locations before that.
 */
private[elastic] object StateLocations {
  def leaveLost(execution: StreamExecution, left: Seq[ExecutorInfo]): Unit = {
    val coordinator = execution.sparkSession.streams.stateStoreCoordinator
    val known = left.map(_.executor).toSet
    val turns = Iterator.continually(left).flatten
    for (stores <- storesByTask(execution) if left.nonEmpty) {
      val lost = stores.filter { store =>
        coordinator.getLocation(store).map(TaskLocation(_)).exists {
          case at: ExecutorCacheTaskLocation => !known(at.executorId)
          case _ => false
        }
      }
      // A task reads all stores of its partition.
      if (lost.nonEmpty) {
        val to = turns.next()
        lost.foreach(coordinator.reportActiveInstance(_, to.host, to.executor, Nil))
      }
    }
  }

  /**
   * Return the locations where a copy of the state in this many tasks is least in the way: executors without state of
   * this query. If all have some, one whose slots the copy takes leaves its state to the others. Else tasks that prefer
   * that executor would wait (`spark.locality.wait`) before they open their stores elsewhere.
   */
  def forCopy(execution: StreamExecution, tasks: Int): Seq[String] = {
    val sc = execution.sparkSession.sparkContext
    val coordinator = execution.sparkSession.streams.stateStoreCoordinator
    val all = sc.statusStore.executorList(activeOnly = true).filter(_.id != SparkContext.DRIVER_IDENTIFIER).map { e =>
      ExecutorInfo(e.id, Utils.parseHostPort(e.hostPort)._1, e.totalCores)
    }
    def place(e: ExecutorInfo) = ExecutorCacheTaskLocation(e.host, e.executor).toString
    val used = storesByTask(execution).flatMap(_.headOption).flatMap(coordinator.getLocation(_)).toSet
    val free = all.filterNot(e => used(place(e)))
    val taken = all.find(_.cores <= tasks * sc.conf.get(CPUS_PER_TASK))
    if (free.isEmpty && all.size > 1) taken.foreach(e => leaveLost(execution, all.filterNot(_ == e)))
    (if (free.nonEmpty) free else taken.toSeq).map(place)
  }

  private def storesByTask(execution: StreamExecution): Seq[Seq[StateStoreProviderId]] = for {
    batch <- Option(execution.lastExecution).toSeq
    operator <- batch.executedPlan.collect { case operator: StateStoreWriter => operator }
    info <- operator.stateInfo.toSeq
    partition <- 0 until info.numPartitions
  } yield StoreNames(operator).map(StateStoreProviderId(info, partition, _))
}
