package org.apache.spark

import scala.util.Try

/** The parts of Scala 2.13's library that are used here and missing from 2.12. */
private[spark] trait Scala213 {
  implicit final class OptionCompanion213(option: Option.type) {
    def when[A](condition: Boolean)(value: => A): Option[A] = if (condition) Some(value) else None
  }

  implicit final class Text213(text: String) {
    def toIntOption: Option[Int] = Try(text.toInt).toOption
    def toLongOption: Option[Long] = Try(text.toLong).toOption
    def toDoubleOption: Option[Double] = Try(text.toDouble).toOption
  }

  implicit final class Traversable213[A](all: Traversable[A]) {
    def maxByOption[B: Ordering](key: A => B): Option[A] = if (all.isEmpty) None else Some(all.maxBy(key))
    def groupMap[K, B](key: A => K)(value: A => B): Map[K, Seq[B]] =
      all.groupBy(key).map { case (k, found) => k -> found.map(value).toSeq }
  }
}
