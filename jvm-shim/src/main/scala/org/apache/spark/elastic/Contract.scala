package org.apache.spark.elastic

import java.nio.ByteBuffer
import java.util.Base64

import com.fasterxml.jackson.annotation.JsonValue
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper, PropertyNamingStrategies}
import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.module.scala.DefaultScalaModule

/**
 * The messages to and from the policy process: the twin of python/spark_elastic/core/events.py and actions.py. Tests
 * on both sides read and write tests/contract/golden/\*.json. Times are epoch milliseconds; durations end in Ms.
 */
private[spark] sealed trait Event

private[spark] case class ExecutorInfo(
    executor: String,
    host: String,
    cores: Int,
    excluded: Boolean = false,
    decommissioning: Boolean = false)

/**
 * A source of a query. A divisible one can be read in more tasks than Spark plans, though not in order. A limitable
 * one accepts a limit of rows per micro-batch, and its user has set none.
 */
private[spark] case class SourceFacts(
    name: String,
    divisible: Boolean,
    ordered: Boolean = false,
    limitable: Boolean = false)

private[spark] case class QueryFacts(
    query: String,
    name: Option[String],
    stateful: Boolean,
    globalState: Boolean,
    trigger: String,
    triggerMs: Long,
    sessionPartitions: Int,
    explicitPartitions: Option[Int],
    providerChosen: Boolean,
    storeNeeded: Boolean,
    provider: String,
    checkpointFormat: Int,
    checkpointPartitions: Option[Int],
    pending: Boolean,
    inPlace: Boolean,
    movesState: Boolean,
    preparesMoves: Boolean,
    sources: Seq[SourceFacts],
    keptBounds: Option[String] = None,
    keptBatches: Option[String] = None,
    originalSince: Option[Long] = None)

/** A failed run: the class names of all causes, whether any is an IOException, and the end offsets of its batch. */
private[spark] case class Failure(
    error: String,
    errorClass: Option[String],
    causes: Seq[String],
    ofIo: Boolean,
    offsets: String)

private[spark] case class QueryInfo(
    facts: QueryFacts,
    run: String,
    runState: String,
    partitions: Option[Int],
    failure: Option[Failure])

private[spark] case class Snapshot(
    application: String,
    applicationName: String,
    sparkVersion: String,
    conf: Map[String, String],
    executors: Seq[ExecutorInfo],
    queries: Seq[QueryInfo],
    parts: Map[String, String] = Map.empty)
    extends Event

private[spark] case class ExecutorAdded(executor: String, host: String, cores: Int) extends Event
private[spark] case class ExecutorRemoved(executor: String, reason: String) extends Event
private[spark] case class ExecutorExcluded(executor: String, reason: String) extends Event
private[spark] case class ExecutorUnexcluded(executor: String) extends Event
private[spark] case class ExecutorUsage(executor: String, cachedBytes: Long, shuffleBytes: Long) extends Event

/** An executor that has joined, and the time when a query's first task was launched on it (epoch ms). */
private[spark] case class NewExecutor(executor: String, joined: Long, launched: Long, warmUpMs: Option[Long])
private[spark] case class ExecutorsUsed(query: String, executors: Seq[NewExecutor]) extends Event
private[spark] case class ExecutorDecommissioning(executor: String) extends Event

private[spark] case class QuerySubmitted(facts: QueryFacts, run: String) extends Event

/** Records in a source's partitions that a query has not read: mean, maximum and minimum. */
private[spark] case class OffsetsBehind(avg: Double, max: Long, min: Long)

/** The partition of a source with the most `rows` to read in a micro-batch, out of `allRows` in `partitions`. */
private[spark] case class FullestPartition(name: String, rows: Long, allRows: Long, partitions: Int)

/**
 * A micro-batch's read of one source: rows, and the number of tasks if known. `whole` is set if there could be no
 * more, since each had a file and none can be split. `fullest` is set if offsets tell partitions apart.
 */
private[spark] case class SourceRead(
    rows: Long,
    tasks: Option[Int],
    whole: Boolean,
    fullest: Option[FullestPartition] = None)

private[spark] case class QueryStarted(query: String, run: String, partitions: Int) extends Event
private[spark] case class QueryProgress(
    query: String,
    run: String,
    batch: Long,
    started: Long,
    durationMs: Long,
    inputRows: Long,
    inputRowsPerSecond: Double,
    processedRowsPerSecond: Double,
    stateRows: Long,
    stateBytes: Long,
    partitions: Int,
    offsetsBehind: Option[OffsetsBehind],
    recordsBehind: Option[Long],
    eventTimeLagMs: Option[Long],
    sources: Seq[SourceRead],
    merged: Int = 0)
    extends Event
private[spark] case class BatchPlanned(
    query: String,
    run: String,
    batch: Long,
    inputRows: Option[Long],
    recordsBehind: Option[Long])
    extends Event
private[spark] case class SavepointTaken(
    query: String,
    run: String,
    action: String,
    path: String,
    batch: Long,
    bytes: Long)
    extends Event
private[spark] case class QueryIdle(query: String, run: String) extends Event
private[spark] case class QueryFailed(query: String, run: String, failure: Failure) extends Event
private[spark] case class QueryTerminated(query: String, run: String, error: Option[String], errorClass: Option[String])
    extends Event

/** Totals over the tasks of a stage, and the longest and the (lower) median task. */
private[spark] case class StageWork(runMs: Long, gcMs: Long, spilledBytes: Long, longestMs: Long, medianMs: Long) {
  def +(more: StageWork): StageWork = StageWork(
    runMs + more.runMs,
    gcMs + more.gcMs,
    spilledBytes + more.spilledBytes,
    longestMs + more.longestMs,
    medianMs + more.medianMs)
}

/** A stage of a micro-batch that reads a shuffle. */
private[spark] case class StageCompleted(
    query: String,
    batch: Long,
    tasks: Int,
    durationMs: Long,
    work: Option[StageWork])
    extends Event

/**
 * A stage outside streaming queries that has been submitted and has not ended. `launched` is the start of its first
 * task. `bytes` is the output of the shuffles before it, if it reads nothing else.
 */
private[spark] case class BatchStage(
    stage: Int,
    tasks: Int,
    done: Int = 0,
    running: Int = 0,
    runMs: Long = 0L,
    launched: Option[Long] = None,
    bytes: Option[Long] = None,
    readBytes: Long = 0L,
    writtenBytes: Long = 0L)

/** All such stages, the executors that run none of their tasks, and the number that ended since the last report. */
private[spark] case class BatchStages(stages: Seq[BatchStage], idle: Seq[String], over: Int = 0) extends Event

/** The outcome of an order; `query` is None for one about executors. */
private[spark] case class ActionDone(action: String, query: Option[String], tookMs: Long, prepared: Boolean = false)
    extends Event
private[spark] case class ActionFailed(action: String, query: Option[String], error: String) extends Event

private[spark] sealed trait Action {
  def id: String
  def done(tookMs: Long): ActionDone = ActionDone(id, about, tookMs)
  def failed(error: String): ActionFailed = ActionFailed(id, about, error)

  private def about: Option[String] = this match {
    case order: AboutQuery => Some(order.query)
    case _ => None
  }
}

private[spark] case class Configure(
    id: String,
    warmUpMs: Long,
    startWaitMs: Long,
    decisionWaitMs: Long,
    restarts: Boolean,
    batchStages: Boolean,
    mode: String)
    extends Action
private[spark] case class TurnOff(id: String, message: String) extends Action

/** An order about a query, whichever run it is in. */
private[spark] sealed trait AboutQuery extends Action {
  def query: String
}

/** An order about one run of a query. */
private[spark] sealed trait QueryOrder extends AboutQuery {
  def run: String
}
private[spark] case class StartQuery(
    id: String,
    query: String,
    run: String,
    partitions: Option[Int],
    rescalable: Boolean,
    stages: Boolean)
    extends QueryOrder
private[spark] case class HoldQuery(id: String, query: String, run: String, message: String, rescalable: Boolean)
    extends QueryOrder
private[spark] case class FailQuery(id: String, query: String, run: String, message: Option[String]) extends QueryOrder
private[spark] case class CancelQuery(id: String, query: String, run: String) extends QueryOrder
private[spark] case class Rescale(id: String, query: String, run: String, partitions: Int) extends QueryOrder
private[spark] case class PrepareMove(
    id: String,
    query: String,
    run: String,
    partitions: Int,
    tasks: Int,
    bytesPerSecond: Long)
    extends QueryOrder
private[spark] case class TakeSavepoint(
    id: String,
    query: String,
    run: String,
    target: String,
    within: String,
    format: Option[String],
    keep: Int,
    stop: Boolean)
    extends QueryOrder

/** Bounds of the tasks that read a source in a micro-batch. Enough data raises the lower one up to `wanted`. */
private[spark] case class SourceBounds(least: Int, most: Int, wanted: Int = 0)
private[spark] case class BoundSources(id: String, query: String, run: String, sources: Seq[SourceBounds])
    extends QueryOrder

/** Upper bound of the rows that a micro-batch reads from a source; 0 for all. Without sources nothing is limited. */
private[spark] case class SourceLimit(rows: Long)
private[spark] case class LimitRows(id: String, query: String, run: String, sources: Seq[SourceLimit])
    extends QueryOrder

/** Keeps a text of the policy beside the checkpoint of a query, whichever run it is in; one text per name. */
private[spark] case class KeepText(id: String, query: String, name: String, text: Option[String]) extends AboutQuery

/** Deletes what is kept of a checkpoint's state from before it was converted. */
private[spark] case class DropOriginal(id: String, query: String) extends AboutQuery
private[spark] case class RequestExecutors(id: String, total: Int) extends Action
private[spark] case class KillExecutors(id: String, executors: Seq[String]) extends Action
private[spark] case class DecommissionExecutors(id: String, executors: Seq[String]) extends Action
private[spark] case class Report(id: String, decision: JsonNode) extends Action

/** A request under Spark's UI: the verdict of its ACLs (`mayModify`), its own names, and the URLs of YARN's proxy. */
private[spark] case class HttpRequest(
    method: String,
    path: String,
    query: String,
    headers: Map[String, String],
    body: Array[Byte],
    user: Option[String],
    address: String,
    mayModify: Boolean,
    hosts: Seq[String] = Nil,
    proxies: Seq[String] = Nil)
private[spark] case class HttpAnswer(id: String, status: Int, headers: Map[String, String], body: String)

/** A question about a batch stage, as in python/spark_elastic/core/batch/questions.py, which adds the slots. */
private[spark] sealed trait Question
private[spark] case class PlannedExchange(id: String, bytes: Long, source: String, most: Option[Long] = None)

/**
 * `planned` is Spark's number of partitions. The user's are `chosen` for shuffles, `parallelism`, `advised` (bytes),
 * `lower`, `smallest` (bytes). `kept` is the last number of this `plan`; rows of a `pinned` one may reveal it.
 */
private[spark] case class InitialCount(
    group: String,
    exchanges: Seq[PlannedExchange],
    planned: Int,
    chosen: Option[Int],
    parallelism: Option[Int],
    advised: Option[Long],
    lower: Option[Int],
    smallest: Option[Long] = None,
    plan: String = "",
    pinned: Boolean = true,
    kept: Option[Int] = None)
    extends Question
private[spark] case class WrittenExchange(id: String, bytes: PackedLongs)

/** `kept` has the ends of this `plan`'s last ranges for about these sizes; it is empty if Spark's own were used. */
private[spark] case class Ranges(
    group: String,
    exchanges: Seq[WrittenExchange],
    left: Option[String],
    chosen: Option[Int],
    parallelism: Option[Int],
    advised: Option[Long],
    lower: Option[Int],
    parallelismFirst: Option[Boolean] = None,
    smallest: Option[Long] = None,
    plan: String = "",
    kept: Option[PackedLongs] = None)
    extends Question

/**
 * `openings` is the number of times a file is opened, each at the price of `smallest` bytes. `planned` is Spark's
 * number of tasks, and `most` the upper bound where no file can be split.
 */
private[spark] case class SplitSize(
    scan: String,
    bytes: Long,
    openings: Int,
    planned: Int,
    most: Option[Int],
    smallest: Long,
    largest: Long)
    extends Question

/** `late` is set if the tasks of the scan must find out where Kafka's partitions end. */
private[spark] case class SplitOffsets(scan: String, late: Boolean) extends Question

/** `source` is the reader of a source with partitions of its own. They are `joinable` if nothing relies on them. */
private[spark] case class JoinPartitions(scan: String, source: String, planned: Int, joinable: Boolean) extends Question

/** Longs that are sent as one base64 text of big-endian 64-bit integers. */
private[spark] case class PackedLongs(values: Array[Long]) {
  @JsonValue def text: String = {
    val bytes = ByteBuffer.allocate(8 * values.length)
    values.foreach(bytes.putLong)
    Base64.getEncoder.encodeToString(bytes.array)
  }
}

/**
 * `version` and `contract` are those of the Python package, for readers of the traffic: Python compares both with the
 * reply, and ends with an error if they differ. `requests` marks the connection for requests, not events and actions.
 */
private[spark] case class HelloRequest(version: String, contract: Int, requests: Boolean = false)
private[spark] case class HelloReply(version: String, contract: Int)

private[spark] object Contract {

  /** Incremented whenever a field changes its meaning. The policy process refuses any other number. */
  val Number = 1

  private def named(kinds: Class[_ <: Action]*) = kinds.map(kind => kind.getSimpleName -> kind)

  private val actions: Map[String, Class[_ <: Action]] = Seq(
    named(classOf[Configure], classOf[TurnOff], classOf[Report]),
    named(classOf[StartQuery], classOf[HoldQuery], classOf[FailQuery], classOf[CancelQuery]),
    named(classOf[PrepareMove], classOf[Rescale]),
    named(classOf[TakeSavepoint], classOf[BoundSources], classOf[LimitRows]),
    named(classOf[KeepText], classOf[DropOriginal]),
    named(classOf[RequestExecutors], classOf[KillExecutors], classOf[DecommissionExecutors])).flatten.toMap

  val mapper: ObjectMapper = new ObjectMapper()
    .registerModule(DefaultScalaModule)
    .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
    .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false)

  def write(event: Event, id: String, at: Long): ObjectNode =
    mapper
      .valueToTree[ObjectNode](event)
      .put("type", event.getClass.getSimpleName)
      .put("id", id)
      .put("at", at)

  def write(question: Question): ObjectNode =
    mapper.valueToTree[ObjectNode](question).put("type", question.getClass.getSimpleName)

  /** @throws IllegalArgumentException if the node is not an action of this contract */
  def readAction(node: JsonNode): Action = {
    val name = Option(node.get("type")).map(_.asText).getOrElse("")
    val cls = actions.getOrElse(
      name,
      throw new IllegalArgumentException(s"unknown action '$name', expected one of ${actions.keys.toSeq.sorted}"))
    mapper.treeToValue(node, cls)
  }
}
