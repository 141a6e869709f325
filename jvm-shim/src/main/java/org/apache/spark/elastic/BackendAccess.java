package org.apache.spark.elastic;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;
import scala.Tuple2;

/**
 * Reads the executors that a cluster's scheduler backend gives tasks to. They are private in Scala but public in the
 * class file, so javac checks the access at build time. Reflection would fail only in a user's job.
 */
interface BackendAccess {
  static Map<String, org.apache.spark.scheduler.cluster.ExecutorInfo> executors(CoarseGrainedSchedulerBackend backend) {
    Map<String, org.apache.spark.scheduler.cluster.ExecutorInfo> found = new HashMap<>();
    synchronized (backend) {
      scala.collection.Iterator<? extends Tuple2<String, ? extends org.apache.spark.scheduler.cluster.ExecutorInfo>> all =
          backend.org$apache$spark$scheduler$cluster$CoarseGrainedSchedulerBackend$$executorDataMap().iterator();
      while (all.hasNext()) {
        Tuple2<String, ? extends org.apache.spark.scheduler.cluster.ExecutorInfo> next = all.next();
        found.put(next._1(), next._2());
      }
    }
    return found;
  }
}
