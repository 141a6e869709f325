package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf

import Moved._

/** Reads from the logs of a checkpoint how its state is kept. There is one format. */
private[elastic] object CheckpointFormat {

  /** Return the partition count and the state store provider that a batch was planned with. */
  def settings(offsets: OffsetSeq): Option[(Int, String)] =
    for {
      metadata <- offsets.metadata
      partitions <- metadata.conf.get(SQLConf.SHUFFLE_PARTITIONS.key)
      provider <- metadata.conf.get(SQLConf.STATE_STORE_PROVIDER_CLASS.key)
    } yield partitions.toInt -> provider

  /** Return the version of the checkpoint format that a batch was committed with. */
  def version(commit: CommitMetadata): Int = 1

  /** Return the version that the session asks for. */
  def asked(conf: SQLConf): Int = 1

  /** The name of the setting for the version. */
  val Key: Option[String] = None

  /** Does nothing: the plugin gives no checkpoint of this Spark another format. */
  def readAsWritten(plan: LogicalPlan): Unit = {}
}
