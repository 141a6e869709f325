package org.apache.spark.elastic

import java.util.{Collections, Map => JMap}
import java.util.concurrent.{Executors, RejectedExecutionException, ThreadFactory, TimeUnit}
import java.util.concurrent.atomic.AtomicBoolean

import scala.collection.mutable

import com.codahale.metrics.MetricRegistry
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, PluginContext}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.elastic.{ElasticExtensions, QueryControl}

/** Wires the parts together, passes actions to the part that carries them out, and shuts everything down. */
private[spark] final class ElasticDriver extends DriverPlugin with Logging {
  private var parts: Option[Parts] = None
  private var readsCheckpoints: Option[SparkContext] = None // set if nothing else is on

  override def init(sc: SparkContext, context: PluginContext): JMap[String, String] = {
    try {
      if (Linkage.problem.nonEmpty)
        logError(s"spark-elastic: off, the application continues as plain Spark: ${Linkage.problem.get}")
      else if (Shim.isOff(sc.conf))
        logInfo("spark-elastic: off (schedulerMode); checkpoints are still read in their own format")
      else {
        val started = new Parts(sc)
        parts = Some(started)
        started.start()
      }
    } catch {
      case Harmless(e) =>
        logError("spark-elastic: could not start, the application continues as plain Spark", e)
        try shutdown()
        catch { case Harmless(e) => logWarning("spark-elastic: could not shut down completely", e) }
    }
    if (parts.isEmpty) readCheckpoints(sc)
    Collections.emptyMap[String, String]()
  }

  /** Let Spark read the checkpoints that the plugin started, in a format that it must know whatever else is on. */
  private def readCheckpoints(sc: SparkContext): Unit =
    try {
      readsCheckpoints = Some(sc)
      ElasticExtensions.enable(sc, QueryControl.withoutPolicy, StageAdvice.none)
    } catch { case Harmless(e) => logWarning("spark-elastic: reading checkpoints as plain Spark does", e) }

  /** Called once the application has an id, which the policy's snapshot needs. */
  override def registerMetrics(appId: String, context: PluginContext): Unit =
    try parts.foreach(_.introduce(appId, context.metricRegistry))
    catch { case Harmless(e) => logWarning("spark-elastic: no spark-elastic metrics in Spark's metrics system", e) }

  override def shutdown(): Unit = {
    val started = parts
    parts = None
    started.foreach(_.stop())
    readsCheckpoints.foreach(ElasticExtensions.disable)
    readsCheckpoints = None
  }

  private final class Parts(sc: SparkContext) {
    private val events = new EventStream
    private val first = new FirstTasks
    private val queries = new QueryControl(events, first, Shim.startWaitMs(sc.conf))
    private val listener = new ClusterListener(sc, events, () => afterLoss(), queries.joined, first)
    private val batch = new BatchListener
    private val executors = new ExecutorControl(sc)
    private val audit = new ExecutorAudit(sc, listener)
    private val requests = new Requests
    private val advice = new StageAdvice(requests)
    private val policyMetrics = new PolicyMetrics
    private val gateway =
      new PolicyGateway(events, requests, policyMetrics, Shim.version, act, what => policy.complain(what))
    private lazy val policy: PolicyProcess =
      new PolicyProcess(Shim.python(sc.conf), gateway, Shim.version, Shim.retryMs(sc.conf), turnOff, () => turnOn())
    private val ticker = Executors.newSingleThreadScheduledExecutor(threads("elastic-tick"))
    private var ticks = 0L
    private val failing = mutable.Set.empty[String] // work of the ticker
    private val hasApi =
      !Shim.setting(sc.conf, "spark.elastic.rest.enabled").exists(_.trim.equalsIgnoreCase("false"))
    private val clusterCalls = Executors.newSingleThreadExecutor(threads("elastic-executors"))
    private val lossesSeen = new AtomicBoolean(true)
    private val isSaid = new AtomicBoolean // whether the startup line was logged

    def start(): Unit = {
      sc.addSparkListener(listener)
      sc.addSparkListener(batch)
      ElasticExtensions.enable(sc, queries, advice)
      gateway.start()
      attach()
      policy.start()
      val again: Runnable = () =>
        try tick()
        catch { case _: Throwable => } // even logging failed; the next tick tries again
      ticker.scheduleWithFixedDelay(again, TickMs, TickMs, TimeUnit.MILLISECONDS)
    }

    private def tick(): Unit = {
      regularly("the look for decommissioned executors")(listener.checkDecommissioning())
      regularly("the look at queries")(queries.tick())
      ticks += 1
      if (ticks % TicksPerSecond == 0)
        regularly("the count of batch stages")(batch.changed(listener.executors).foreach(events.offer(_)))
      if (ticks % TicksPerLook == 0) {
        if (Linkage.has(Part.Audit)) regularly("the audit of executors")(audit.look())
        regularly("the audit of stages")(batch.audit(sc.statusTracker.getActiveStageIds().toSet))
        if (Linkage.has(Part.Executors))
          regularly("the look at what executors hold")(executors.changedUsage(batch.written).foreach(events.offer(_)))
      }
    }

    /** Run a part of the tick in isolation from the others. A failure is logged once, until the part works again. */
    private def regularly(what: String)(body: => Unit): Unit =
      try {
        body
        failing -= what
      } catch {
        case e: Throwable =>
          if (!failing(what) && !sc.isStopped)
            logWarning(s"spark-elastic: $what failed, retrying: $e")
          failing += what
      }

    /** Handle several simultaneous losses together. */
    private def afterLoss(): Unit = if (lossesSeen.compareAndSet(true, false)) {
      val look: Runnable = () => {
        lossesSeen.set(true)
        regularly("the leaving of lost executors")(queries.leaveLost(listener.usable))
      }
      try ticker.execute(look)
      catch { case _: RejectedExecutionException => } // the application is ending
    }

    /** Attach the REST API and the page that reads it to Spark's UI, which stops on its own. */
    private def attach(): Unit = for (ui <- sc.ui if hasApi && Linkage.has(Part.Api)) {
      ElasticServlet.attach(ui, requests)
      if (Linkage.has(Part.Tab)) new ElasticTab(ui)
    }

    /** Log once that everything is on, and where to look. */
    private def sayOn(mode: String): Unit = if (isSaid.compareAndSet(false, true)) {
      val where = sc.ui match {
        case _ if !hasApi => "without a REST API (spark.elastic.rest.enabled is false)"
        case None => "without a REST API, since this application has no UI (spark.ui.enabled is false)"
        case Some(ui) if Linkage.has(Part.Api) && Linkage.has(Part.Tab) => s"its tab is ${ui.webUrl}/elastic/"
        case Some(ui) if Linkage.has(Part.Api) => s"without a tab, its REST API is ${ui.webUrl}/elastic/api/v1"
        case _ => "without a REST API"
      }
      logInfo(s"spark-elastic: version ${Shim.version} on, mode $mode, $where")
    }

    /** Write the contents of the page to the event log, which is closed a little later than the plugins. */
    private def archive(): Unit =
      try if (hasApi && Linkage.has(Part.Archive)) ElasticArchive.post(sc, requests)
      catch {
        case Harmless(e) => logWarning("spark-elastic: nothing written to the event log for the History Server", e)
      }

    def stop(): Unit = {
      archive()
      ElasticExtensions.disable(sc)
      queries.off()
      ticker.shutdownNow()
      // No more answers will come, so what waits for one ends now.
      try queries.tick()
      catch { case Harmless(e) => logDebug("spark-elastic: the last tick failed", e) }
      clusterCalls.shutdownNow()
      policy.stop()
      gateway.shutdown()
    }

    private def turnOff(message: String): Unit = {
      logError(s"spark-elastic: off, the application continues as plain Spark: $message")
      queries.off()
      events.off()
    }

    private def turnOn(): Unit = {
      logInfo("spark-elastic: on again; queries started meanwhile stay plain Spark")
      queries.on()
      events.on()
    }

    def introduce(appId: String, metrics: MetricRegistry): Unit = {
      events.snapshotFrom(() => snapshot(appId))
      policyMetrics.show(metrics)
    }

    private def snapshot(appId: String): Snapshot = {
      queries.limitNothing() // a policy that reads it has limited nothing
      val conf = sc.conf.getAll.filter { case (key, _) => Shim.shown(key) }.toMap
      Snapshot(appId, sc.appName, sc.version, conf, listener.executors, queries.views, Linkage.parts)
    }

    private def act(action: Action): Unit = action match {
      case c: Configure =>
        queries.configure(c)
        advice.configure(c.decisionWaitMs)
        batch.turn(c.batchStages)
        sayOn(c.mode)
        events.offer(c.done(0L))
      case t: TurnOff =>
        events.offer(t.done(0L))
        turnOff(t.message)
        Daemon.start("elastic-off")(policy.stop())
      case q: QueryOrder => queries.order(q)
      case k: KeepText => queries.of(k).keep(k)
      case d: DropOriginal => queries.of(d).dropOriginal(d)
      case r: RequestExecutors => later(r)(executors.request(r.total))
      case k: KillExecutors => later(k)(executors.kill(k.executors))
      case d: DecommissionExecutors => later(d)(executors.decommission(d.executors))
      case r: Report => say(r.decision)
    }

    /** Log a decision. Failures and refusals are warnings: many applications log nothing below. */
    private def say(decision: JsonNode): Unit = {
      val query = Seq("name", "query").map(decision.path(_).asText("")).find(_.nonEmpty)
      // The log may be written in ASCII, which Java chooses if no locale is set.
      val message = decision.path("message").asText.replace("\u2192", "->").replace("\u00d7", "x")
      val line = s"spark-elastic: ${query.fold("")(of => s"query $of: ")}$message"
      if (decision.path("kind").asText == "failed") logWarning(line) else logInfo(line)
    }

    /** Call the cluster manager on another thread: it may take minutes, and the policy process must not wait. */
    private def later(action: Action)(body: => Unit): Unit =
      clusterCalls.execute { () =>
        events.outcome(action) {
          Linkage.need(Part.Executors)
          body
        }
      }

    private def threads(name: String): ThreadFactory = work => Daemon(name)(work.run())
  }

  private val TickMs = 250L
  private val TicksPerSecond = 4L
  private val TicksPerLook = 40L
}
