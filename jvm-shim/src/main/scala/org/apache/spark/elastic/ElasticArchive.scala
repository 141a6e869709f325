package org.apache.spark.elastic

import java.nio.charset.StandardCharsets.UTF_8
import java.util.NoSuchElementException

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.elastic.Servlets._
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.status.KVUtils.KVIndexParam
import org.apache.spark.ui.SparkUI
import org.apache.spark.util.kvstore.KVStore

/** The API's own last answers, by path. An event, for the event log; a History Server without the jar skips it. */
private[spark] case class ElasticArchive(answers: Map[String, String]) extends SparkListenerEvent

private[spark] object ElasticArchive {

  /** Write the archive to the event log, if there is one. */
  def post(sc: SparkContext, requests: Requests): Unit =
    if (sc.eventLogDir.isDefined) ask(requests).foreach(sc.listenerBus.post)

  /** Ask for the archive; None without a policy process, or if it is too slow for an ending application. */
  private def ask(requests: Requests): Option[ElasticArchive] = {
    val request = HttpRequest("GET", Path, "", Map.empty, Array.emptyByteArray, None, "", mayModify = false)
    requests
      .ask("reads", Contract.mapper.valueToTree(request), WaitMs)
      .map(Contract.mapper.treeToValue(_, classOf[HttpAnswer]))
      .filter(_.status == 200)
      .map { answer =>
        val answers = Contract.mapper.readTree(answer.body).path("answers")
        ElasticArchive(answers.properties.asScala.map(entry => entry.getKey -> entry.getValue.asText).toMap)
      }
  }

  // Not below /elastic/api, so that no one else can ask for it.
  private val Path = "/elastic/archive"
  private val WaitMs = 2000L
}

/** An answer in the store of the History Server. */
private[spark] final class ArchivedAnswer(@KVIndexParam val path: String, val body: String)

/** The tab in the History Server, for applications whose event log has an archive. */
private[spark] final class ElasticHistory extends AppHistoryServerPlugin {

  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    if (!Linkage.has(Part.Archive)) Nil
    else
      Seq(new SparkListener {
        override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
          case ElasticArchive(answers) =>
            answers.foreach { case (path, body) => store.write(new ArchivedAnswer(path, body)) }
          case _ =>
        }
      })

  override def setupUI(ui: SparkUI): Unit =
    if (Linkage.has(Part.Archive) && Linkage.has(Part.Tab) && ui.store.store.count(classOf[ArchivedAnswer]) > 0) {
      new ElasticTab(ui)
      ServletAccess.attach(ui, s"${ui.basePath}/elastic/api/v1", new ArchiveServlet(ui.store.store))
    }
}

/** Serves the API's last answers, always as whole lists from which the page takes the part that it needs. */
private final class ArchiveServlet(store: KVStore) extends PluginServlet {

  override def doGet(request: HttpServletRequest, response: HttpServletResponse): Unit = {
    val body =
      try store.read(classOf[ArchivedAnswer], Option(request.getPathInfo).getOrElse("/").drop(1)).body
      catch {
        case _: NoSuchElementException =>
          response.setStatus(404)
          """{"errors":["the event log does not have this"]}"""
      }
    response.setContentType("application/json")
    response.getOutputStream.write(body.getBytes(UTF_8))
  }
}
