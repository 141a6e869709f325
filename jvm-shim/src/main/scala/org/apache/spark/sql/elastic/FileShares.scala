package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}

/** Shares out files between a number of tasks, evenly; to open a file counts as some bytes of it. */
private[elastic] object FileShares {

  /** A file of `bytes`; `part` makes the part of it that begins at some byte and has so many. */
  final class Input(val bytes: Long, splitable: => Boolean)(val part: (Long, Long) => PartitionedFile) {
    lazy val canBeSplit: Boolean = splitable
  }

  /**
   * At most `tasks` shares, none of them empty. The files are laid in a row, the largest first as Spark does it, and cut
   * where a share is full. A part is an eighth of a share at least: a smaller one is not worth to open the file again.
   */
  def of(inputs: Seq[Input], tasks: Int, opening: Long): Seq[FilePartition] = {
    val share = math.max(1.0, inputs.map(_.bytes + opening).sum.toDouble / tasks)
    val least = share / 8
    var position = 0.0
    val parts = inputs.sortBy(-_.bytes).flatMap { input =>
      val begin = position
      val weight = input.bytes + opening
      val end = begin + weight
      position = end
      // Each part opens the file anew, so that is spread over the bytes: halves of one file are its halves.
      def byteAt(place: Double) = ((place - begin) * input.bytes / math.max(1L, weight)).round
      val ends = cuts(begin + least, end - least, share)
      val inside = if (ends.nonEmpty && input.canBeSplit) ends else Nil
      (begin +: inside).zip(inside :+ end).flatMap { case (first, last) =>
        val (from, until) = (byteAt(first), byteAt(last))
        val index = math.min(tasks - 1, ((first + last) / 2 / share).toInt)
        // Of a file that can be split nothing is left where it is empty; what cannot be may have a row without a byte.
        Option.when(from < until || !input.canBeSplit)(index -> input.part(from, until - from))
      }
    }
    parts.groupMap(_._1)(_._2).toSeq.sortBy(_._1).zipWithIndex.map { case ((_, files), index) =>
      FilePartition(index, files.toArray)
    }
  }

  /** The ends of shares from `first` to `last`. */
  private def cuts(first: Double, last: Double, share: Double): Seq[Double] =
    math.ceil(first / share).toLong.to(math.floor(last / share).toLong).map(_ * share)
}
