package org.apache.spark.sql.elastic

import java.io.IOException

import org.apache.spark.SparkThrowable
import org.apache.spark.elastic.Failure
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.StreamingQueryException
import org.apache.spark.util.Utils

/** The part of a query's failure that decisions depend on. */
private[elastic] object FailureFacts {
  private val MaxText = 2000 // longer texts are for the driver's log; the policy only shows them
  private val MaxCauses = 20
  private val MostNamed = 4
  private val Condition = raw"\[[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?\]".r

  /** How Python reports an exception that Java threw in a function of the application. */
  private val OfIo =
    raw"(?m)^(?:Caused by)?: (?:(?:java\.(?:io|net|nio)|org\.apache\.hadoop)\.[\w.$$]*|[\w.$$]*IO)Exception\b".r

  /** The lines of a traceback are indented; the first one that is not names what was raised. */
  private val Traceback = "Traceback (most recent call last):"
  private val Raised = raw"\n(?=\S)".r

  /** @param offsets the end offsets of the micro-batch, empty if not known yet */
  def apply(thrown: Throwable, offsets: String): Failure = {
    val causes = causesOf(thrown)
    val conditions = causes.collect { case t: SparkThrowable => t }.flatMap(FailureKinds.condition(_))
    Failure(
      text(causes.last),
      conditions.filterNot(_.contains("UNCATEGORIZED")).lastOption.orElse(conditions.lastOption),
      causes.map(_.getClass.getName),
      causes.exists(e => e.isInstanceOf[IOException] || OfIo.findFirstIn(String.valueOf(e.getMessage)).isDefined),
      offsets.take(MaxText))
  }

  private def causesOf(thrown: Throwable) =
    Iterator.iterate(thrown)(_.getCause).takeWhile(_ != null).take(MaxCauses).toSeq

  /** Return where each cause was thrown. Messages may hold credentials; the decision has them, redacted. */
  def traces(thrown: Throwable): String =
    causesOf(thrown).map(e => (e.getClass.getName +: e.getStackTrace).mkString("\n\tat ")).mkString("\nCaused by: ")

  /**
   * Return the message without what the application redacts (`spark.redaction.string.regex`). A long one is reduced
   * to its start, Spark's conditions named later, and what Python raised, or else its end. Words stay whole: half a
   * URL would not show that it contains a password.
   */
  def text(e: Throwable): String = {
    val said = Utils.redact(SQLConf.get.stringRedactionPattern, String.valueOf(e.getMessage))
    val half = MaxText / 2
    if (said.length <= MaxText) said
    else {
      val raised = Raised.findFirstMatchIn(said.drop(said.lastIndexOf(Traceback))).map(said.length - _.after.length)
      val rest = raised
        .filter(_ > half && said.contains(Traceback))
        .fold(said.takeRight(half).replaceFirst(raw"^\S*", ""))(said.substring)
      val named =
        Condition.findAllIn(said.drop(half)).toSeq.distinct.filterNot(rest.take(half).contains).take(MostNamed)
      (begin(said) +: named).mkString(" ") + "\n" + (if (rest.length <= half) rest else begin(rest))
    }
  }

  private def begin(said: String): String = said.take(MaxText / 2).replaceFirst(raw"\S*$$", "…")

  /** Return Spark's name for the error that ended a query. */
  def condition(e: StreamingQueryException): Option[String] =
    Option(e.cause).collect { case t: SparkThrowable => t }.flatMap(FailureKinds.condition)
}
