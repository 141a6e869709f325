package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.v2.state.{StateSourceOptions, StateTable}
import org.apache.spark.sql.execution.streaming.checkpointing.{CommitMetadataBase, OffsetSeqBase, OffsetSeqMetadata}
import org.apache.spark.sql.execution.streaming.state.StateStoreConf
import org.apache.spark.sql.internal.SQLConf

/** Reads from the logs of a checkpoint how its state is kept. */
private[elastic] object CheckpointFormat extends FormatSince40 {

  /** Return the partition count and the state store provider that a batch was planned with. */
  def settings(offsets: OffsetSeqBase): Option[(Int, String)] = offsets.metadataOpt.map { metadata =>
    OffsetSeqMetadata.readValue(metadata, SQLConf.STATEFUL_SHUFFLE_PARTITIONS_INTERNAL).toInt ->
      OffsetSeqMetadata.readValue(metadata, SQLConf.STATE_STORE_PROVIDER_CLASS)
  }

  /** Return the version of the checkpoint format that a batch was committed with. */
  def version(commit: CommitMetadataBase): Int = if (commit.stateUniqueIds.exists(_.nonEmpty)) 2 else 1

  /** Let a plan read state in format 2 if it was written so: Spark takes the format from the session that reads. */
  def readAsWritten(plan: LogicalPlan): Unit = plan.foreach {
    case relation: DataSourceV2Relation =>
      relation.table match {
        case table: StateTable => StateReads.readAsWritten(table)
        case _ =>
      }
    case _ =>
  }
}

private object StateReads {
  private lazy val options =
    Hidden.field("org.apache.spark.sql.execution.datasources.v2.state.StateTable#sourceOptions")
  private lazy val storeConf = Hidden.field("org.apache.spark.sql.execution.datasources.v2.state.StateTable#stateConf")
  private lazy val sqlConf = Hidden.field("org.apache.spark.sql.execution.streaming.state.StateStoreConf#sqlConf")

  def readAsWritten(table: StateTable): Unit = {
    val conf = storeConf.get(table).asInstanceOf[StateStoreConf]
    val hasIds = options.get(table).asInstanceOf[StateSourceOptions].endOperatorStateUniqueIds.isDefined
    if (hasIds && conf.stateStoreCheckpointFormatVersion < 2) {
      val own = sqlConf.get(conf).asInstanceOf[SQLConf] // made for this read
      own.setConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, 2)
      storeConf.set(table, new StateStoreConf(own, conf.extraOptions))
    }
  }
}
