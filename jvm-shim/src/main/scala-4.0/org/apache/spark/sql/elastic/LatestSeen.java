package org.apache.spark.sql.elastic;

import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.OffsetSeq;
import org.apache.spark.sql.execution.streaming.AcceptsLatestSeenOffsetHandler;
import scala.Option;
import scala.collection.immutable.Seq;

/** Reports the latest offsets read to new sources that accept them. */
final class LatestSeen {
  private LatestSeen() {}

  static void tell(Option<OffsetSeq> offsets, Seq<SparkDataStream> sources) {
    AcceptsLatestSeenOffsetHandler.setLatestSeenOffsetOnSources(offsets, sources);
  }
}
