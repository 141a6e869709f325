package org.apache.spark.elastic

import com.fasterxml.jackson.databind.JsonNode

import java.util.{LinkedHashMap, Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging

/**
 * Asks the policy process about batch stages. Without an answer in time that makes sense, Spark's own rule decides.
 * Such cases are counted, the policy process is notified of their number, and the first one is logged.
 */
private[spark] final class StageAdvice(requests: Requests, val isOn: Boolean = true) extends Logging {
  import StageAdvice._
  val counts = new Kept[Int](4096) // partition counts of shuffles, by execution and by plan
  private val shares = new Kept[Shares](512)
  private val scans = new Kept[Option[Int]](4096)

  @volatile private var waitMs = 0L
  @volatile private var silentUntil = System.nanoTime()
  @volatile private var lastUs = 0L
  @volatile private var unanswered = 0L

  /** Set how long callers wait; 0 turns questions off. */
  def configure(decisionWaitMs: Long): Unit = {
    waitMs = decisionWaitMs
    if (waitMs > 0) {
      // The first questions through a connection take long.
      Daemon.start("elastic-warm-up") { Iterator.fill(WarmUp)(Empty).forall(send(_, WarmUpMs).isDefined) }
    }
  }

  /** Whether to ask: a policy process is there, and no caller has just waited in vain. */
  def isThere: Boolean = waitMs > 0 && requests.isServed && System.nanoTime() - silentUntil >= 0

  /** Return the partitions that each should write. Without an answer a plan keeps its number, even Spark's own. */
  def partitions(questions: Seq[InitialCount]): Seq[Int] = {
    val asked = questions.map(question => question.copy(kept = counts(question.plan)))
    asked.zip(ask(asked, "partitions") { case (_, count) => number(count) }).map { case (question, answer) =>
      val number = answer.fold(counts(question.plan))(identity).getOrElse(question.planned)
      if (question.plan.nonEmpty) counts(question.plan) = number
      number
    }
  }

  /** Return the number of tasks that read a source, None for Spark's. Without an answer, `plan` keeps its last one. */
  def tasks(question: Question, plan: String): Option[Int] = {
    val before = scans(plan)
    if (before.contains(None)) None // once it was Spark's, it stays so
    else
      ask(Seq(question), "tasks") { case (_, count) => number(count) }.head match {
        case Some(given) =>
          given.foreach(count => scans(plan) = Some(count))
          given
        case None =>
          scans(plan) = before.flatten
          before.flatten
      }
  }

  /**
   * Return for each the ranges `[start, end)` of its partitions that a task should read, or None for Spark's. Without
   * an answer, a plan keeps its last ranges for about the same sizes, even Spark's own.
   */
  def ranges(questions: Seq[Ranges]): Seq[Option[Seq[(Int, Int)]]] = {
    val before =
      questions.map(question => Shares.of(question).flatMap(now => shares(question.plan).filter(_.isLike(now))))
    val asked = questions.zip(before).map { case (question, found) =>
      question.copy(kept = found.map(before => PackedLongs(before.ends.getOrElse(Nil).map(_.toLong).toArray)))
    }
    val answers = ask(asked, "specs")(specs)
    asked.zip(before).zip(answers).map { case ((question, found), answer) =>
      val ends = answer.fold(found.flatMap(_.ends))(_.map(_.map(_._2)))
      Shares.of(question).foreach(now => shares(question.plan) = found.getOrElse(now).copy(ends = ends))
      ends.map(ends => (0 +: ends.init).zip(ends))
    }
  }

  private def specs(question: Ranges, specs: JsonNode): Option[Seq[(Int, Int)]] = {
    val partitions = question.exchanges.head.bytes.values.length
    val found = specs.elements.asScala.map(spec => (spec.path("start").asInt(-1), spec.path("end").asInt(-1))).toSeq
    val starts = found.map(_._1)
    val ends = found.map(_._2)
    Option.when(
      found.nonEmpty && starts == 0 +: ends.init && ends.last == partitions &&
        found.forall { case (start, end) => start < end })(found)
  }

  private def number(n: JsonNode): Option[Int] =
    Option.when(n.isInt && n.asInt >= 1 && n.asInt <= MostPartitions)(n.asInt)

  /**
   * Ask all questions at once and wait once. Return an answer for each, None where no usable one came. After a wait
   * in vain no caller waits again for a second: after 200 ms, that costs a query at most a sixth of its time.
   */
  private def ask[Q <: Question, T](questions: Seq[Q], field: String)(
      read: (Q, JsonNode) => Option[T]): Seq[Option[Option[T]]] =
    if (questions.isEmpty || !isThere) questions.map(_ => None)
    else {
      val began = System.nanoTime()
      val answers = send(questions, waitMs)
      lastUs = (System.nanoTime() - began) / 1000L
      if (answers.isEmpty) {
        silentUntil = System.nanoTime() + PauseMs * 1000000L
        missed(s"no answer within $waitMs ms")
      }
      questions.zipWithIndex.map { case (question, place) =>
        answers.flatMap { found =>
          val value = found.path("answers").path(place).path(field)
          if (value.isMissingNode) nothing("the policy process could not read the question")
          else if (value.isNull) Some(None)
          else
            read(question, value)
              .map(Option(_))
              .orElse(nothing(s"the answer makes no sense: ${value.toString.take(200)}"))
        }
      }
    }

  private def send(questions: Seq[Question], waitMs: Long): Option[JsonNode] = {
    val message = Contract.mapper.createObjectNode()
    val list = message.putArray("questions")
    questions.foreach(question => list.add(Contract.write(question)))
    requests.ask("stages", message.put("unanswered", unanswered).put("last_us", lastUs), waitMs)
  }

  private def nothing(why: String): Option[Nothing] = {
    missed(why)
    None
  }

  private def missed(why: String): Unit = synchronized {
    unanswered += 1
    if (unanswered == 1)
      logWarning(s"spark-elastic: Spark's own rule decides about a batch stage: $why (logged once, then counted)")
  }
}

private[spark] object StageAdvice {
  val none = new StageAdvice(new Requests, isOn = false) // has no policy to ask
  private val MostPartitions = 32768
  private val PauseMs = 1000L
  private val WarmUp = 20
  private val WarmUpMs = 10000L
  private val Empty =
    Seq(
      InitialCount("", Nil, 1, None, None, None, None),
      Ranges("", Nil, None, None, None, None, None),
      SplitSize("", 0, 0, 1, None, 1, 1))
}

/** An LRU map of the last `most` entries, kept for the life of the application. */
private[spark] final class Kept[V](most: Int) {
  private val values = new LinkedHashMap[String, V](16, 0.75f, true) {
    override def removeEldestEntry(eldest: JMap.Entry[String, V]): Boolean = size > most
  }

  def apply(key: String): Option[V] = values.synchronized(Option(values.get(key)))
  def update(key: String, value: V): Unit = values.synchronized {
    values.put(key, value)
    ()
  }
}

/** The sizes of partitions, and the ends of their ranges; None for Spark's ranges. */
private final case class Shares(sizes: Seq[Long], ends: Option[Seq[Int]]) {

  /** Compressed sizes depend on the order of rows, which differs slightly each time. */
  def isLike(now: Shares): Boolean = sizes.length == now.sizes.length &&
    sizes.zip(now.sizes).map { case (before, after) => math.abs(before - after) }.sum <= sizes.sum / 20
}

private object Shares {
  private val MostPartitions = 8192

  def of(question: Ranges): Option[Shares] = {
    val written = question.exchanges.map(_.bytes.values)
    Option.when(question.plan.nonEmpty && written.nonEmpty && written.head.length <= MostPartitions)(
      Shares(written.map(_.toSeq).transpose.map(_.sum), None))
  }
}
