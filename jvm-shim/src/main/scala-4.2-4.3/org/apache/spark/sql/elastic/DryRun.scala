package org.apache.spark.sql.elastic

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.rdd.{PartitionPruningRDD, RDD}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution.LocalLimitExec
import org.apache.spark.sql.execution.datasources.v2.state.metadata.StateMetadataPartitionReader
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryCheckpointMetadata
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.util.SerializableConfiguration

/**
 * Re-partitions some of an operator's state in a folder that is deleted. `at` returns all rows for each place. To read
 * some of a partition, an executor fetches all of it, so a large one is left out: it would take more than it saves.
 */
private[elastic] object DryRun {
  private val MostRows = 1000 // of a partition's state, which are enough
  private val MostBytes = 256L << 20 // of its files, which is some seconds

  def apply(session: SparkSession, root: String, at: RDD[InternalRow] => RDD[(String, InternalRow)]): Unit = {
    val checkpoint = StateRoot(session, root)
    val conf = session.sessionState.newHadoopConf()
    val logs = new StreamingQueryCheckpointMetadata(session, checkpoint)
    // The leading dot keeps it out of savepoints. A driver killed meanwhile leaves it (a few kB); Spark ignores it.
    val files = new CheckpointFiles(new Path(checkpoint), conf)
    val folder = new CheckpointFiles(files.at(s".warm-up-${UUID.randomUUID}"), conf)

    def some(state: DataFrame): DataFrame = {
      val rows = LocalLimitExec(MostRows, state.queryExecution.executedPlan).execute()
      // A set is also a function, and one whose class executors have.
      val ofOnePartition = PartitionPruningRDD.create(rows, Set(0))
      session.internalCreateDataFrame(at(ofOnePartition).values, state.schema)
    }

    for {
      batch <- logs.commitLog.getLatestBatchId()
      all = new StateMetadataPartitionReader(checkpoint, new SerializableConfiguration(conf), batch)
      operator <- all.allOperatorStateMetadata.headOption
      if files.below(s"state/${operator.operatorInfo.operatorId}/0").map(_.status.getLen).sum <= MostBytes
    }
      try {
        StateDescription.copy(operator, files, folder)
        val place = folder.root.toString
        new StateRewriter(session, batch, batch, place, conf, Some(checkpoint), Some(some), Some(logs)).run()
      } finally folder.delete("")
  }
}

/** What Spark reads about an operator's state before it reads or writes the state. */
private[elastic] object StateDescription {
  def copy(operator: OperatorStateMetadata, from: CheckpointFiles, to: CheckpointFiles): Unit = {
    val stores = operator.stateStoresMetadata.map(_.storeName).toSeq
    for {
      of <- Seq("_metadata", "0/_metadata") ++ stores.map(name => s"0/$name/_metadata")
      path = s"state/${operator.operatorInfo.operatorId}/$of" if from.fs.exists(from.at(path))
    } from.copy(path, to)
  }

  /** Note the count where the description of an operator has one for each batch, as Spark does. */
  def count(
      operators: Seq[OperatorStateMetadata],
      in: CheckpointFiles,
      conf: Configuration,
      batch: Long,
      partitions: Int): Unit = operators.foreach {
    case v2: OperatorStateMetadataV2 =>
      OperatorStateMetadataWriter
        .createWriter(in.at(s"state/${v2.operatorInfo.operatorId}"), conf, v2.version, Some(batch))
        .write(v2.copy(stateStoreInfo = v2.stateStoreInfo.map(_.copy(numPartitions = partitions))))
    case _ => // has one count for all batches, which no one reads
  }
}
