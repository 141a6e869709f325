package org.apache.spark.sql.elastic;

import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.OffsetSeq;
import org.apache.spark.sql.execution.streaming.AcceptsLatestSeenOffsetHandler;
import scala.Option;
import scala.collection.immutable.Seq;

/** Tells new sources what was last read, as far as they want to know. */
final class LatestSeen {
  private LatestSeen() {}

  static void tell(Option<OffsetSeq> offsets, Seq<SparkDataStream> sources) {
    AcceptsLatestSeenOffsetHandler.setLatestSeenOffsetOnSources(offsets, sources);
  }
}
