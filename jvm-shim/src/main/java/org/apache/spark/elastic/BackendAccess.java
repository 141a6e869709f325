package org.apache.spark.elastic;

import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;
import org.apache.spark.scheduler.cluster.ExecutorInfo;
import scala.collection.mutable.HashMap;

/**
 * The executors that a cluster's scheduler gives tasks to. Scala hides them, the class file does not: javac finds out at
 * build time what reflection would find out in somebody's job.
 */
final class BackendAccess {
  private BackendAccess() {}

  /** To be read under the lock of `backend`. */
  static HashMap<String, ? extends ExecutorInfo> executors(CoarseGrainedSchedulerBackend backend) {
    return backend.org$apache$spark$scheduler$cluster$CoarseGrainedSchedulerBackend$$executorDataMap();
  }
}
