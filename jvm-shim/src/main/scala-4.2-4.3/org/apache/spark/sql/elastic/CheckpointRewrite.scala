package org.apache.spark.sql.elastic

import java.io.{FileNotFoundException, IOException}

import scala.util.Using

import org.apache.commons.io.IOUtils
import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution.datasources.v2.state.StateSourceOptions
import org.apache.spark.sql.execution.datasources.v2.state.metadata.StateMetadataPartitionReader
import org.apache.spark.sql.execution.streaming.checkpointing._
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorsUtils
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryCheckpointMetadata
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{IntegerType, StructField, TimestampType}
import org.apache.spark.util.SerializableConfiguration

/**
 * Rewrites the state of a checkpoint in another form: another provider, format or partition count. The result is a
 * batch of its own after the last committed one, with its offsets, as for Spark's re-partitioning. If a batch has begun,
 * which sinks may know by its number, the result takes the place of the last committed one instead.
 *
 * All of it is written to a folder inside the checkpoint first, with a file `decided` last. If that is missing after a
 * crash, the folder is deleted: nothing outside it has been changed. If it is there, the files are moved to their places
 * and the logs get their entries, as often as it takes. The files of the old form stay: those that would confuse a
 * reader of the new one are moved to a folder beside. Both are there until `forget`.
 *
 * Spark's own classes read and write the rows, as bytes. Its reader accepts RocksDB alone, for no reason of its own: it
 * reads the folder, which says so, and is then pointed to the real state.
 */
private[elastic] final class CheckpointRewrite(asked: SparkSession, checkpoint: String) extends Logging {
  import CheckpointRewrite._

  private val session = asked.cloneSession()
  private val root = StateRoot(session, checkpoint)
  private val conf = session.sessionState.newHadoopConf()
  private val files = new CheckpointFiles(new Path(root), conf)
  private val work = new CheckpointFiles(files.at(Work), conf)
  private val original = new CheckpointFiles(files.at(Original), conf)
  private val owner = java.util.UUID.randomUUID.toString
  private def logs = new CheckpointLogs(session, root)
  private def workLogs = new CheckpointLogs(session, work.root.toString)

  /** The last committed batch, with its entries in both logs, and the offsets of the next one if that has begun. */
  private lazy val (batch, offsets, commit, begun) = {
    val now = logs
    val (last, entry) = now.commits.getLatest().getOrElse(refuse("it has no committed micro-batch"))
    val next = now.offsets.getLatest().filter(_._1 > last)
    if (next.exists(_._1 > last + 1)) refuse(s"several micro-batches after $last have begun; run the query once")
    val before = now.offsets.get(last).getOrElse(refuse(s"it has no offsets of micro-batch $last"))
    (last, before, entry, next.map(_._2))
  }
  private lazy val from = StateForm.of(offsets, commit).getOrElse(refuse("its offsets are without settings"))

  private lazy val described: Seq[OperatorStateMetadata] =
    new StateMetadataPartitionReader(root, new SerializableConfiguration(conf), batch).allOperatorStateMetadata.toSeq
  private lazy val operators = if (described.nonEmpty) described else files.names("state").flatMap(guess)

  /**
   * Describe an operator of Spark 3.5, which describes none, by its stores and keys. Keys of all kinds say where they
   * belong in the same way, but for session windows and joins. A wrong guess is found out when rows are moved.
   */
  private def guess(folder: String): Option[OperatorStateMetadata] = folder.toLongOption.map { id =>
    val named = files.names(s"state/$id/0").filter(_.contains("-key")).sorted
    val stores = if (named.isEmpty) Seq(StateStoreId.DEFAULT_STORE_NAME) else JoinStores.filter(named.contains)
    val keys = schemas(id, StateStoreMetadataV1(stores.head, 0, from.partitions)).head.keySchema
    val isSession = keys.lastOption.contains(SessionStart)
    val name =
      if (named.nonEmpty) StatefulOperatorsUtils.SYMMETRIC_HASH_JOIN_EXEC_OP_NAME
      else if (isSession) StatefulOperatorsUtils.SESSION_WINDOW_STATE_STORE_SAVE_EXEC_OP_NAME
      else StatefulOperatorsUtils.STATE_STORE_SAVE_EXEC_OP_NAME
    val prefix = if (isSession) keys.length - 1 else 0
    OperatorStateMetadataV1(
      OperatorInfoV1(id, name),
      stores.map(StateStoreMetadataV1(_, prefix, from.partitions)).toArray)
  }

  /** Rewrite the state and return the number of the batch that has it. */
  def apply(to: StateForm): Long = {
    new CheckpointRewrite(asked, checkpoint).recover() // it reads logs, which may change
    check(to)
    try write(to)
    finally if (work.read(Owner).forall(_ == owner) && !isDecided) dropWork()
    publish()
    if (begun.isEmpty) batch + 1 else batch
  }

  /** Give a copy of a checkpoint a form of this name, with its own count, and keep nothing of the one that it has. */
  def inCopy(name: String): Unit = {
    val to = StateForm.named(name, from.partitions)
    if (to != from) {
      apply(to)
      forget()
    }
  }

  /**
   * Complete a rewrite whose state is all written, or discard its files, or complete its undoing. Return whether there
   * was one.
   */
  def recover(): Boolean = {
    val isFound = work.fs.exists(work.root)
    if (isFound) {
      if (isDecided && isOfBegun && logs.commits.getLatestBatchId().forall(_ < decided._1))
        bringBackEntries(!files.fs.exists(_)) // an object store replaces an entry by deleting it first
      val isToComplete = isDecided && isNext && missing.isEmpty
      val isOver = isDecided && !isNext && isPublished
      if (isToComplete) publish() else if (isOver) dropWork() else discard()
      val how = if (isToComplete || isOver) "completed" else "undone"
      logWarning(s"spark-elastic: interrupted rewrite of the state in $checkpoint $how")
    }
    val isOriginalLeft = Marks.exists(mark => original.read(mark).nonEmpty)
    if (original.read(Over).nonEmpty) dropOriginal()
    else if (original.read(Forgotten).nonEmpty) forget()
    else original.read(Undone).foreach(number => undo(number.toLong))
    isFound || isOriginalLeft
  }

  /** Return the state as the last committed batch left it. It is read when rows are asked for, also after changes. */
  def rows(operator: Long, store: String): DataFrame = session.withActive {
    val local = new CheckpointFiles(new Path(org.apache.spark.util.Utils.createTempDir().toURI), conf)
    describe(local, from.format)
    read(local, operator, store)
  }

  private def check(to: StateForm): Unit = {
    val values = for {
      operator <- operators
      store <- operator.stateStoresMetadata
      family <- schemas(operator.operatorInfo.operatorId, store)
    } yield (operator.operatorInfo.operatorName, family)
    val families = values.collect { case (name, family) if family.colFamilyName != Default => name }.distinct
    for (operator <- operators; id = operator.operatorInfo.operatorId) {
      val found = files.names(s"state/$id").count(_.toIntOption.exists(_ < from.partitions))
      if (found < from.partitions)
        refuse(s"operator $id has state in $found of ${from.partitions} partitions, as one without keys has")
    }
    if (to == from) refuse(s"its state already has $from")
    if (!Set(StateForm.RocksDB, StateForm.InMemory)(from.provider))
      refuse(s"its state is in a store of ${from.provider}")
    if (begun.nonEmpty && to.format == 1)
      refuse(s"its micro-batch ${batch + 1} has begun and is not committed; run the query until it is")
    if (to.isInMemory && to.format != 1) refuse("Spark's HDFS-backed store has format 1 only")
    if (to.isInMemory && families.nonEmpty)
      refuse(s"${families.mkString(", ")} keeps several kinds of state, which only RocksDB can")
    if (!to.isInMemory && values.exists(_._2.valueSchema.exists(f => f.name == Timeout && f.dataType == IntegerType)))
      refuse(
        "flatMapGroupsWithState in state format 1 declares its timeout as too short a number, which RocksDB rejects")
  }

  private def schemas(operator: Long, store: StateStoreMetadata): List[StateStoreColFamilySchema] = {
    val id = StateStoreId(files.at("state").toString, operator, 0, store.storeName)
    val paths = store match {
      case v2: StateStoreMetadataV2 => v2.stateSchemaFilePaths.map(new Path(_))
      case _ => Nil
    }
    new StateSchemaCompatibilityChecker(StateStoreProviderId(id, java.util.UUID.randomUUID), conf, paths)
      .readSchemaFile()
  }

  /** Write the state, and the entries of both logs, to the folder of this rewrite. */
  private def write(to: StateForm): Unit = {
    session.conf.set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "false")
    session.conf.set(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, to.format)
    dropWork()
    work.write(Owner, owner)
    describe(work, to.format)
    val next = StateForm.put(begun.getOrElse(offsets), to)
    if (begun.isEmpty) workLogs.offsets.add(batch + 1, next)
    val ids = CurrentExecution.asOurs(session.sparkContext, s"the state in $checkpoint gets $to") {
      session.withActive {
        StateMove.using(session, new StateMove(from.partitions)) {
          if (to.isInMemory) writeInMemory(to.partitions) else writeRocksDB(to.partitions)
        }
      }
    }
    val entry = StateForm.put(commit, ids)
    if (begun.nonEmpty) {
      val entries = new CheckpointLogs(session, work.at(Entries).toString)
      entries.commits.add(batch, entry)
      entries.offsets.add(batch, StateForm.put(offsets, to))
      entries.offsets.add(batch + 1, next)
      workLogs.offsets.add(batch + 1, next)
    }
    // Another driver may have taken this one for dead.
    val isOurs = work.read(Owner).contains(owner) && isUnchanged
    if (!isOurs || !workLogs.commits.add(batch + 1, entry)) refuse(Taken)
    work.write(Decided, if (begun.isEmpty) "append" else "replace")
  }

  /** Delete what was written; first what says that it is complete. */
  private def dropWork(): Unit = {
    work.delete(Decided)
    work.delete("")
  }

  /** Whether the logs are as they were read. */
  private def isUnchanged: Boolean = {
    val now = new CheckpointRewrite(asked, checkpoint)
    (now.batch, now.from, now.begun) == ((batch, from, begun))
  }

  private def writeRocksDB(partitions: Int): Option[Map[Long, Array[Array[String]]]] = {
    val place = work.root.toString
    val logs = new StreamingQueryCheckpointMetadata(session, place)
    val move = (state: DataFrame) => moved(redirected(state), partitions)
    val number = if (begun.isEmpty) batch + 1 else batch
    new StateRewriter(session, batch, number, place, conf, Some(place), Some(move), Some(logs)).run()
  }

  /** Spark's writer would load an empty store at a version, which this provider cannot. Its first version is one. */
  private def writeInMemory(partitions: Int): Option[Map[Long, Array[Array[String]]]] = {
    session.conf.set("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false") // of a file that gets another name
    session.conf.set(SQLConf.STATE_STORE_PROVIDER_CLASS.key, StateForm.InMemory)
    val confs = SerializableConfiguration.broadcast(session.sparkContext, conf)
    for (operator <- operators; store <- operator.stateStoresMetadata) {
      val id = operator.operatorInfo.operatorId
      val writer = new InMemoryWriter(
        StateStoreConf(session.sessionState.conf),
        work.at("state").toString,
        id,
        store.storeName,
        schemas(id, store).head)
      val rows = moved(read(work, id, store.storeName), partitions).queryExecution.toRdd
      rows.mapPartitions { part => writer.write(part, confs.value.value); Iterator.empty[Int] }.count()
    }
    None
  }

  private def moved(state: DataFrame, partitions: Int): DataFrame =
    if (partitions == from.partitions && described.nonEmpty) state
    else state.repartition(partitions, col("partition_key"))

  /** Copy to a folder what Spark reads before it reads state: logs that its reader accepts, and descriptions. */
  private def describe(to: CheckpointFiles, format: Int): Unit = {
    operators.foreach(StateDescription.copy(_, files, to))
    if (described.isEmpty) operators.foreach { guessed =>
      val place = to.at(s"state/${guessed.operatorInfo.operatorId}")
      OperatorStateMetadataWriter.createWriter(place, conf, guessed.version).write(guessed)
    }
    val entries = new CheckpointLogs(session, to.root.toString)
    entries.offsets.add(batch, StateForm.put(offsets, from.copy(provider = StateForm.RocksDB)))
    entries.commits.add(batch, if (format == 2) CommitMetadataV2() else CommitMetadata())
  }

  private def read(described: CheckpointFiles, operator: Long, store: String): DataFrame = redirected(
    session.read
      .format("statestore")
      .option(StateSourceOptions.PATH, described.root.toString)
      .option(StateSourceOptions.BATCH_ID, batch)
      .option(StateSourceOptions.OPERATOR_ID, operator)
      .option(StateSourceOptions.STORE_NAME, store)
      .option(StateSourceOptions.INTERNAL_ONLY_READ_ALL_COLUMN_FAMILIES, "true")
      .load())

  private def redirected(state: DataFrame): DataFrame = {
    CheckpointFormat
      .tables(state.queryExecution.analyzed)
      .foreach(StateReads.redirect(_, root, from, commit.stateUniqueIds))
    state
  }

  // ---- Publishing

  private def isDecided: Boolean = work.read(Decided).nonEmpty

  /** The number of the decided rewrite, its form, and its entries in both logs. */
  private def decided: (Long, StateForm, OffsetSeqBase, CommitMetadataBase) = {
    val ours = workLogs
    val (number, entry) = ours.commits.getLatest().getOrElse(refuse(Taken))
    val settings = ours.offsets.get(number).getOrElse(refuse(Taken))
    (number, StateForm.of(settings, entry).get, settings, entry)
  }

  private def isOfBegun: Boolean = work.read(Decided).contains("replace")

  /** Whether the logs are as the decided rewrite found them, or as it makes them. */
  private def isNext: Boolean = {
    val now = logs
    val (number, to, settings, _) = decided
    val last = now.commits.getLatestBatchId().getOrElse(-1L)
    val entry = now.offsets.getLatest()
    if (isOfBegun) last == number - 1 && entry.exists(_._1 == number)
    else
      (last == number - 1 || last == number) &&
      entry.exists { case (at, found) =>
        at == number - 1 || (at == number && StateForm.put(found, to) == settings)
      }
  }

  /** Return a file of state that the decided rewrite lacks, if another driver has deleted it. */
  private def missing: Option[String] = {
    val (number, to, _, entry) = decided
    val version = if (isOfBegun) number else number + 1
    def stem(name: String): String = name.take(name.indexOf('.', name.lastIndexOf('/') + 1))
    val found = (stateFiles(work).map(finalName(_, version, to)) ++ stateFiles(files))
      .filterNot(_.endsWith(".crc"))
      .map(stem)
      .toSet
    val needed = for {
      operator <- operators.iterator
      (store, at) <- operator.stateStoresMetadata.map(_.storeName).zipWithIndex.iterator
      id = operator.operatorInfo.operatorId
      partition <- 0 until to.partitions
    } yield {
      val unique = entry.stateUniqueIds.map(_(id)).filter(_.length == to.partitions).fold("")(_(partition)(at))
      s"state/$id/$partition/${if (store == StateStoreId.DEFAULT_STORE_NAME) "" else s"$store/"}$version" +
        (if (entry.stateUniqueIds.isEmpty) "" else s"_$unique")
    }
    needed.find(!found(_))
  }

  /**
   * Whether all of the decided rewrite is in place. A run without the plugin may have gone on from there, until its
   * entries were too old to be kept.
   */
  private def isPublished: Boolean = {
    val (now, (number, to, settings, entry)) = (logs, decided)
    def ids(of: CommitMetadataBase) = of.stateUniqueIds.map(_.view.mapValues(_.toSeq.map(_.toSeq)).toMap)
    if (isOfBegun) now.commits.get(number - 1).forall(ids(_) == ids(entry))
    else
      now.commits.getLatestBatchId().exists(_ >= number) &&
      now.offsets.get(number).forall(StateForm.put(_, to) == settings)
  }

  /** Delete what was written, also where it was moved to its place, and bring back what that replaced. */
  private def discard(): Unit = {
    if (isDecided) {
      val ids = decided._4.stateUniqueIds.toSeq.flatMap(_.values.flatten.flatten)
      if (isOfBegun && isNext) bringBackEntries(_ => true)
      stateFiles(files).filter(name => ids.exists(id => name.contains(s"_$id."))).foreach(files.delete)
      if (kept.exists(_.batch == decided._1 - 1)) { // else it is of an earlier rewrite
        stateFiles(original).foreach(name => move(original, name, files.at(name)))
        dropOriginal()
      }
      dropEmptyFolders()
    }
    dropWork()
  }

  private def publish(): Unit = {
    val (number, to, settings, entry) = decided
    checkWhole()
    if (kept.exists(_.batch != number - 1)) forget() // an earlier one
    if (isOfBegun) replace(number - 1, to, settings)
    else if (logs.commits.get(number).isEmpty) append(number, to, settings, entry)
    dropWork()
  }

  /** @throws IllegalStateException if another driver has completed this rewrite, or has deleted files of it */
  private def checkWhole(): Unit = if (!isDecided || missing.isDefined) refuse(Taken)

  /**
   * Return the settings that the newest entry has while files are moved: a count of its own. Spark does not start then,
   * and says that a re-partitioning has not finished.
   */
  private def moving(settings: OffsetSeqBase, to: StateForm): OffsetSeqBase =
    StateForm.put(settings, to.copy(partitions = from.partitions + to.partitions))

  /** Move everything to its place. */
  private def append(number: Long, to: StateForm, settings: OffsetSeqBase, entry: CommitMetadataBase): Unit = {
    val now = logs
    keep(number - 1, from, s"offsets/${number - 1}", s"commits/${number - 1}")
    if (!now.offsets.add(number, moving(settings, to)) &&
      !now.offsets.get(number).exists(StateForm.put(_, to) == settings))
      refuse(s"another writer has begun micro-batch $number")
    val isConfusing = !from.isInMemory && (to.isInMemory || from.format > to.format)
    if (isConfusing && !work.fs.exists(work.at(Aside))) {
      stateFiles(files).foreach(name => move(files, name, original.at(name)))
      work.write(Aside, "")
    }
    moveIn(number + 1, to)
    StateDescription.count(operators, files, conf, number, to.partitions)
    checkWhole()
    overwrite(work, s"offsets/$number")
    if (!now.commits.add(number, entry)) refuse(s"another writer has committed micro-batch $number")
  }

  /** Move everything to its place, and replace the entries of a batch and of the next one, which has begun. */
  private def replace(number: Long, to: StateForm, settings: OffsetSeqBase): Unit = {
    if (kept.isEmpty) keep(number, from, entriesOf(number): _*)
    val (entries, onTheWay) = (new CheckpointFiles(work.at(Entries), conf), new CheckpointFiles(work.at(Moving), conf))
    if (!isDecided || !isNext) refuse(Taken)
    new CheckpointLogs(session, onTheWay.root.toString).offsets.add(number + 1, moving(settings, to))
    overwrite(onTheWay, s"offsets/${number + 1}")
    moveIn(number + 1, to)
    checkWhole()
    entriesOf(number).foreach(overwrite(entries, _))
  }

  /** Return the entries that are replaced if the batch after this one has begun. The last one makes it valid. */
  private def entriesOf(number: Long): Seq[String] =
    Seq(s"commits/$number", s"offsets/$number", s"offsets/${number + 1}")

  private def overwrite(from: CheckpointFiles, name: String): Unit = {
    val out = CheckpointFileManager.create(files.root, conf).createAtomic(files.at(name), overwriteIfPossible = true)
    try Using.resource(from.fs.open(from.at(name)))(IOUtils.copy(_, out))
    catch { case e: Throwable => out.cancel(); throw e }
    out.close()
  }

  private def bringBackEntries(which: Path => Boolean): Unit = for {
    note <- kept
    name <- entriesOf(note.batch)
    if which(files.at(name)) && original.fs.exists(original.at(name))
  } overwrite(original, name)

  private def moveIn(version: Long, to: StateForm): Unit =
    for (name <- stateFiles(work)) move(work, name, files.at(finalName(name, version, to)))

  /** Return the names of all files of state in a checkpoint, without descriptions. */
  private def stateFiles(in: CheckpointFiles): Seq[String] =
    in.below("state").map(_.name).filterNot(_.split('/').exists(Set("_metadata", "_stateSchema")))

  private def finalName(name: String, version: Long, to: StateForm): String =
    if (to.isInMemory) name.replaceFirst("/1\\.delta$", s"/$version.snapshot") else name

  /** Move a file, unless another driver has just done it. */
  private def move(in: CheckpointFiles, name: String, to: Path): Unit = {
    def bytes(path: Path): Option[Long] =
      try Some(files.fs.getFileStatus(path).getLen)
      catch { case _: FileNotFoundException => None }
    files.fs.mkdirs(to.getParent)
    val (source, target) = (bytes(in.at(name)), bytes(to))
    if (source.nonEmpty && source == target) in.delete(name) // an object store had copied it and not deleted it
    else if (source.nonEmpty) {
      if (target.nonEmpty) files.fs.delete(to, false)
      try in.rename(name, to)
      catch { case e: IOException => if (bytes(in.at(name)).nonEmpty || bytes(to).isEmpty) throw e }
    }
  }

  // ---- The original

  /** Keep the entries of a batch, whose state stays where it is, and note its form and the time. */
  private def keep(number: Long, form: StateForm, entries: String*): Unit = {
    if (kept.isEmpty) original.delete("") // what a crash has left of an earlier one
    entries.foreach(files.copy(_, original))
    original.write(Note, s"${System.currentTimeMillis()}\n$number\n${form.provider}\n${form.format}")
  }

  private def kept: Option[Kept] = CheckpointRewrite.kept(files)

  /** Delete the original. Files of RocksDB that nothing refers to are left to Spark, which deletes them. */
  def forget(): Unit = {
    val note = noted(files)
    if (note.nonEmpty) original.write(Forgotten, "forget") // a start completes it
    for (of <- note if of.isInMemory; name <- stateFiles(files) if of.has(name)) files.delete(name)
    dropEmptyFolders()
    dropOriginal()
  }

  /** Delete the folder with the original, in an order in which nothing can be taken for one, or be undone again. */
  private def dropOriginal(): Unit = if (original.fs.exists(original.root)) {
    original.write(Over, "over")
    for (name <- Seq(Note, Undone, Forgotten, "")) original.delete(name)
  }

  /** Delete the folders of partitions that another count had. */
  private def dropEmptyFolders(): Unit =
    for (id <- files.names("state"); partition <- files.names(s"state/$id") if partition.toIntOption.isDefined)
      if (files.below(s"state/$id/$partition").isEmpty) files.delete(s"state/$id/$partition")

  /** Make a committed batch the last one again, with its state and what had begun as before the rewrite. */
  def undo(number: Long): Unit = {
    val now = logs
    val note = noted(files)
    if (note.exists(_.batch != number)) refuse(s"the original that is kept is of micro-batch ${note.get.batch}")
    if (note.isEmpty && (now.commits.get(number).isEmpty || now.offsets.get(number).isEmpty))
      refuse(s"micro-batch $number is not there any more")
    original.write(Undone, number.toString)
    now.commits.purgeAfter(number)
    now.offsets.purgeAfter(number)
    stateFiles(original).foreach(name => move(original, name, files.at(name)))
    bringBackEntries(_ => true)
    if (note.isEmpty) dropState(number)
    for (of <- note; name <- stateFiles(files) if !of.mayHave(name)) files.delete(name)
    dropEmptyFolders()
    dropOriginal()
  }

  /** Delete state that was written after a committed batch. */
  def dropState(number: Long): Unit =
    for (name <- stateFiles(files); Savepoint.StateFile(version) <- Some(name.split('/').last))
      if (version.toLong > number + 1) files.delete(name)

  private def refuse(why: String): Nothing = throw new IllegalStateException(s"its state cannot be rewritten: $why")
}

private[elastic] object CheckpointRewrite {
  private val Work = ".spark-elastic-rewrite"
  private val Original = ".spark-elastic-original"
  private val Note = "note"
  private val Aside = "aside" // the files that would confuse a reader have been moved
  private val Taken = "another driver is working on it"
  private val Owner = "owner" // who writes to the folder
  private val Decided = "decided" // which kind of rewrite the folder has, complete
  private val Undone = "undo" // the batch that is being made the last one again
  private val Forgotten = "forget" // the original is being deleted
  private val Over = "over" // only the folder of the original is left to delete
  private val Marks = Seq(Undone, Forgotten, Over)
  private val Entries = "entries" // that replace those of the logs, if a batch has begun
  private val Moving = "moving" // the entry that the begun batch has while files are moved
  private val Timeout = "timeoutTimestamp"
  private val SessionStart = StructField("sessionStartTime", TimestampType, nullable = false)
  private val JoinStores = // in the order of their ids
    Seq("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")
  private val Default = StateStore.DEFAULT_COL_FAMILY_NAME

  /** What is kept: when the state was rewritten (epoch ms), after which batch, and which form it had. */
  final case class Kept(at: Long, batch: Long, provider: String, format: Int) {
    def isInMemory: Boolean = provider == StateForm.InMemory

    /** Whether a file has a version of its state. */
    def has(name: String): Boolean = name.split('/').last match {
      case file @ Savepoint.StateFile(version) =>
        val isOfForm = if (isInMemory) InMemoryFile.matches(file) else format == 2 || !file.contains('_')
        isOfForm && version.toLong <= batch + 1
      case _ => false
    }

    /** Whether a file may be part of its state: files of RocksDB have names of their own. */
    def mayHave(name: String): Boolean =
      has(name) || (!isInMemory && !Savepoint.StateFile.matches(name.split('/').last))
  }

  private val InMemoryFile = """.*\.(delta|snapshot)(\.crc)?""".r

  /** Return what is kept and not being deleted. */
  def kept(files: CheckpointFiles): Option[Kept] =
    noted(files).filterNot(_ => Seq(Forgotten, Over).exists(mark => files.read(s"$Original/$mark").nonEmpty))

  private def noted(files: CheckpointFiles): Option[Kept] =
    files.read(s"$Original/$Note").map(_.split('\n')).collect { case Array(at, batch, provider, format) =>
      Kept(at.toLong, batch.toLong, provider, format.toInt)
    }

  def isInterrupted(files: CheckpointFiles): Boolean =
    files.fs.exists(files.at(Work)) || Marks.exists(mark => files.fs.exists(files.at(s"$Original/$mark")))
}

/** Writes the rows of a partition as the first version of an HDFS-backed store. Runs in tasks. */
private final class InMemoryWriter(
    conf: StateStoreConf,
    root: String,
    operator: Long,
    name: String,
    schema: StateStoreColFamilySchema)
    extends Serializable {

  def write(rows: Iterator[InternalRow], hadoopConf: org.apache.hadoop.conf.Configuration): Unit = {
    val id = StateStoreId(root, operator, TaskContext.getPartitionId(), name)
    val provider = StateStoreProvider.createAndInit(
      StateStoreProviderId(id, java.util.UUID.randomUUID),
      schema.keySchema,
      schema.valueSchema,
      NoPrefixKeyStateEncoderSpec(schema.keySchema),
      useColumnFamilies = false,
      conf,
      hadoopConf,
      useMultipleValuesPerKey = false,
      stateSchemaProvider = None)
    try {
      val store = provider.getStore(0)
      try {
        rows.foreach(row =>
          store.put(unsafe(row, 1, schema.keySchema.length), unsafe(row, 2, schema.valueSchema.length)))
        store.commit()
      } finally if (!store.hasCommitted) store.abort()
    } finally provider.close()
  }

  private def unsafe(row: InternalRow, column: Int, fields: Int): UnsafeRow = {
    val bytes = row.getBinary(column)
    val result = new UnsafeRow(fields)
    result.pointTo(bytes, bytes.length)
    result
  }
}
