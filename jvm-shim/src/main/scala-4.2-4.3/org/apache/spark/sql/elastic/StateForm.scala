package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.streaming.checkpointing._
import org.apache.spark.sql.execution.streaming.state.{HDFSBackedStateStoreProvider, RocksDBStateStoreProvider}
import org.apache.spark.sql.internal.SQLConf

/** How a checkpoint keeps its state: the partition count, the class of the provider, the format of the checkpoint. */
private[elastic] case class StateForm(partitions: Int, provider: String, format: Int) {
  def isInMemory: Boolean = provider == StateForm.InMemory

  override def toString: String = {
    val store =
      if (provider == StateForm.RocksDB) "RocksDB" else if (isInMemory) "Spark's HDFS-backed store" else provider
    s"$partitions ${if (partitions == 1) "partition" else "partitions"} in $store, format $format"
  }
}

private[elastic] object StateForm {
  val RocksDB: String = classOf[RocksDBStateStoreProvider].getName
  val InMemory: String = classOf[HDFSBackedStateStoreProvider].getName

  /** Return the form that has a name of the policy's; the HDFS-backed store has one format. */
  def named(name: String, partitions: Int): StateForm = name match {
    case "hdfs" => StateForm(partitions, InMemory, 1)
    case "rocksdb-1" => StateForm(partitions, RocksDB, 1)
    case "rocksdb-2" => StateForm(partitions, RocksDB, 2)
    case other => throw new IllegalStateException(s"$other is no form of state")
  }

  def of(offsets: OffsetSeqBase, commit: CommitMetadataBase): Option[StateForm] =
    CheckpointFormat.settings(offsets).map { case (partitions, provider) =>
      StateForm(partitions, provider, CheckpointFormat.version(commit))
    }

  /** Return the entry with other settings in it. */
  def put(offsets: OffsetSeqBase, settings: Map[String, String]): OffsetSeqBase = offsets match {
    case v1: OffsetSeq =>
      v1.copy(metadataOpt = v1.metadataOpt.map {
        case m: OffsetSeqMetadata => m.copy(conf = m.conf ++ settings)
        case other => other
      })
    case v2: OffsetMap => v2.copy(metadata = v2.metadata.copy(conf = v2.metadata.conf ++ settings))
    case other => other
  }

  /** Return the entry for the same offsets with the state in another form. */
  def put(offsets: OffsetSeqBase, form: StateForm): OffsetSeqBase = put(offsets, settings(form))

  def settings(form: StateForm): Map[String, String] = Map(
    SQLConf.SHUFFLE_PARTITIONS.key -> form.partitions.toString,
    SQLConf.STATE_STORE_PROVIDER_CLASS.key -> form.provider)

  /** Return the entry of the commit log with other ids of state files; None is format 1. */
  def put(commit: CommitMetadataBase, ids: Option[Map[Long, Array[Array[String]]]]): CommitMetadataBase = commit match {
    case v3: CommitMetadataV3 => v3.withStateUniqueIds(ids)
    case other if ids.isEmpty => CommitMetadata(other.nextBatchWatermarkMs)
    case other => CommitMetadataV2(other.nextBatchWatermarkMs, ids)
  }

  /** Whether a batch only gave the state another form: all else is as in the batch before it, its time too. */
  def isRewrite(batch: Long, offsets: OffsetSeqLog): Boolean = {
    def formless(of: Long) = offsets.get(of).map(put(_, StateForm(0, "", 0)))
    batch > 0 && formless(batch).isDefined && formless(batch) == formless(batch - 1)
  }
}
