package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.streaming.{StateStoreWriter, StreamingSymmetricHashJoinExec}
import org.apache.spark.sql.execution.streaming.StreamingSymmetricHashJoinHelper.{LeftSide, RightSide}
import org.apache.spark.sql.execution.streaming.state.{StateStoreId, SymmetricHashJoinStateManager}
import org.apache.spark.sql.streaming.Trigger

/** There is no real-time mode. */
private[elastic] object RealTime {
  def apply(trigger: Trigger): Option[Long] = None
}

/** The state stores of each partition of an operator. */
private[elastic] object StoreNames {
  def apply(operator: StateStoreWriter): Seq[String] = operator match {
    case _: StreamingSymmetricHashJoinExec => SymmetricHashJoinStateManager.allStateStoreNames(LeftSide, RightSide)
    case _ => Seq(StateStoreId.DEFAULT_STORE_NAME)
  }
}
