package org.apache.spark.sql.elastic

import java.security.PrivilegedAction
import java.util.Properties

import org.apache.hadoop.security.UserGroupInformation

import org.apache.spark.{JobArtifactSet, SparkContext}
import org.apache.spark.sql.SparkSession
import org.apache.spark.util.Utils

/**
 * What Spark takes from the thread that starts a query: local properties (scheduler pool, tags, call site), the active
 * session, the class loader, Connect's artifacts, Hadoop's user. Kept from the application's own call, so that later runs get it too.
 */
private[elastic] final class ThreadContext(sc: SparkContext) {
  private val properties: Properties = Utils.cloneProperties(sc.getLocalProperties)
  private val callSite = Utils.getCallSite()
  private val classLoader = Thread.currentThread.getContextClassLoader
  private val artifacts = JobArtifactSet.getCurrentJobArtifactState
  private val active = SparkSession.getActiveSession
  private val user = UserGroupInformation.getCurrentUser

  /** Gives what the calling thread runs the call site of the application's own call. */
  def showCallSite(): Unit = sc.setCallSite(callSite)

  /** Runs `body` in a new daemon thread that looks to Spark like the one this context was taken from. */
  def start(name: String)(body: => Unit): Thread = {
    val asUser: PrivilegedAction[Unit] = () => {
      sc.setLocalProperties(Utils.cloneProperties(properties))
      showCallSite()
      active match {
        case Some(session) => SparkSession.setActiveSession(session)
        case None => SparkSession.clearActiveSession()
      }
      artifacts match {
        case Some(state) => JobArtifactSet.withActiveJobArtifactState(state)(body)
        case None => body
      }
    }
    val thread = new Thread(() => user.doAs(asUser), name)
    thread.setDaemon(true)
    thread.setContextClassLoader(classLoader)
    thread.start()
    thread
  }
}
