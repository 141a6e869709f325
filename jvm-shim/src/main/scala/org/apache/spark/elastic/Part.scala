package org.apache.spark.elastic

import scala.collection.mutable

/**
 * A feature that can be off independently of others.
 *
 * @param name its function for the user, for the log
 * @param doors classes through which the feature is reached; callers elsewhere ask `Linkage` first
 * @param around parts without which it does nothing; if one of them is off, the log need not name this one
 */
private[spark] final class Part(val name: String, val doors: Seq[String], val around: Seq[Part])

private[spark] object Part {
  private val parts = mutable.ArrayBuffer.empty[Part]

  private def part(name: String, doors: String*)(around: Part*): Part = {
    parts += new Part(name, doors, around)
    parts.last
  }

  val Queries = part("streaming queries", "QueryListener", "QueryRun")()
  val Boundaries = part("rescales, retries and progress of streaming queries", "Boundary", "AtBoundaries")(Queries)
  val EarlyStart = part("letting start() return before there are sources", "StartLatch")(Queries, Boundaries)
  val StateMoves = part("rescales of state", "StateMove")(Queries, Boundaries)
  val Conversions = part("conversions of checkpoints", "CheckpointRewrite", "CommitFormat")(Queries, StateMoves)
  val PreparedMoves =
    part("moves prepared while micro-batches run", "StateCopy", "CopyLimits")(Queries, StateMoves)
  val Retries = part("retries of failed micro-batches", "NewSources")(Queries, Boundaries)
  val Savepoints = part("savepoints", "Savepoint", "Restore")()
  val StateReads = part("reads of state in another format than the session's", "StateReads")(Queries, StateMoves)
  val LostState = part("moving stores off lost executors", "StateLocations")(Queries, Boundaries)
  val WarmUps = part("the warm-up of executors", "WarmUp")(Queries, Boundaries)
  val SourceBounds = part("bounds of sources", "SourceBoundsRule")(Queries, Boundaries)
  val ReadLimits = part("limits of what micro-batches read", "ReadLimits")(Queries, Boundaries)
  val BatchFormats = part("foreachBatch with threads and sessions of its own", "BatchFormatRule")(Queries)
  val Counts = part("partition counts of batch shuffles", "InitialCountRule", "MarkExplicitNumbers")()
  val Ranges = part("ranges of batch shuffles", "RangesRule")()
  val Scans = part("task counts of batch scans", "ScanRule")()
  val KafkaReads = part("task counts of batch reads from Kafka", "KafkaRelationsRule")()
  val Api = part("the REST API", "ElasticServlet")()
  val Tab = part("the Elastic tab", "ElasticTab")(Api)
  val Archive = part("the Elastic tab in the History Server", "ElasticArchive", "ElasticHistory")()
  val Executors = part("requesting and releasing executors", "ExecutorControl")()
  val Audit = part("the audit of executors", "ExecutorAudit")()

  val All: Seq[Part] = parts.toSeq
}
