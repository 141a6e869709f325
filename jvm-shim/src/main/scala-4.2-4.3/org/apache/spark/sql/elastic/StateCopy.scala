package org.apache.spark.sql.elastic

import java.io.{File, FileNotFoundException}
import java.nio.file.{Files, StandardCopyOption}
import java.util.UUID
import java.util.zip.ZipInputStream

import scala.collection.concurrent.TrieMap
import scala.util.Using

import org.apache.hadoop.fs.Path

import org.apache.spark.SparkEnv
import org.apache.spark.elastic.Harmless
import org.apache.spark.internal.Logging
import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution.{RDDScanExec, SQLExecution}
import org.apache.spark.sql.execution.datasources.v2.state.AllColumnFamiliesReaderInfo
import org.apache.spark.sql.execution.datasources.v2.state.metadata.StateMetadataPartitionReader
import org.apache.spark.sql.execution.streaming.checkpointing._
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StatePartitionKeyExtractorFactory,
  StateStoreSaveExec,
  StatefulOperatorStateInfo,
  StatefulOperatorsUtils
}
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.StateStoreColumnFamilySchemaUtils
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryCheckpointMetadata
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.util.{SerializableConfiguration, Utils}

/**
 * A state in other partitions, made while its query goes on: a copy of the state as of one committed batch, the changes
 * since, and at a boundary the entries of the logs that make it the query's state.
 *
 * The copy is read and written as by Spark's re-partitioning, into a hidden folder. The changes are in the changelogs
 * that each batch commits. Their records are divided by the partition of their keys, on the driver, which reads as much
 * as the batches have changed, however large the state is. The result is what re-partitioning would have made: a batch
 * of its own whose state is a snapshot, here with changelogs after it.
 *
 * No one sees any of it before. In format 2 each file of state has a unique id in its name, and the log of commits says
 * which are used. So the snapshot is moved to its place before the boundary (a storage without renames copies it), and
 * the files of an abandoned copy are found by their ids.
 *
 * A store repeats changelogs when it is opened. If there is much to repeat, a second snapshot is made of the first and
 * the changes: Spark's aggregation opens each store at its changelog and commits it, without input.
 *
 * Version b + 2 stands for batch b, since the batch that changes the count takes a number. Changelogs have to follow one
 * another without a gap. All batches that have run during the copy share one, so the snapshot gets its version last.
 *
 * Stores that clean up take the snapshot for one of their own: they delete it when they have kept a younger one for
 * `spark.sql.streaming.minBatchesToRetain` batches, and an older one of their own because of it. So the copy has to be
 * used long before that, or is given up.
 *
 * Another driver may start from the checkpoint, and delete the copy, while this one is as good as dead. So that driver
 * first leaves a mark, and then reads the logs. This one first adds its batch, and then looks for the mark. Accepted
 * race: where a rename replaces files, a driver that is frozen just before it renames its entry of the log of commits
 * may replace that of the other one.
 *
 * @param checkpoint the folder of the query's checkpoint
 */
private[elastic] final class StateCopy(asked: SparkSession, checkpoint: String, from: Int, to: Int) extends Logging {
  import CheckpointFiles.Threads
  import StateCopy._

  private val session = asked.cloneSession()
  private val root = StateRoot(session, checkpoint)
  private val conf = session.sessionState.newHadoopConf()
  private val files = new CheckpointFiles(new Path(root), conf)
  private val token = UUID.randomUUID.toString
  private val work = new CheckpointFiles(files.at(Prefix + token), conf)
  private val codec =
    CompressionCodec.createCodec(SparkEnv.get.conf, session.sessionState.conf.stateStoreCompressionCodec)
  private def logs = new CheckpointLogs(session, root)
  private val mostChangelogs = session.sessionState.conf.minBatchesToRetain / 2

  if (session.sessionState.conf.stateStoreEncodingFormat == StateStoreEncoding.Avro.toString)
    refuse("its state is in Avro, whose keys only its stores can read")
  private val batch = logs.commits.getLatestBatchId().getOrElse(refuse("no micro-batch is committed yet"))
  private val described =
    new StateMetadataPartitionReader(root, new SerializableConfiguration(conf), batch).allOperatorStateMetadata.toSeq
  private val infos = TrieMap.empty[(Long, String), AllColumnFamiliesReaderInfo]
  private lazy val stores = for {
    operator <- described
    (name, at) <- operator.stateStoresMetadata.map(_.storeName).zipWithIndex.toSeq
  } yield new CopiedStore(operator, name, at)

  private val disk = new CheckpointFiles(new Path(Utils.createTempDir().toURI), conf) // of the driver
  private var kept = Vector.empty[(Long, Ids)] // batches whose changes are on that disk
  private var snapshots: Ids = _
  private var made = batch + 2 // the version of the snapshot in the hidden folder
  private var first = made // its version in its place
  private var changelogs = 0
  private var last = batch
  private var placed = Option.empty[Seq[String]] // files
  private var use: Use = NotUsed

  /** The last batch whose changes are in the copy. */
  def followed: Long = last

  /** Copy the state of the last committed batch. */
  def write(limits: CopyLimits): Unit = {
    session.conf.set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "false")
    session.conf.set("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false") // of files that get other names
    session.conf.set(QueryStart.Changelogs, "false") // so each commit is a snapshot
    session.conf.set(SQLConf.STATE_STORE_UNLOAD_ON_COMMIT.key, "true")
    val now = logs
    val (offsets, commit) = (now.offsets.get(batch).get, now.commits.get(batch).get)
    val form = StateForm.of(offsets, commit).getOrElse(refuse("its offsets are without settings"))
    described.foreach(StateDescription.copy(_, files, work))
    // Spark's reader wants logs beside what it reads, and its writer settings of the batch that it writes.
    val place = new CheckpointLogs(session, work.root.toString)
    place.offsets.add(batch, offsets)
    place.commits.add(batch, CommitMetadataV2())
    place.offsets.add(batch + 1, StateForm.put(offsets, form.copy(partitions = to)))
    def moved(state: DataFrame): DataFrame = {
      CheckpointFormat.tables(state.queryExecution.analyzed).foreach { table =>
        StateReads.redirect(table, root, form, commit.stateUniqueIds)
        infos(StateReads.store(table)) = StateReads.columnFamilies(table)
      }
      limits.writing(state.repartition(to, col("partition_key")), () => bytes)
    }
    val ids = session.withActive {
      StateMove.using(session, new StateMove(from, Some(limits))) {
        val entries = new StreamingQueryCheckpointMetadata(session, work.root.toString)
        new StateRewriter(
          session,
          batch,
          batch + 1,
          work.root.toString,
          conf,
          Some(work.root.toString),
          Some(moved _),
          Some(entries))
          .run()
      }
    }
    snapshots = ids.getOrElse(refuse("its checkpoint has format 1"))
  }

  /** Return how many bytes of state have been written. */
  private def bytes: Long = work.below("state").map(_.status.getLen).sum

  /** Take the changes of the batches up to this one to the driver's disk, before Spark deletes them. */
  def keep(until: Long): Unit = if (until > kept.lastOption.fold(last)(_._1)) {
    val now = logs
    for (b <- kept.lastOption.fold(last)(_._1) + 1 to until) {
      val ids = now.commits.get(b).flatMap(_.stateUniqueIds).getOrElse(refuse(s"batch $b has no ids of state"))
      stores.foreach(_.keep(b + 1, ids))
      kept :+= b -> ids
    }
  }

  /** Whether `renew` would save stores much that they had to repeat when they are opened. */
  def isWorthRenewing: Boolean =
    stores.forall(_.isPlain) && disk.all(mayVanish = true).map(_.status.getLen).sum >= LeastChanges * to

  /** Take the changes up to this batch to the snapshot's folder, for `renew`. */
  def gather(until: Long): Unit = {
    keep(until)
    take(until)(_.gather(_))
    first = until + 2
  }

  /** Make a new snapshot of the last one and the gathered changes. */
  def renew(limits: CopyLimits): Unit = {
    snapshots = session.withActive(stores.map(store => store.operatorId -> store.renewed(limits)).toMap)
    made += 2
    logInfo(s"spark-elastic: the copy of the state in $root is one of batch $last")
  }

  /** Follow the batches up to this one, with one changelog for all of them. */
  def follow(until: Long): Unit = if (until > last) {
    if (placed.isEmpty) first = until + 1
    if (first + changelogs + 1 != until + 2) refuse(s"batch $until cannot follow $last")
    if (changelogs + 1 >= mostChangelogs)
      refuse("it was not used in time: Spark would delete it after spark.sql.streaming.minBatchesToRetain batches")
    keep(until)
    take(until)(_.follow(_, until + 2))
    changelogs += 1
  }

  private def take(until: Long)(body: (CopiedStore, Seq[(Long, Ids)]) => Unit): Unit = {
    val (batches, later) = kept.span(_._1 <= until)
    stores.foreach(body(_, batches))
    kept = later
    last = until
  }

  /** Move the snapshot to its place. Changelogs are written to their places from then on. */
  def place(): Unit = {
    val moves = for {
      name <- work.below("state").map(_.name)
      if !name.split('/').exists(Descriptions) && (name.contains(s"/${made}_") || !name.matches(".*[.](zip|changelog)"))
    } yield name -> name.replaceFirst(s"/${made}_([^/]*)$$", s"/${first}_$$1")
    val targets = moves.map(_._2)
    placed = Some(targets)
    work.write(Placed, targets.mkString("\n"))
    parallel(targets.map(folderOf).distinct)(in => files.fs.mkdirs(files.at(in)))
    // A store that cleans up deletes old files that no snapshot refers to.
    val (snapshots, others) = moves.partition(_._1.endsWith(".zip"))
    for (some <- Seq(snapshots, others)) parallel(some) { case (name, target) => work.rename(name, files.at(target)) }
  }

  /** Make this the state of the query. Its last committed batch is followed, and no later one has begun. */
  def switch(): Unit = {
    val now = logs
    val number = last + 1
    val (offsets, commit) = (now.offsets.get(last).get, now.commits.get(last).get)
    val form = StateForm.of(offsets, commit).get.copy(partitions = to)
    val ids = described.map { operator =>
      val id = operator.operatorInfo.operatorId
      val own = stores.filter(_.operatorId == id)
      id -> Array.tabulate(to)(p => own.map(_.idOf(p)).toArray)
    }.toMap
    checkOurs()
    use = InDoubt
    work.write(Used, s"$number\n$to\n${idIn(ids)}")
    if (!now.offsets.add(number, StateForm.put(offsets, form))) refuse(s"another writer has begun batch $number")
    checkOurs()
    StateDescription.count(described, files, conf, number, to)
    if (!now.commits.add(number, StateForm.put(commit, Some(ids))))
      refuse(s"another writer has committed batch $number")
    use = Settled
  }

  private def checkOurs(): Unit =
    if (work.read(Placed).isEmpty || work.read(Taken).nonEmpty) refuse("another driver has started from the checkpoint")

  /** Delete what is left of the work, and all of the copy unless it is used. In doubt, `settle` has to. */
  def close(): Unit = {
    disk.delete("")
    use match {
      case NotUsed => delete(files, Prefix + token, placed.getOrElse(Nil), mayBeFilled = true)
      case Settled => forget(files, Prefix + token)
      case InDoubt =>
    }
  }

  /** Delete what is left if the switch has failed, when the logs are in order again. */
  def settle(): Unit = if (use == InDoubt) {
    discard(files, Prefix + token, logs)
    use = Settled
  }

  private def refuse(why: String): Nothing = throw new IllegalStateException(why)

  /** A state store of an operator: all of its partitions, old and new. */
  private final class CopiedStore(operator: OperatorStateMetadata, name: String, at: Int) {
    val operatorId: Long = operator.operatorInfo.operatorId
    private lazy val info = infos((operatorId, name))
    private lazy val hasFamilies = info.colFamilySchemas.exists(_.colFamilyName != Default)
    private val oldFamilies, newFamilies = TrieMap.empty[String, Map[String, Short]] // of snapshots
    private val names = TrieMap.empty[String, Map[Short, String]] // of the families in changelogs, by their ids
    private val routes = TrieMap.empty[Int, Map[String, Array[Byte] => Int]] // not shared by threads
    private var written = 0
    private lazy val isOfAnyKind = StatefulOperatorsUtils.TRANSFORM_WITH_STATE_OP_NAMES.contains(info.operatorName)

    private def folder(partition: Int): String =
      s"state/$operatorId/$partition" + (if (name == StateStoreId.DEFAULT_STORE_NAME) "" else s"/$name")

    private def snapshot(partition: Int) = snapshots(operatorId)(partition)(at)

    /** Ids of one copy differ by the number of the changelog. */
    private def changelogId(number: Int) = s"$token-$number"

    /** Whether Spark's aggregation can open the store; it adds nothing of its own. */
    def isPlain: Boolean = name == StateStoreId.DEFAULT_STORE_NAME && !hasFamilies

    def idOf(partition: Int): String = if (written == 0) snapshot(partition) else changelogId(written)

    private def lineage(partition: Int): Array[LineageItem] =
      (LineageItem(first, snapshot(partition)) +:
        (1 to written).map(n => LineageItem(first + n, changelogId(n)))).toArray

    def keep(version: Long, ids: Ids): Unit = parallel(0 until from) { p =>
      val id = ids(operatorId)(p)(at)
      val file = changelog(p, version, id)
      files.copy(file, disk)
      reading(file)(reader => if (reader.version == WithFamilies) names(file) = namesIn(p, version, id, reader.lineage))
    }

    private def changelog(partition: Int, version: Long, id: String) = s"${folder(partition)}/${version}_$id.changelog"

    private def reading(file: String)(body: StateStoreChangelogReader => Unit): Unit = {
      val path = disk.at(file)
      val manager = CheckpointFileManager.create(path.getParent, conf)
      val reader = new StateStoreChangelogReaderFactory(manager, path, codec).constructChangelogReader()
      try body(reader)
      finally reader.closeIfNeeded()
    }

    def gather(batches: Seq[(Long, Ids)]): Unit =
      divide(batches, p => new Target(work, p, made + 1, Gathered, Array(LineageItem(made, snapshot(p)))))

    /** Commit the gathered changes, with no input, as a snapshot. Return the ids of each partition. */
    def renewed(limits: CopyLimits): Array[Array[String]] = {
      val family = info.colFamilySchemas.head
      val (keys, values) = (toAttributes(family.keySchema), toAttributes(family.valueSchema))
      val of = StatefulOperatorStateInfo(
        work.at("state").toString,
        UUID.randomUUID,
        operatorId,
        made + 1,
        to,
        stateStoreCkptIds = Some(Array.fill(to)(Array(Gathered))))
      val nothing = session.sparkContext.parallelize(Seq.empty[InternalRow], to)
      val save = StateStoreSaveExec(
        keys,
        Some(of),
        Some(OutputMode.Update),
        stateFormatVersion = 2,
        child = RDDScanExec(keys ++ values, nothing, "nothing"))
      try SQLExecution.withSQLConfPropagated(session)(limits.run(save.execute(), () => bytes))
      finally session.streams.stateStoreCoordinator.deactivateInstances(of.queryRunId)
      save.getStateStoreCheckpointInfo().sortBy(_.partitionId).map(_.stateStoreCkptId.get)
    }

    def follow(batches: Seq[(Long, Ids)], version: Long): Unit = {
      divide(batches, p => new Target(files, p, version, changelogId(written + 1), lineage(p)))
      written += 1
    }

    /** Divide the changes of these batches, with their ids, into a changelog of each new partition. */
    private def divide(batches: Seq[(Long, Ids)], target: Int => Target): Unit = {
      val targets = Vector.tabulate(to)(target)
      try {
        val threads = math.min(Threads, from)
        parallel(0 until threads) { thread =>
          for {
            p <- thread until from by threads
            (b, ids) <- batches
          } read(changelog(p, b + 1, ids(operatorId)(p)(at)), routes.getOrElseUpdate(thread, routesOf), targets)
        }
        parallel(targets)(_.writer.commit())
      } catch { case e: Throwable => targets.foreach(t => Utils.tryLogNonFatalError(t.writer.abort())); throw e }
    }

    private final class Target(in: CheckpointFiles, p: Int, version: Long, id: String, since: Array[LineageItem]) {
      private val path = in.at(s"${folder(p)}/${version}_$id.changelog")
      private val manager = {
        files.fs.mkdirs(path.getParent)
        CheckpointFileManager.create(path.getParent, conf)
      }
      val writer: StateStoreChangelogWriter =
        if (hasFamilies) new StateStoreChangelogWriterV4(manager, path, codec, since)
        else new StateStoreChangelogWriterV3(manager, path, codec, since)
      lazy val families: Map[String, Short] =
        newFamilies.getOrElseUpdate(snapshot(p), familiesIn(work, p, made, snapshot(p)))

      def add(kind: RecordType.Value, key: Array[Byte], value: Array[Byte]): Unit = synchronized {
        kind match {
          case RecordType.PUT_RECORD => writer.put(key, value)
          case RecordType.MERGE_RECORD => writer.merge(key, value)
          case RecordType.DELETE_RECORD => writer.delete(key)
          case other => refuse(s"a change is a $other")
        }
      }
    }

    private def read(file: String, routes: Map[String, Array[Byte] => Int], targets: Seq[Target]): Unit = {
      reading(file) { reader =>
        for ((kind, key, value) <- reader) {
          if (hasFamilies) {
            val family = names(file)
              .getOrElse(RocksDBStateStoreProvider.getColumnFamilyBytesAsId(key), refuse("it has a new column family"))
            val bare = RocksDBStateStoreProvider.decodeStateRowWithPrefix(key)
            val target = targets(routes(family)(bare))
            target.add(kind, RocksDBStateStoreProvider.encodeStateRowWithPrefix(bare, target.families(family)), value)
          } else targets(routes(Default)(key)).add(kind, key, value)
        }
      }
      names.remove(file)
      disk.delete(file)
    }

    /** Return the column families of an old partition by their ids, as the snapshot has them that this version needs. */
    private def namesIn(partition: Int, version: Long, id: String, lineage: Array[LineageItem]): Map[Short, String] = {
      val own = s"${folder(partition)}/${version}_$id.zip" // new families make a snapshot
      val base = if (files.fs.exists(files.at(own))) LineageItem(version, id) else lineage.minBy(_.version)
      oldFamilies
        .getOrElseUpdate(
          s"$partition/${base.checkpointUniqueId}",
          familiesIn(files, partition, base.version, base.checkpointUniqueId))
        .map(_.swap)
    }

    private def familiesIn(in: CheckpointFiles, partition: Int, version: Long, id: String): Map[String, Short] = {
      val placed = files.at(s"${folder(partition)}/${first}_$id.zip")
      val unplaced = in.at(s"${folder(partition)}/${version}_$id.zip")
      val file = File.createTempFile("spark-elastic", ".metadata")
      try
        Using.resource(new ZipInputStream(open(unplaced, placed))) { zip =>
          if (!Iterator.continually(zip.getNextEntry).takeWhile(_ != null).exists(_.getName == "metadata"))
            refuse(s"$unplaced has no metadata")
          Files.copy(zip, file.toPath, StandardCopyOption.REPLACE_EXISTING)
          RocksDBCheckpointMetadata.readFromFile(file).columnFamilyMapping.fold(Map.empty[String, Short])(_.toMap)
        }
      finally file.delete()
    }

    private def open(path: Path, otherwise: Path) =
      try files.fs.open(path)
      catch { case _: FileNotFoundException => files.fs.open(otherwise) }

    /** Return for each column family how to find the new partition of an encoded key. */
    private def routesOf: Map[String, Array[Byte] => Int] = info.colFamilySchemas
      .filterNot(f => f.colFamilyName == Default && isOfAnyKind) // not in use
      .map(family => family.colFamilyName -> route(family))
      .toMap

    private def route(family: StateStoreColFamilySchema): Array[Byte] => Int = {
      val variable = info.stateVariableInfos.find(
        _.stateName == StateStoreColumnFamilySchemaUtils.getBaseStateName(family.colFamilyName))
      val extractor = StatePartitionKeyExtractorFactory
        .create(info.operatorName, family.keySchema, name, family.colFamilyName, info.stateFormatVersion, variable)
      val prefix = operator.stateStoresMetadata(at).numColsPrefixKey
      val spec = family.keyStateEncoderSpec.getOrElse(
        if (prefix > 0) PrefixKeyScanStateEncoderSpec(family.keySchema, prefix)
        else NoPrefixKeyStateEncoderSpec(family.keySchema))
      val encoder =
        RocksDBStateEncoder.getKeyEncoder(new UnsafeRowDataEncoder(spec, family.valueSchema), spec, hasFamilies)
      val keys = extractor.partitionKeySchema.fields.zipWithIndex.map { case (f, i) =>
        BoundReference(i, f.dataType, f.nullable)
      }
      val partition = UnsafeProjection.create(Seq(HashPartitioning(keys.toSeq, to).partitionIdExpression))
      key => partition(extractor.partitionKey(encoder.decodeKey(key))).getInt(0)
    }
  }
}

private[elastic] object StateCopy extends Logging {
  import CheckpointFiles.Threads

  private type Ids = Map[Long, Array[Array[String]]]
  private val Prefix = ".spark-elastic-copy-"
  private val Placed = "placed"
  private val Used = "used"
  private val Taken = "taken" // by a driver that has started from the checkpoint
  private val Gathered = "gathered" // the id of changelogs that no query sees
  private val LeastChanges = 1L << 20 // bytes for each new partition

  /** Whether the copy is the state of the query; once that is settled, only its folder may be left to delete. */
  sealed private trait Use
  private case object NotUsed extends Use
  private case object InDoubt extends Use
  private case object Settled extends Use

  private val Default = StateStore.DEFAULT_COL_FAMILY_NAME
  private val WithFamilies = 4 // the version of a changelog with column families
  private val Descriptions = Set("_metadata", "_stateSchema")

  /** Let no other driver switch to its copy any more, except to one whose batch is in the log already. */
  def takeOver(session: SparkSession, checkpoint: String): Unit = {
    val files = filesOf(session, checkpoint)
    left(files).filter(isOfCopy(files, _)).foreach(folder => files.write(s"$folder/$Taken", "taken"))
  }

  /** Delete what copies have left that a crash cut short, where this driver has taken over. */
  def clean(session: SparkSession, checkpoint: String): Unit = {
    val files = filesOf(session, checkpoint)
    for (folder <- left(files))
      if (!isOfCopy(files, folder)) files.delete(folder)
      else if (files.read(s"$folder/$Taken").nonEmpty) {
        logWarning(s"spark-elastic: removing an interrupted copy of the state in $checkpoint")
        discard(files, folder, new CheckpointLogs(session, StateRoot(session, checkpoint)))
      }
  }

  private def filesOf(session: SparkSession, checkpoint: String) =
    new CheckpointFiles(new Path(StateRoot(session, checkpoint)), session.sessionState.newHadoopConf())

  private def left(files: CheckpointFiles): Seq[String] = files.names("").filter(_.startsWith(Prefix))

  /** Whether a folder still says anything of a copy. If not, the copy is in use, or has been deleted. */
  private def isOfCopy(files: CheckpointFiles, folder: String): Boolean =
    files.below(folder).exists(_.name != s"$folder/$Taken")

  /** Delete the folder of a copy that is in use. What says so goes last: without it, the copy would be deleted. */
  private def forget(files: CheckpointFiles, folder: String): Unit = {
    files.names(folder).filterNot(_ == Used).foreach(name => files.delete(s"$folder/$name"))
    files.delete(folder)
  }

  private def discard(files: CheckpointFiles, folder: String, logs: CheckpointLogs): Unit = {
    val isUsed = files.read(s"$folder/$Used").map(_.split('\n')).exists {
      case Array(number, to, id) =>
        logs.commits.get(number.toLong) match {
          case Some(entry) => entry.stateUniqueIds.exists(idIn(_) == id)
          // A run without the plugin has gone on, until the entry was too old to be kept. It cannot change the count.
          case None =>
            logs.offsets.getLatest().exists { case (last, offsets) =>
              last > number.toLong && CheckpointFormat.settings(offsets).exists(_._1 == to.toInt)
            }
        }
      case _ => false // not all written
    }
    if (isUsed) forget(files, folder)
    else {
      val placed = files.read(s"$folder/$Placed", Long.MaxValue).fold(Seq.empty[String])(_.linesIterator.toSeq)
      delete(files, folder, placed, mayBeFilled = false)
    }
  }

  /**
   * Delete a copy, and then its folder, which says what there is.
   *
   * @param placed the files that it has in their places, without changelogs
   * @param mayBeFilled whether tasks may be about to write into a folder of the state that is still empty
   */
  private def delete(files: CheckpointFiles, folder: String, placed: Seq[String], mayBeFilled: Boolean): Unit = {
    val token = folder.stripPrefix(Prefix)
    val ours = files.below("state").map(_.name).filter(_.contains(s"_$token-")) ++ placed
    parallel(ours)(files.delete)
    // An empty folder of a partition would be taken for one.
    ours.map(folderOf).distinct.sortBy(-_.length).foreach(dropIfEmpty(files, _, mayBeFilled))
    files.delete(folder)
  }

  private def folderOf(name: String): String = name.take(name.lastIndexOf('/'))

  private def dropIfEmpty(files: CheckpointFiles, folder: String, mayBeFilled: Boolean): Unit =
    if (folder.count(_ == '/') > 1 && files.names(folder).isEmpty) {
      if (mayBeFilled)
        try files.fs.delete(files.at(folder), false)
        catch { case Harmless(_) => } // it is not empty any more
      else files.delete(folder)
      dropIfEmpty(files, folderOf(folder), mayBeFilled)
    }

  private def idIn(ids: Ids): String = ids.minBy(_._1)._2.head.head

  /** Do something for each of these, several at once; one alone needs no thread. */
  def parallel[A, B](of: Seq[A], atOnce: Int = Threads)(body: A => B): Seq[B] =
    if (of.size < 2) of.map(body) else CheckpointFiles.parallel("elastic-copy", of, atOnce)(body)
}
