package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.v2.state.{AllColumnFamiliesReaderInfo, StateSourceOptions, StateTable}
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
  def readAsWritten(plan: LogicalPlan): Unit = tables(plan).foreach(StateReads.readAsWritten)

  def tables(plan: LogicalPlan): Seq[StateTable] =
    plan.collect { case relation: DataSourceV2Relation => relation.table }.collect { case table: StateTable => table }
}

private object StateReads {
  private lazy val options =
    Hidden.field("org.apache.spark.sql.execution.datasources.v2.state.StateTable#sourceOptions")
  private lazy val families =
    Hidden.field("org.apache.spark.sql.execution.datasources.v2.state.StateTable#allColumnFamiliesReaderInfo")
  private lazy val storeConf = Hidden.field("org.apache.spark.sql.execution.datasources.v2.state.StateTable#stateConf")
  private lazy val sqlConf = Hidden.field("org.apache.spark.sql.execution.streaming.state.StateStoreConf#sqlConf")

  def readAsWritten(table: StateTable): Unit =
    if (asked(table).endOperatorStateUniqueIds.isDefined && stores(table).stateStoreCheckpointFormatVersion < 2)
      use(table, SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key -> "2")

  /** Let a table read a checkpoint's state in its form, with these ids, instead of what it was made from. */
  def redirect(
      table: StateTable,
      checkpoint: String,
      form: StateForm,
      ids: Option[Map[Long, Array[Array[String]]]]): Unit = {
    val of = ids.flatMap(_.get(asked(table).operatorId.toLong))
    options.set(
      table,
      asked(table)
        .copy(resolvedCpLocation = checkpoint, startOperatorStateUniqueIds = of, endOperatorStateUniqueIds = of))
    use(
      table,
      SQLConf.STATE_STORE_PROVIDER_CLASS.key -> form.provider,
      SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key -> form.format.toString)
  }

  /** Return the operator and the store that a table reads. */
  def store(table: StateTable): (Long, String) = (asked(table).operatorId.toLong, asked(table).storeName)

  /** Return what a table that reads all column families knows of them. */
  def columnFamilies(table: StateTable): AllColumnFamiliesReaderInfo =
    families.get(table).asInstanceOf[Option[AllColumnFamiliesReaderInfo]].get

  private def asked(table: StateTable) = options.get(table).asInstanceOf[StateSourceOptions]
  private def stores(table: StateTable) = storeConf.get(table).asInstanceOf[StateStoreConf]

  private def use(table: StateTable, settings: (String, String)*): Unit = {
    val own = sqlConf.get(stores(table)).asInstanceOf[SQLConf] // made for this read
    for ((key, value) <- settings) own.setConfString(key, value)
    storeConf.set(table, new StateStoreConf(own, stores(table).extraOptions))
  }
}
