package org.apache.spark.sql.elastic

import org.apache.spark.sql.internal.SQLConf

/** How the state of a checkpoint is kept. */
private[elastic] object CheckpointFormat extends FormatBefore42 {

  /** Return the version of the checkpoint format that a batch was committed with. */
  def version(commit: Moved.CommitMetadata): Int = if (commit.stateUniqueIds.exists(_.nonEmpty)) 2 else 1

  /** Return the version that the session asks for. */
  def asked(conf: SQLConf): Int = conf.getConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION)

  /** The name of the setting for the version. */
  val Key: Option[String] = Some(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key)
}
