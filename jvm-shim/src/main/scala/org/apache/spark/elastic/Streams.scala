package org.apache.spark.elastic

import java.io.{ByteArrayOutputStream, InputStream, OutputStream}

/** What Java has of its own only from 9 on. */
private[spark] object Streams {
  private val Part = 8192

  /** Copies at most so many bytes. */
  def copy(in: InputStream, out: OutputStream, most: Long = Long.MaxValue): Unit = {
    val part = new Array[Byte](Part)
    def next(left: Long): Int = if (left <= 0) -1 else in.read(part, 0, math.min(Part.toLong, left).toInt)
    var left = most
    var n = next(left)
    while (n >= 0) {
      out.write(part, 0, n)
      left -= n
      n = next(left)
    }
  }

  /** Reads at most so many bytes. */
  def read(in: InputStream, most: Long = Long.MaxValue): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    copy(in, bytes, most)
    bytes.toByteArray
  }
}
