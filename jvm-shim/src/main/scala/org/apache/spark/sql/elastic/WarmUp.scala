package org.apache.spark.sql.elastic

import org.apache.spark.elastic.{Daemon, ExecutorInfo, FirstTasks, Harmless}
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.CPUS_PER_TASK
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.ExecutorCacheTaskLocation
import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.functions.{count, current_timestamp, max}
import org.apache.spark.sql.internal.SQLConf

/**
 * Warms up new executors. Their first tasks are slow (classes, generated code, shuffles, RocksDB's native library),
 * so they begin with some that no query waits for: a small query on all slots, and a dry run of a re-partitioning.
 * These keep the executors from the micro-batches of that time, which the others run. Executors get nothing but
 * Spark's own classes. Best effort: failures are only logged.
 */
private[elastic] object WarmUp extends Logging {

  /** Return the ms until these executors were warm, or None. With a checkpoint, the dry run is with its state. */
  def apply(session: SparkSession, checkpoint: Option[String], executors: Seq[ExecutorInfo]): Option[Long] = {
    val from = System.nanoTime()
    val failure =
      try {
        val cpus = session.sparkContext.conf.get(CPUS_PER_TASK)
        CurrentExecution.asOurs(session.sparkContext, "new executors are warmed up") {
          session.withActive { // parts of plans look it up
            runSmallQuery(session, executors.flatMap(e => Seq.fill(math.max(1, (e.cores / cpus).toInt))(place(e))))
            checkpoint.foreach(root => DryRun(session, root, at(session, executors.map(place), _)))
          }
        }
        None
      } catch { case Harmless(e) => Some(e.getMessage) }
    val ms = (System.nanoTime() - from) / 1000000L
    val outcome = failure.fold("are warm")(message => s"were not warmed up: $message")
    logInfo(s"spark-elastic: new executors ${executors.map(_.executor).mkString(", ")} $outcome after $ms ms")
    Option.when(failure.isEmpty)(ms)
  }

  /** Return an element for a task on this executor, with its preferred location. */
  private def place(e: ExecutorInfo): (String, Seq[String]) =
    e.executor -> Seq(ExecutorCacheTaskLocation(e.host, e.executor).toString)

  /** Return all of `rows` for each place: the tasks of a product run where one of its sides prefers. */
  private def at(
      session: SparkSession,
      places: Seq[(String, Seq[String])],
      rows: RDD[InternalRow]): RDD[(String, InternalRow)] =
    session.sparkContext.makeRDD(places).cartesian(rows)

  /** Do what most micro-batches do: create rows, then partly aggregate, shuffle and aggregate them. */
  private def runSmallQuery(asked: SparkSession, places: Seq[(String, Seq[String])]): Unit = {
    val session = asked.cloneSession()
    session.conf.set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "false")
    session.conf.set(SQLConf.SHUFFLE_PARTITIONS.key, "1")
    val rows = session.createDataset(session.sparkContext.makeRDD(places))(Encoders.STRING).toDF("executor")
    val timed = rows.withColumn("time", current_timestamp()).groupBy("executor").agg(count("*"), max("time"))
    at(session, places, timed.queryExecution.toRdd).count()
  }
}

/** Executors that have joined while queries run, warmed up together with all that are waiting by then. */
private[elastic] final class NewExecutors(first: FirstTasks) {
  private val AtOnce = 64 // limited because all of them read the same files
  private val lock = new Object
  private var waiting = Seq.empty[ExecutorInfo]
  private var working = false

  /** Add an executor. Its warm-up, and that of later ones meanwhile, is a job of this query. */
  def joined(executor: ExecutorInfo, query: QueryRun): Unit = lock.synchronized {
    waiting :+= executor
    if (!working) {
      Daemon.start("elastic-warm-up") {
        try Iterator.continually(next()).takeWhile(_.nonEmpty).foreach(warmUp(query, _))
        catch {
          case e: Throwable =>
            giveUp()
            throw e // its thread logs it
        }
      }
      working = true
    }
  }

  private def warmUp(query: QueryRun, executors: Seq[ExecutorInfo]): Unit =
    for {
      ms <- WarmUp(query.session, query.rescalable, executors)
      e <- executors
    } first.warm(e.executor, ms)

  private def next(): Seq[ExecutorInfo] = lock.synchronized {
    val (now, later) = waiting.splitAt(AtOnce)
    waiting = later
    working = now.nonEmpty
    now
  }

  /** Give up the waiting executors, so that no query waits for them in vain. */
  private def giveUp(): Unit = lock.synchronized {
    waiting = Nil
    working = false
  }

  def isWorking: Boolean = lock.synchronized(working)
}
