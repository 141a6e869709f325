package org.apache.spark.elastic

import com.fasterxml.jackson.databind.JsonNode

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging

/**
 * Asks the policy process about batch stages. No answer in time and one that makes no sense are none: Spark's own rule
 * decides. They are counted, the policy process is told how many there were, and the log has the first one.
 */
private[spark] final class StageAdvice(requests: Requests) extends Logging {
  import StageAdvice._

  @volatile private var waitMs = 0L
  @volatile private var silentUntil = System.nanoTime()
  @volatile private var lastUs = 0L
  @volatile private var unanswered = 0L

  /** Who asks waits so long, 0: nobody asks. */
  def configure(decisionWaitMs: Long): Unit = {
    waitMs = decisionWaitMs
    if (waitMs > 0) {
      // The first questions through a connection take long.
      Daemon.start("elastic-warm-up") { Iterator.fill(WarmUp)(Empty).forall(send(_, WarmUpMs).isDefined) }
    }
  }

  /** Whether asking makes sense: a policy process is there, and has not just let somebody wait in vain. */
  def isThere: Boolean = waitMs > 0 && requests.isServed && System.nanoTime() - silentUntil >= 0

  /** How many partitions each is to write; none: as Spark has planned. */
  def counts(questions: Seq[InitialCount]): Seq[Option[Int]] =
    ask(questions, "partitions") { case (_, count) => number(count) }

  /** How many tasks read a source; none: as Spark would have them. */
  def tasks(question: Question): Option[Int] =
    ask(Seq(question), "tasks") { case (_, count) => number(count) }.head

  /** For each the ranges `[start, end)` of its partitions that a task is to read; none: as Spark would. */
  def ranges(questions: Seq[Ranges]): Seq[Option[Seq[(Int, Int)]]] =
    ask(questions, "specs") { (question, specs) =>
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

  /** Asks all at once and waits once; gives an answer for each. After a wait in vain nobody waits again for a second. */
  private def ask[Q <: Question, T](questions: Seq[Q], field: String)(
      read: (Q, JsonNode) => Option[T]): Seq[Option[T]] =
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
          else if (value.isNull) None
          else read(question, value).orElse(nothing(s"the answer makes no sense: ${value.toString.take(200)}"))
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
      logWarning(
        s"spark-elastic: Spark's own rule decides about a batch stage, since $why (said once, counted from now)")
  }
}

private[spark] object StageAdvice {

  /** Where nobody ever answers. */
  val none = new StageAdvice(new Requests)

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
