package org.apache.spark.elastic

/**
 * What can be left out by itself.
 *
 * @param name what it does for the user, for the log
 * @param doors our classes by which it is reached; who goes there from elsewhere asks `Linkage` first
 */
private[spark] final class Part(val name: String, val doors: String*)

private[spark] object Part {
  val Queries = new Part("streaming queries", "QueryListener", "QueryRun")
  val Boundaries = new Part("rescales, retries and progress of streaming queries", "Boundary")
  val EarlyStart = new Part("letting start() return before there are sources", "StartLatch")
  val StateMoves = new Part("rescales of state", "StateMove")
  val Retries = new Part("retries of failed micro-batches", "NewSources")
  val Savepoints = new Part("savepoints", "Savepoint")
  val LostState = new Part("moving stores off lost executors", "StateLocations")
  val WarmUps = new Part("the warm-up of executors", "WarmUp")
  val SourceBounds = new Part("bounds of sources", "SourceBoundsRule")
  val Counts = new Part("partition counts of batch shuffles", "InitialCountRule", "MarkExplicitNumbers")
  val Ranges = new Part("ranges of batch shuffles", "RangesRule")
  val Scans = new Part("task counts of batch scans", "ScanRule")
  val KafkaReads = new Part("task counts of batch reads from Kafka", "KafkaRelationsRule")
  val Api = new Part("the REST API", "ElasticServlet")
  val Tab = new Part("the Elastic tab", "ElasticTab")
  val Archive = new Part("the Elastic tab in the History Server", "ElasticArchive", "ElasticHistoryPlugin")
  val Executors = new Part("requesting and releasing executors", "ExecutorControl")
  val Audit = new Part("the audit of executors", "ExecutorAudit")

  val All: Seq[Part] = Seq(
    Queries,
    Boundaries,
    EarlyStart,
    StateMoves,
    Retries,
    Savepoints,
    LostState,
    WarmUps,
    SourceBounds,
    Counts,
    Ranges,
    Scans,
    KafkaReads,
    Api,
    Tab,
    Archive,
    Executors,
    Audit)
}
