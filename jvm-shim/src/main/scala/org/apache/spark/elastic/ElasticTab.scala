package org.apache.spark.elastic

import java.nio.charset.StandardCharsets.UTF_8

import scala.xml.{Node, NodeSeq}

import org.apache.commons.io.IOUtils

import org.apache.spark.elastic.Servlets._
import org.apache.spark.ui.{SparkUI, SparkUITab, UIUtils, WebUIPage}

/**
 * The policy's page in Spark's UI: Spark's own header and footer around an empty element, which a script fills from
 * the REST API. So it shows only what a program can read too, works without a policy process, and says so.
 */
private[spark] final class ElasticTab(ui: SparkUI) extends SparkUITab(ui, "elastic") {
  attachPage(new ElasticPage(this))
  ui.attachTab(this)
  ServletAccess.attach(ui, s"${ui.basePath}/elastic/static", new PageFiles)
}

private final class ElasticPage(tab: ElasticTab) extends WebUIPage("") {

  override def render(request: HttpServletRequest): Seq[Node] = {
    def file(name: String): String = UIUtils.prependBaseUri(request, tab.basePath, s"/elastic/static/$name")
    val content: NodeSeq =
      <link rel="stylesheet" href={file("elastic.css")} type="text/css"/>
      <script type="module" src={file("main.js")}></script>
      <noscript><p>This page needs JavaScript. The same can be read at <a href="api/v1/overview">api/v1</a>.</p></noscript>
      <main id="elastic"></main>
    UIUtils.headerSparkPage(request, "Elastic", content, tab)
  }
}

/** Serves the page's scripts and style sheet from the plugin's own jar, wherever Spark has loaded it from. */
private final class PageFiles extends PluginServlet {
  private val Name = "/([a-z]+)\\.(js|css)".r
  private val Types = Map("js" -> "text/javascript", "css" -> "text/css")

  override def doGet(request: HttpServletRequest, response: HttpServletResponse): Unit = {
    val found = Option(request.getPathInfo).collect { case Name(name, kind) => (s"ui/$name.$kind", kind) }
    found.flatMap { case (path, kind) => Option(getClass.getResourceAsStream(path)).map(_ -> kind) } match {
      case None => response.sendError(404)
      case Some((in, kind)) =>
        response.setContentType(Types(kind))
        response.setCharacterEncoding(UTF_8.name)
        try IOUtils.copy(in, response.getOutputStream)
        finally in.close()
    }
  }
}
