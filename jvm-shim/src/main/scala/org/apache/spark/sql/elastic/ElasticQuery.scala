package org.apache.spark.sql.elastic

import java.util.UUID
import java.util.concurrent.{CountDownLatch, LinkedBlockingQueue, TimeUnit}
import java.util.concurrent.atomic.AtomicBoolean

import scala.collection.mutable
import scala.concurrent.{Await, ExecutionException}
import scala.concurrent.duration.Duration

import org.apache.spark.SparkThrowable
import org.apache.spark.elastic.{ActionDone, ActionFailed, ExecutorFacts, Harmless, QueryFacts, QueryFailed}
import org.apache.spark.elastic.{QueryIdle, QueryStarted, QueryStopped, QuerySubmitted}
import org.apache.spark.elastic.{QueryTerminated, QueryView, SavepointTaken, SourceBounds}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.streaming.runtime.{StreamExecution, StreamingQueryWrapper, TERMINATED}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming._
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.util.Utils

/**
 * What `start()` returns: a query that stays while the runs beneath it come and go. To whoever looks at it, the
 * application, its listeners, Spark's UI and event log, it is one run with one run id, the first one's; a restart shows
 * as nothing but a pause. What the handle does not answer itself goes to the present run.
 *
 * Its fields are volatile and changed under `lock`, which is never held while an event is offered: a snapshot reads them
 * under the event stream's lock.
 */
private[elastic] final class ElasticQuery(
    manager: ElasticQueryManager,
    control: QueryControl,
    session: SparkSession,
    location: Option[CheckpointLocation],
    val stateful: Boolean,
    context: ThreadContext,
    launch: Option[String] => Any)
    extends StreamingQueryWrapper(null)
    with Logging {
  import ElasticQuery._
  import FailureFacts.notStartedAgain

  private val lock = new Object
  @volatile private var phase: Phase = Launching
  @volatile private var execution: StreamExecution = _
  @volatile private var former: Option[StreamExecution] = None // the run before, until this one has run a batch
  @volatile private var firstRun: UUID = _
  @volatile private var facts: Option[QueryFacts] = None
  @volatile private var partitions: Option[Int] = None
  @volatile private var sourceBounds = Seq.empty[SourceBounds] // for this run and the next ones
  @volatile private var failure: Option[StreamingQueryException] = None
  @volatile private var failed: Option[StreamingQueryException] = None // the last run, and nobody has decided yet
  @volatile private var pausedFor = ""
  @volatile private var atGateNow: Option[Launch] = None
  @volatile private var endedAt = 0L
  @volatile private var backingOff = false
  @volatile private var stopAsked = false
  @volatile private var forced = false // the present run was interrupted, and may fail for that
  @volatile private var asking = false
  @volatile private var refused = false

  private val answers = new LinkedBlockingQueue[StartPlan]
  private val earlier = mutable.ArrayDeque.empty[StreamingQueryProgress]
  private var isKept = true // what the present run has reported is in `earlier`
  private val closing = new AtomicBoolean // a failed run's own thread and who ends the query may come at once
  private val over = new CountDownLatch(1)

  // ---- what the application sees

  override def streamingQuery: StreamExecution = execution
  override def sparkSession: SparkSession = session
  override def runId: UUID = firstRun
  override def isActive: Boolean = phase != Terminated
  override def exception: Option[StreamingQueryException] = failure

  override def status: StreamingQueryStatus =
    if (phase == Running || phase == Stopping || phase == Terminated) execution.status
    else new StreamingQueryStatus(pausedFor, isDataAvailable = false, isTriggerActive = false)

  override def recentProgress: Array[StreamingQueryProgress] = lock.synchronized {
    val own =
      if (isKept) Array.empty[StreamingQueryProgress] else execution.recentProgress.map(OneRun.progress(firstRun, _))
    (earlier.toArray ++ own).takeRight(session.sessionState.conf.streamingProgressRetention)
  }

  override def lastProgress: StreamingQueryProgress = recentProgress.lastOption.orNull

  override def awaitTermination(): Unit = {
    refuseStreamThread()
    over.await()
    failure.foreach(e => throw e)
  }

  override def awaitTermination(timeoutMs: Long): Boolean = {
    refuseStreamThread()
    require(timeoutMs > 0, "Timeout has to be positive")
    over.await(timeoutMs, TimeUnit.MILLISECONDS)
    failure.foreach(e => throw e)
    !isActive
  }

  /** What is going on: until a new run has planned a batch, what the one before has planned. */
  override def explainInternal(extended: Boolean): String =
    former.filter(_ => execution.lastExecution == null).getOrElse(execution).explainInternal(extended)

  // As Spark's, on standard output.
  override def explain(extended: Boolean): Unit = println(explainInternal(extended))
  override def explain(): Unit = explain(extended = false)

  /** As Spark's, and goes on with the next run where a restart comes in between. */
  override def processAllAvailable(): Unit = {
    refuseStreamThread()
    var done = false
    while (!done) {
      failure.foreach(e => throw e)
      val run = execution
      var failing = false // the query's failure only if it is not started again
      if (phase == Running || phase == Stopping) {
        try run.processAllAvailable()
        catch { case _: StreamingQueryException => failing = true }
      }
      done = lock.synchronized {
        if (phase == Terminated) true
        else if (phase == Running && (run eq execution) && run.isActive && !failing) true
        else {
          lock.wait(100)
          false
        }
      }
    }
    failure.foreach(e => throw e)
  }

  override def stop(): Unit = {
    val between = lock.synchronized {
      stopAsked = true
      phase == Stopped || phase == Failed
    }
    if (between) finish(None, Stopped, Failed)
    else if (phase != Terminated && phase != Launching) execution.stop()
    // A run that is being brought up, maybe from this moment on, meets `stopAsked` at its gate.
    if (!over.await(stopTimeoutMs, TimeUnit.MILLISECONDS) && phase == Launching) {
      throw new java.util.concurrent.TimeoutException(s"Query $id did not stop within $stopTimeoutMs milliseconds")
    }
  }

  private def stopTimeoutMs: Long = {
    val set = session.sessionState.conf.getConf(SQLConf.STREAMING_STOP_TIMEOUT)
    if (set > 0) set else Long.MaxValue
  }

  override def toString: String = s"Streaming Query ${Option(name).getOrElse("")} [id = $id, runId = $runId] [$phase]"

  /** In a task's closure it becomes what Spark's own handle becomes: one that says that executors cannot use it. */
  private def writeReplace(): AnyRef = new StreamingQueryWrapper(null)

  private def refuseStreamThread(): Unit =
    if (execution.queryExecutionThread eq Thread.currentThread) {
      throw new IllegalStateException("Cannot wait for a query state from the same thread that is running the query")
    }

  // ---- bringing up a run

  /**
   * Starts the first run; returns when it has passed its gate or is held there.
   *
   * @param undo what to do where it comes to no run
   */
  def startFirst(undo: () => Unit): Unit = {
    val attempt = new Launch(this, plan = None)
    bringUp(attempt, checkpoint = None) { e =>
      try undo()
      finally {
        over.countDown()
        attempt.released.tryFailure(e)
      }
    }
    try Await.result(attempt.released.future, Duration.Inf)
    catch {
      case e: ExecutionException if e.getCause.isInstanceOf[Error] => throw e.getCause // a promise wraps those
      case e: InterruptedException =>
        // Nobody gets the handle, so nobody could stop what is on its way.
        context.start("elastic-cancel")(stop())
        throw e
    }
  }

  private def startNext(plan: StartPlan): Unit = {
    val attempt = new Launch(this, Some(plan))
    bringUp(attempt, Some(execution.resolvedCheckpointRoot)) { e =>
      logError(s"spark-elastic: query $id could not be started again", e)
      plan.action.foreach(id => control.events.offer(ActionFailed(id, String.valueOf(e.getMessage))))
      val cause = notStartedAgain(this, e)
      lock.synchronized {
        if (phase == Launching) {
          failed = Some(cause)
          backingOff = false
          endedAt = System.nanoTime()
          phase = Failed
        }
      }
      if (stopAsked) finish(None)
      else if (asksAboutFailures) tellFailure(cause)
      else finish(Some(cause))
    }
  }

  private def bringUp(attempt: Launch, checkpoint: Option[String])(failed: Throwable => Unit): Unit =
    context.start("elastic-launch") {
      Launch.enter(attempt)
      try {
        launch(checkpoint)
        attempt.released.trySuccess(())
      } catch { case e: Throwable => failed(e) }
    }

  /**
   * Called by the stream thread of a new run, before it has read anything. Returns when the run may go on.
   *
   * @param announce tells the application's listeners that the query has started
   */
  def atGate(attempt: Launch, run: StreamExecution, announce: () => Unit): Unit = {
    attempt.execution = Some(run)
    context.showCallSite() // Spark takes it from the thread that has brought the run up
    val first = firstRun == null
    if (first) control.admit(run.id, this).foreach { refusal =>
      attempt.released.tryFailure(refusal)
      giveUp(run)
    }
    val wanted = lock.synchronized {
      val wanted = phase != Terminated // stopped while this run was being brought up
      if (wanted) {
        former = Option(execution)
        execution = run
        forced = false
        isKept = false
        if (first) firstRun = run.runId
        pausedFor = "Starting"
        atGateNow = Some(attempt)
        phase = Held
      }
      wanted
    }
    if (!wanted) giveUp(run)
    if (first) {
      manager.add(this)
      announce()
    }
    if (stopAsked) giveUp(run)
    passGate(attempt, run)
    atGateNow = None
    attempt.released.trySuccess(())
  }

  /** Lets the stream thread end as if it had been stopped. */
  private def giveUp(run: StreamExecution): Nothing = {
    StreamExecutionAccess.state(run).set(TERMINATED)
    throw new InterruptedException
  }

  private def passGate(attempt: Launch, run: StreamExecution): Unit = {
    val from = System.nanoTime()
    var plan = attempt.plan
    Gate.restore(run) // who wants to go on from a savepoint does not want to begin without it
    try {
      former.foreach(before => RunSession.handOver(before.sparkSessionForStream, run.sparkSessionForStream))
      val gate = new Gate(run, stateful)
      gate.prepare()
      if (plan.isEmpty) {
        facts = Some(gate.facts())
        plan = ask(attempt)
      }
      val (count, problem) = gate.pass(plan.getOrElse(AsItIs))
      former.foreach(gate.goOnFrom)
      facts = facts.map(gate.after(plan.getOrElse(AsItIs), _))
      partitions = Some(count)
      answer(plan, problem, from)
    } catch {
      // Nothing of ours may keep a query from running as Spark would run it.
      case Harmless(e) =>
        logError(s"spark-elastic: query ${run.id} starts as in plain Spark", e)
        answer(plan, Some(String.valueOf(e.getMessage)), from)
    }
    plan.flatMap(_.refusal).foreach { message =>
      refused = true
      throw new IllegalStateException(message) // in Spark's eyes the run fails as it starts
    }
    lock.synchronized {
      phase = Running
      lock.notifyAll()
    }
    control.events.offer(QueryStarted(id.toString, firstRun.toString, partitions.getOrElse(0)))
  }

  private def answer(plan: Option[StartPlan], problem: Option[String], from: Long): Unit =
    plan.flatMap(_.action).foreach { action =>
      control.events.offer(problem match {
        case None => ActionDone(action, (System.nanoTime() - from) / 1000000L)
        case Some(error) => ActionFailed(action, error)
      })
    }

  /** Waits for the policy's answer, with an end unless the policy has asked to be waited for. */
  private def ask(attempt: Launch): Option[StartPlan] = {
    answers.clear()
    asking = true
    control.events.offer(QuerySubmitted(facts.get, firstRun.toString))
    val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(control.startWaitMs)
    var plan: Option[StartPlan] = None
    def held = attempt.released.isCompleted
    while (plan.isEmpty && control.isOn && (held || System.nanoTime() < deadline)) {
      plan = Option(answers.poll(100, TimeUnit.MILLISECONDS))
    }
    asking = false
    if (plan.isEmpty) {
      logWarning(s"spark-elastic: no answer from the policy, query $id starts as in plain Spark")
    }
    plan
  }

  // ---- orders

  def start(plan: StartPlan): Unit = lock.synchronized {
    phase match {
      case Held => answers.put(plan)
      case Stopped | Failed =>
        phase = Launching
        failed = None
        startNext(plan)
      case other => throw new IllegalStateException(s"query $id is ${other.toString.toLowerCase}, it cannot be started")
    }
  }

  def hold(message: String): Unit = {
    pausedFor = message
    backingOff = true
    atGateNow.foreach(_.released.trySuccess(()))
  }

  /** Whether there is, was and will be a run. */
  def isUnderWay: Boolean = phase == Running || phase == Stopping || phase == Stopped

  /** Runs `body` in a thread of its own, with the session of the present run, and its checkpoint if it can be rescaled. */
  def beside(thread: String)(body: (SparkSession, Option[String]) => Unit): Unit = {
    val run = execution
    // Not the application's session, which does not know the format of the checkpoint.
    val rescalable = stateful && facts.exists(known => known.provider == "rocksdb" && known.checkpointFormat == 2)
    context.start(thread)(body(run.sparkSessionForStream, Option.when(rescalable)(run.resolvedCheckpointRoot)))
  }

  /** Ends the present run at a micro-batch boundary, in a thread of its own; what comes next is prepared before. */
  def stopForRestart(action: String, graceMs: Long): Unit = {
    lock.synchronized {
      if (phase != Running) throw new IllegalStateException(s"query $id is ${phase.toString.toLowerCase}, not running")
      phase = Stopping
      pausedFor = "Rescaling"
    }
    val run = execution
    context.start("elastic-stop") {
      control.awaitWarmUp()
      val from = System.nanoTime()
      try {
        if (!GracefulStop(run, graceMs, () => stopAsked)) {
          logWarning(s"spark-elastic: query $id had not ended its batch after $graceMs ms and is interrupted")
          forced = true
          run.stop()
        }
        run.queryExecutionThread.join()
        if (phase == Stopped) {
          control.events.offer(QueryStopped(id.toString, firstRun.toString, action))
          control.events.offer(ActionDone(action, (System.nanoTime() - from) / 1000000L))
        }
      } catch {
        case Harmless(e) =>
          // Marked as ended, the run will end some time, and then be followed by another one.
          lock.synchronized { if (phase == Stopping && run.isActive) phase = Running }
          control.events.offer(ActionFailed(action, String.valueOf(e.getMessage)))
      }
    }
  }

  /** Ends a query whose run has failed, or that waits for its start; without a message with the run's exception. */
  def fail(message: Option[String]): Unit = {
    lazy val text = message.getOrElse("refused by the scheduler")
    phase match {
      case Failed =>
        finish(failed.map(e => message.fold(e)(m => notStartedAgain(this, new IllegalStateException(m, e)))), Failed)
      case Held =>
        answers.put(StartPlan(None, repartition = false, rescalable = false, action = None, refusal = Some(text)))
      case Stopped => finish(Some(notStartedAgain(this, new IllegalStateException(text))))
      case other => throw new IllegalStateException(s"query $id is ${other.toString.toLowerCase}, it has not failed")
    }
  }

  /** Stops the query for good, as the application would. */
  def cancel(action: String): Unit = carryOut(action, "elastic-cancel")(stop())

  /** Copies what is committed while the query goes on, or waits for what comes after the copy. */
  def takeSavepoint(action: String, target: String): Unit = phase match {
    case Running | Stopping | Stopped | Failed =>
      carryOut(action, "elastic-savepoint") {
        val taken = Savepoint.take(session, execution.resolvedCheckpointRoot, target)
        control.events.offer(
          SavepointTaken(id.toString, firstRun.toString, action, taken.path, taken.batch, taken.bytes))
      }
    case other => throw new IllegalStateException(s"query $id is ${other.toString.toLowerCase}, nothing can be copied")
  }

  private def carryOut(action: String, thread: String)(body: => Unit): Unit = context.start(thread) {
    val from = System.nanoTime()
    try {
      body
      control.events.offer(ActionDone(action, (System.nanoTime() - from) / 1000000L))
    } catch { case Harmless(e) => control.events.offer(ActionFailed(action, String.valueOf(e.getMessage))) }
  }

  def setPartitions(count: Int): Unit = {
    if (phase != Running) throw new IllegalStateException(s"query $id is ${phase.toString.toLowerCase}, not running")
    if (stateful)
      throw new IllegalStateException(s"query $id keeps state: its partition count changes with a restart only")
    execution.sparkSessionForStream.conf.set(SQLConf.SHUFFLE_PARTITIONS.key, count.toString)
    partitions = Some(count)
  }

  /** A help, no more: what cannot be told to Spark costs some waiting. */
  def leaveLost(left: Seq[ExecutorFacts]): Unit =
    if (stateful && (phase == Running || phase == Stopping)) {
      try StateLocations.leaveLost(execution, left)
      catch { case Harmless(e) => logInfo(s"spark-elastic: query $id may wait for executors that are lost: $e") }
    }

  def boundSources(bounds: Seq[SourceBounds]): Unit = sourceBounds = bounds

  def boundsOfSources: Map[SparkDataStream, SourceBounds] =
    if (sourceBounds.isEmpty) Map.empty else StreamSources.of(execution).zip(sourceBounds).toMap

  // ---- the end of a run, and of the query

  /** Called by the stream thread of a run at its end, when Spark regards it as terminated. */
  def runEnded(run: StreamExecution): Unit = if (run eq execution) {
    // What an interrupt of ours has led to is a stop; the batch is run again by the next run.
    val error = run.exception.filterNot(_ => forced && phase == Stopping && !stopAsked)
    val ends = lock.synchronized {
      val first = phase != Terminated
      if (first) {
        val next =
          if (stopAsked || refused || (error.nonEmpty && !asksAboutFailures)) Terminated
          else if (error.nonEmpty) Failed
          else if (phase == Stopping && !session.sparkContext.isStopped) Stopped
          else Terminated
        if (next == Terminated) failure = error else keep(run)
        failed = error
        backingOff = false
        if (error.nonEmpty) pausedFor = "The last run has failed"
        endedAt = System.nanoTime()
        phase = next // the last of all: some look at it without the lock
      }
      lock.notifyAll()
      first && phase == Terminated
    }
    if (ends) manager.ended(this, failure)
    if (phase == Failed) {
      val thread = Thread.currentThread
      // The next run can begin only when this one's thread is through with its end.
      context.start("elastic-failed") {
        thread.join()
        if (phase == Failed) run.exception.foreach(tellFailure)
      }
    }
  }

  /** Once the context is about to stop, nobody is left to start a run again. */
  private def asksAboutFailures: Boolean = control.asksAboutFailures && !session.sparkContext.isStopped

  private def keep(run: StreamExecution): Unit = {
    earlier ++= run.recentProgress.map(OneRun.progress(firstRun, _))
    earlier.dropInPlace(earlier.size - session.sessionState.conf.streamingProgressRetention)
    isKept = true
  }

  private def tellFailure(e: StreamingQueryException): Unit =
    control.events.offer(QueryFailed(id.toString, firstRun.toString, FailureFacts(e)))

  /** What observers get to see of an event of a run: nothing of restarts, and always the same run id. */
  def rename(event: Event, launch: Launch): Option[Event] =
    if (launch.execution.exists(_ eq execution)) rename(event) else None

  private def rename(event: Event): Option[Event] = event match {
    case e: QueryProgressEvent =>
      former = None
      observe(e.progress)
      Some(OneRun.progress(firstRun, e))
    case e: QueryIdleEvent =>
      control.events.offer(QueryIdle(id.toString, firstRun.toString))
      Some(OneRun.idle(firstRun, e))
    case e: QueryTerminatedEvent if phase == Terminated =>
      close(e.exception, e.errorClassOnException)
      None
    case _: QueryTerminatedEvent => None
    case other => Some(other)
  }

  private def observe(p: StreamingQueryProgress): Unit =
    try
      control.events.offer(ProgressFacts(p, firstRun, partitions.getOrElse(0), StreamSources.read(execution, p)))
    catch { case Harmless(e) => logWarning(s"spark-elastic: the policy misses batch ${p.batchId} of query $id: $e") }

  /** Ends the query without a run to end: between two, or when its stream thread has died. */
  private def finish(cause: Option[StreamingQueryException], only: Phase*): Unit = {
    val mine = lock.synchronized {
      val mine = if (only.isEmpty) phase != Terminated else only.contains(phase)
      if (mine) {
        failure = cause
        phase = Terminated
        lock.notifyAll()
      }
      mine
    }
    if (mine) {
      manager.ended(this, failure)
      val condition = failure.map(_.cause).collect { case t: SparkThrowable => t.getCondition }
      close(failure.map(e => Utils.exceptionString(e.cause)), condition.filter(_ != null))
    }
  }

  /** The last that anybody hears of the query. */
  private def close(error: Option[String], errorClass: Option[String]): Unit = if (closing.compareAndSet(false, true)) {
    try {
      manager.post(new QueryTerminatedEvent(id, firstRun, error, errorClass))
      if (failure.isEmpty || session.sessionState.conf.getConf(SQLConf.FORCE_DELETE_TEMP_CHECKPOINT_LOCATION)) {
        location.foreach(_.deleteIfTemporary(session))
      }
      control.remove(id, this)
      control.events.offer(QueryTerminated(id.toString, firstRun.toString, failure.map(FailureFacts.text), errorClass))
    } finally over.countDown() // whatever has gone wrong, e.g. as the context stops: nobody waits for ever
  }

  /** Called now and then: what must not wait for anybody else to notice it. */
  def check(): Unit = phase match {
    case Stopped if session.sparkContext.isStopped => finish(None, Stopped) // no run can be started any more
    case Failed if !control.isOn || (!backingOff && overdue) => finish(failed, Failed)
    case Stopped if !control.isOn || (!backingOff && overdue) =>
      logWarning(s"spark-elastic: no answer from the policy, query $id goes on as it was")
      try start(AsItIs)
      catch { case _: IllegalStateException => } // the answer came just now
    // Interrupted in mid-batch, the thread can die in Spark's own handling of the interrupt (a stack overflow in a
    // regular expression), and then nobody is told.
    case Running | Stopping | Held if !execution.queryExecutionThread.isAlive =>
      val cause =
        if (stopAsked) None else Some(notStartedAgain(this, new IllegalStateException("its stream thread has died")))
      finish(execution.exception.orElse(cause), Running, Stopping, Held)
    case _ =>
  }

  private def overdue: Boolean = System.nanoTime() - endedAt > control.startWaitMs * 1000000L

  /** How the policy is told of this query when it reads the world anew; without locks, see above. */
  def view: Option[QueryView] =
    facts.filter(_ => phase != Terminated).map { known =>
      val shown = phase match {
        case Held if asking => "held"
        case Stopped => "stopped"
        case Failed => "failed"
        case _ => "running" // or about to be, or about to stop: an event says so when it is
      }
      QueryView(known, firstRun.toString, shown, partitions, failed.filter(_ => shown == "failed").map(FailureFacts(_)))
    }
}

private[elastic] object ElasticQuery {
  sealed private trait Phase
  private case object Launching extends Phase
  private case object Held extends Phase
  private case object Running extends Phase
  private case object Stopping extends Phase
  private case object Stopped extends Phase
  private case object Failed extends Phase
  private case object Terminated extends Phase

  private val AsItIs = StartPlan(None, repartition = false, rescalable = false, action = None)
}
