package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.streaming.checkpointing.{CommitMetadataBase, OffsetSeqBase, OffsetSeqMetadata}
import org.apache.spark.sql.internal.SQLConf

/** What the logs of a checkpoint say of how its state is kept. */
private[elastic] object CheckpointFormat {

  /** The partition count and the state store provider that a batch was planned with. */
  def settings(offsets: OffsetSeqBase): Option[(Int, String)] = offsets.metadataOpt.map { metadata =>
    OffsetSeqMetadata.readValue(metadata, SQLConf.STATEFUL_SHUFFLE_PARTITIONS_INTERNAL).toInt ->
      OffsetSeqMetadata.readValue(metadata, SQLConf.STATE_STORE_PROVIDER_CLASS)
  }

  /** The version of the checkpoint format that a batch was committed with. */
  def version(commit: CommitMetadataBase): Int = if (commit.stateUniqueIds.exists(_.nonEmpty)) 2 else 1

  /** The version that the session asks for. */
  def asked(conf: SQLConf): Int = conf.getConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION)

  /** The setting that says it, by its name. */
  val Key: Option[String] = Some(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key)
}
