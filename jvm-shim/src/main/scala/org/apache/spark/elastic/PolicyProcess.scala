package org.apache.spark.elastic

import java.io.{BufferedReader, File, InputStreamReader, OutputStream}
import java.io.File.pathSeparator
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

/**
 * Keeps one policy process alive: one that exits, hangs or sends nonsense is replaced, after growing delays. After
 * `MaxFailures` within `FailureWindowMs` the application continues as plain Spark, with occasional retries.
 *
 * @param python the interpreter to run
 * @param retryMs delay before the first such retry, doubled each time, up to an hour
 * @param off called with the reason when the policy is given up
 * @param on called when a retried process answers
 */
private[spark] final class PolicyProcess(
    python: String,
    gateway: PolicyGateway,
    version: String,
    retryMs: Long,
    off: String => Unit,
    on: () => Unit)
    extends Logging {
  import PolicyProcess._

  @volatile private var process: Option[Process] = None
  @volatile private var complaint: Option[String] = None
  @volatile private var lastLine = ""
  private var reader: Option[Thread] = None // reads the process's stderr
  @volatile private var ending = false
  private var restarts = 0
  private var isOff = false

  private val keeper = Daemon("elastic-policy")(keep())

  def start(): Unit = keeper.start()

  /** Replace the process, because it sent something that made no sense. */
  def complain(what: String): Unit = {
    complaint = Some(s"its answer made no sense: $what")
    process.foreach(_.destroyForcibly())
  }

  /** End the process, gracefully at first; return when it and its keeper have ended. */
  def stop(): Unit = {
    ending = true
    gateway.close()
    process.foreach { p =>
      if (!p.waitFor(StopMs, TimeUnit.MILLISECONDS)) p.destroyForcibly().waitFor(KillMs, TimeUnit.MILLISECONDS)
    }
    keeper.interrupt()
    if (Thread.currentThread ne keeper) keeper.join(KillMs)
  }

  private def keep(): Unit = {
    var failures = Vector.empty[Long]
    var tries = 0
    try {
      while (!ending) {
        complaint = None
        val reason =
          try watch(spawn())
          catch { case e: java.io.IOException => s"it could not be started: ${e.getMessage} ($Needs)" }
        gateway.ended()
        if (!ending) {
          val now = System.nanoTime() / 1000000L
          failures = failures.filter(_ > now - FailureWindowMs) :+ now
          if (!isOff && failures.size == 1) tries = 0 // no other failure in the window
          restarts += 1
          val cannotRun = process.exists(p => !p.isAlive && p.exitValue == CannotRun)
          if (isOff || cannotRun || failures.size >= MaxFailures) {
            val pause = pauseMs(retryMs, tries)
            val what =
              if (cannotRun) s"the policy process cannot run: $lastLine"
              else s"the policy process failed ${failures.size} times, the last time because $reason"
            if (isOff) logWarning(s"spark-elastic: still off, retrying in $pause ms: $what")
            else off(s"$what; retrying in $pause ms")
            isOff = true
            tries += 1
            Thread.sleep(pause)
          } else {
            val pause = FirstPauseMs << (failures.size - 1)
            logWarning(s"spark-elastic: restarting the policy process in $pause ms: $reason")
            Thread.sleep(pause)
          }
        }
      }
    } catch {
      case _: InterruptedException => // the application is ending
      // No thread is left to restart the process, so nothing may wait for it.
      case e: Throwable => off(s"the policy process is no longer supervised: $e")
    } finally {
      process.foreach(_.destroyForcibly())
      gateway.ended()
    }
  }

  private def spawn(): Process = {
    val builder =
      new ProcessBuilder(python, Installed.jar, "spark_elastic.runtime")
        .redirectOutput(ProcessBuilder.Redirect.to(new File("/dev/null")))
    // An empty entry of the path means the driver's working directory, which may be full of modules.
    builder
      .environment()
      .computeIfPresent("PYTHONPATH", (_, path) => path.split(pathSeparator).filter(_.nonEmpty).mkString(pathSeparator))
    val token = gateway.expectCall()
    val started = builder.start()
    process = Some(started)
    if (ending) started.destroyForcibly()
    reader = Some(readErrors(started))
    // Its standard input stays open until the driver ends in any way: the process reads EOF as the driver's end.
    val handshake = Contract.mapper
      .createObjectNode()
      .put("address", gateway.address.getAddress.getHostAddress)
      .put("port", gateway.address.getPort)
      .put("token", token)
      .put("version", version)
      .put("restarts", restarts)
      .put("requests", true)
    val stdin: OutputStream = started.getOutputStream
    try {
      stdin.write(s"$handshake\n".getBytes(UTF_8))
      stdin.flush()
    } catch { case _: java.io.IOException => } // it has ended by now, and `watch` reports why
    started
  }

  /** Wait for the process to end, and return why it ended. */
  private def watch(started: Process): String = {
    var looked = System.nanoTime()
    while (!started.waitFor(CheckMs, TimeUnit.MILLISECONDS)) {
      val now = System.nanoTime()
      // While this whole JVM stood still, no thread could listen: calls made meanwhile are still to be read.
      if (now - looked > HangMs * 1000000L / 2) gateway.forgiveSilence()
      looked = now
      if (isOff && gateway.isGreeted) {
        isOff = false
        on()
      }
      val silent = gateway.silentMs
      if (silent > HangMs) {
        val hangs = s"it did not answer for $silent ms"
        complaint = Some(hangs)
        // A process that cannot be killed is left behind.
        if (!started.destroyForcibly().waitFor(KillMs, TimeUnit.MILLISECONDS)) return hangs
      }
    }
    complaint.getOrElse {
      reader.foreach(_.join(StopMs)) // its last line says why it ended
      val said = if (lastLine.isEmpty) "" else s": $lastLine"
      s"it ended with exit code ${started.exitValue}$said"
    }
  }

  private def readErrors(started: Process): Thread = {
    lastLine = ""
    Daemon.start("elastic-policy-log") {
      try {
        val lines = new BufferedReader(new InputStreamReader(started.getErrorStream, UTF_8))
        Iterator.continually(lines.readLine()).takeWhile(_ != null).foreach { line =>
          lastLine = line
          val said = s"spark-elastic policy: $line"
          if (line.startsWith("WARNING ") || line.startsWith("ERROR ")) logWarning(said) else logInfo(said)
        }
      } catch {
        case NonFatal(_) => // the stream of a killed process
        case e: Throwable =>
          started.destroyForcibly() // it would block once the pipe is full
          throw e
      }
    }
  }
}

private[spark] object PolicyProcess {

  /** Return the pause before another process is tried, after this number of tries. */
  def pauseMs(retryMs: Long, tries: Int): Long =
    if (retryMs > LongestRetryMs) retryMs else math.min(retryMs << math.min(tries, 20), LongestRetryMs)

  private val CannotRun = 5 // exit code of a Python that cannot run the policy, as in the jar's `__main__.py`
  private val Needs = "the policy engine needs Python 3.10 or later, which spark.elastic.python may name"

  private val MaxFailures = 5
  private val FailureWindowMs = 600000L
  private val LongestRetryMs = 3600000L
  private val FirstPauseMs = 500L
  private val CheckMs = 250L
  private val HangMs = 10000L // a longer silence is a hang; no setting, since there is no reason to change it
  private val StopMs = 2000L
  // A process that is still there after that cannot be killed: it waits for a disk.
  private val KillMs = 500L
}
