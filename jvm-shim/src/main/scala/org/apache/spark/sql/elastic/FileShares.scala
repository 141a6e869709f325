package org.apache.spark.sql.elastic

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}

/** Distributes Spark's file partitions over a number of tasks, evenly and in the same order. */
private[elastic] object FileShares {

  /** A stretch of a file, made of consecutive parts. It can be cut wherever Spark has cut it. */
  final class Input(parts: Seq[PartitionedFile], splitable: => Boolean) {
    val bytes: Long = parts.map(_.length).sum
    lazy val canBeSplit: Boolean = parts.size > 1 || splitable

    def part(from: Long, until: Long): PartitionedFile = {
      val start = parts.head.start + from
      parts.takeWhile(_.start <= start).last.copy(start = start, length = until - from) // and its locations
    }
  }

  /** Join parts that are consecutive in a file and in the row, so that the file is opened once. */
  def inputs(row: Seq[PartitionedFile])(splitable: PartitionedFile => Boolean): Seq[Input] = {
    val stretches = ArrayBuffer.empty[ArrayBuffer[PartitionedFile]]
    row.foreach { part =>
      if (stretches.lastOption.exists(stretch => follow(stretch.last, part))) stretches.last += part
      else stretches += ArrayBuffer(part)
    }
    stretches.map(stretch => new Input(stretch.toSeq, splitable(stretch.head))).toSeq
  }

  /** Only pieces of one file follow each other: it may be listed twice, or with other partition values. */
  private def follow(first: PartitionedFile, second: PartitionedFile): Boolean =
    first.length > 0 && first.start + first.length == second.start &&
      first.copy(start = second.start, length = second.length, locations = second.locations) == second

  /**
   * Return at most `tasks` shares, none of them empty: as many as inputs or `tasks`, whichever is less, or more where
   * inputs are cut. A piece is at least an eighth of a share; a smaller one is not worth opening the file again.
   *
   * @param opening cost of opening a file, in bytes; it is spread over the bytes read, so that halves are halves
   */
  def of(inputs: Seq[Input], tasks: Int, opening: Long): Seq[FilePartition] = {
    def weight(input: Input) = input.bytes.toDouble + opening
    val shares = ArrayBuffer(ArrayBuffer.empty[PartitionedFile])
    var left = inputs.iterator.map(weight).sum
    val even = left / tasks
    val least = math.max(1.0, even / 8)
    var full, room = even
    def canBeCut(input: Input) = input.bytes >= 2 * least && input.canBeSplit
    // The number of shares that each input certainly fills.
    val fills = inputs.map(input => if (canBeCut(input)) math.max(1L, (weight(input) / even).toLong) else 1L)
    var filled = fills.sum

    def nextShare(): Unit = {
      shares += ArrayBuffer.empty
      full = left / (tasks - shares.size + 1)
      room = full
    }

    inputs.zip(fills).foreach { case (input, shareOf) =>
      val cut = canBeCut(input)
      val perByte = weight(input) / math.max(1L, input.bytes)
      if (!cut && shares.last.nonEmpty && filled <= tasks - shares.size) nextShare()
      filled -= shareOf

      def add(from: Long, until: Long, bears: Double): Unit = {
        shares.last += input.part(from, until)
        left -= bears
        room -= bears
      }

      @annotation.tailrec
      def place(from: Long): Unit = {
        val rest = if (from == 0) weight(input) else (input.bytes - from) * perByte
        val end = from + (room / perByte).round
        if (shares.size == tasks || rest <= room + full / 8) add(from, input.bytes, rest)
        else if (cut && end - from >= least && input.bytes - end >= least) {
          add(from, end, (end - from) * perByte)
          nextShare()
          place(end)
        } else if (shares.last.isEmpty || rest < 2 * room) add(from, input.bytes, rest)
        else {
          nextShare()
          place(from)
        }
      }
      place(0L)
    }
    shares.toSeq.zipWithIndex.map { case (files, index) => FilePartition(index, files.toArray) }
  }
}
