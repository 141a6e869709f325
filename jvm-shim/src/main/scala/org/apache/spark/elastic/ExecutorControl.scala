package org.apache.spark.elastic

import org.apache.spark.{ExecutorAllocationClient, SparkContext}
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.scheduler.ExecutorDecommissionInfo

/** Requests executors from the cluster manager, and releases them. Calls may take as long as the manager does. */
private[spark] final class ExecutorControl(sc: SparkContext) {
  import ExecutorControl.isWorthTelling

  private var told = Map.empty[String, ExecutorUsage]

  /** Return what would be lost with each executor, with its `written` bytes, if it differs from the last report. */
  def changedUsage(written: String => Long): Seq[ExecutorUsage] = {
    val now = sc.statusStore
      .executorList(activeOnly = true)
      .filter(_.id != SparkContext.DRIVER_IDENTIFIER)
      .map(e => e.id -> ExecutorUsage(e.id, e.memoryUsed + e.diskUsed, written(e.id)))
      .toMap
    val changed = now.filter { case (executor, usage) => isWorthTelling(told.get(executor), usage) }
    told = told.filter { case (executor, _) => now.contains(executor) } ++ changed
    changed.values.toSeq
  }

  private def client: ExecutorAllocationClient = sc.schedulerBackend match {
    case client: ExecutorAllocationClient => client
    case other =>
      throw new IllegalStateException(s"${other.getClass.getSimpleName} can neither request nor release executors")
  }

  def request(total: Int): Unit = {
    val default = ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID
    if (!client.requestTotalExecutors(Map(default -> total), Map(default -> 0), Map.empty)) {
      throw new IllegalStateException(s"the cluster manager did not take the request for $total executors")
    }
  }

  // The policy always requests the total separately: Spark would count it down from 0 if it had never been set.
  def kill(executors: Seq[String]): Unit =
    expect(executors, client.killExecutors(executors, adjustTargetNumExecutors = false, countFailures = false))

  def decommission(executors: Seq[String]): Unit = {
    val info = ExecutorDecommissionInfo("released by spark-elastic")
    expect(
      executors,
      client.decommissionExecutors(
        executors.map(_ -> info).toArray,
        adjustTargetNumExecutors = false,
        triggeredByExecutor = false))
  }

  private def expect(asked: Seq[String], accepted: Seq[String]): Unit = {
    val refused = asked.diff(accepted)
    if (refused.nonEmpty) {
      throw new IllegalStateException(s"the cluster manager did not release ${refused.mkString(", ")}")
    }
  }
}

private[spark] object ExecutorControl {

  /**
   * Whether the amount differs from the last report by more than a quarter; executors are compared by it. With a
   * report for each change, a thousand busy executors would fill the journal in an hour.
   */
  def isWorthTelling(told: Option[ExecutorUsage], now: ExecutorUsage): Boolean = {
    val (before, after) = (told.fold(0L)(bytes), bytes(now))
    told.isEmpty || math.abs(after - before) > before / 4
  }

  private def bytes(usage: ExecutorUsage) = usage.cachedBytes + usage.shuffleBytes
}
