package org.apache.spark

import scala.collection.mutable
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

  implicit final class Iterator213[A](iterator: Iterator[A]) {
    def nextOption(): Option[A] = if (iterator.hasNext) Some(iterator.next()) else None
  }

  implicit final class Traversable213[A](all: Traversable[A]) {
    def maxByOption[B: Ordering](key: A => B): Option[A] = if (all.isEmpty) None else Some(all.maxBy(key))
    def groupMap[K, B](key: A => K)(value: A => B): Map[K, Seq[B]] =
      all.groupBy(key).map { case (k, found) => k -> found.map(value).toSeq }
    def groupMapReduce[K, B](key: A => K)(value: A => B)(reduce: (B, B) => B): Map[K, B] =
      all.groupBy(key).map { case (k, found) => k -> found.map(value).reduce(reduce) }
  }

  implicit final class MutableMap213[K, V](map: mutable.Map[K, V]) {
    def updateWith(key: K)(change: Option[V] => Option[V]): Option[V] = {
      val changed = change(map.get(key))
      changed.fold(map.remove(key): Unit)(map.put(key, _): Unit)
      changed
    }
  }

  implicit final class MutableSet213[A](set: mutable.Set[A]) {
    def filterInPlace(keep: A => Boolean): mutable.Set[A] = {
      set.retain(keep)
      set
    }
  }

  implicit final class PriorityQueueCompanion213(queue: mutable.PriorityQueue.type) {
    def from[A](all: Traversable[A])(implicit order: Ordering[A]): mutable.PriorityQueue[A] =
      mutable.PriorityQueue(all.toSeq: _*)
  }
}
