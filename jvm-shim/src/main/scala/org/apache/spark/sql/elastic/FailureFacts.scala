package org.apache.spark.sql.elastic

import java.io.IOException

import org.apache.spark.SparkThrowable
import org.apache.spark.elastic.Failure
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.StreamingQueryException
import org.apache.spark.util.Utils

/** The part of a query's failure that decisions are made from. */
private[elastic] object FailureFacts {

  /** Longer texts are for the driver's log; the policy only shows them. */
  private val MaxText = 2000
  private val MaxCauses = 20
  private val MostNamed = 4
  private val Condition = raw"\[[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?\]".r

  /** How Python tells of an exception that Java has thrown in a function of the application. */
  private val OfIo =
    raw"(?m)^(?:Caused by)?: (?:(?:java\.(?:io|net|nio)|org\.apache\.hadoop)\.[\w.$$]*|[\w.$$]*IO)Exception\b".r

  /** @param offsets what the micro-batch was to read up to, empty if that was not known yet */
  def apply(thrown: Throwable, offsets: String): Failure = {
    val causes = Iterator.iterate(thrown)(_.getCause).takeWhile(_ != null).take(MaxCauses).toSeq
    val conditions = causes.collect { case t: SparkThrowable => t }.flatMap(FailureKinds.condition(_))
    Failure(
      text(causes.last),
      conditions.filterNot(_.contains("UNCATEGORIZED")).lastOption.orElse(conditions.lastOption),
      causes.map(_.getClass.getName),
      causes.exists(e => e.isInstanceOf[IOException] || OfIo.findFirstIn(String.valueOf(e.getMessage)).isDefined),
      offsets.take(MaxText))
  }

  /**
   * Without what the application wants nobody to see (`spark.redaction.string.regex`). Of what is too long there are the
   * begin and the end, where Python says what it was, and Spark's conditions that are named between them. All have whole
   * words: of half a URL nobody could tell that it has a password in it.
   */
  def text(e: Throwable): String = {
    val said = Utils.redact(SQLConf.get.stringRedactionPattern, String.valueOf(e.getMessage))
    if (said.length <= MaxText) said
    else {
      val named = Condition.findAllIn(said.drop(MaxText / 2).dropRight(MaxText / 2)).toSeq.distinct.take(MostNamed)
      val (begin, end) = (said.take(MaxText / 2), said.takeRight(MaxText / 2))
      begin.replaceFirst(raw"\S*$$", "… ") + named.map(_ + " … ").mkString + end.replaceFirst(raw"^\S*", "")
    }
  }

  /** Spark's name for what has ended a query. */
  def condition(e: StreamingQueryException): Option[String] =
    Option(e.cause).collect { case t: SparkThrowable => t }.flatMap(FailureKinds.condition)
}
