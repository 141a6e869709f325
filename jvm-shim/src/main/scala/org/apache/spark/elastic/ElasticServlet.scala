package org.apache.spark.elastic

import java.io.{ByteArrayOutputStream, IOException}
import java.net.{InetAddress, URI}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.Semaphore

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.elastic.Servlets._
import org.apache.spark.ui.SparkUI
import org.apache.spark.util.Utils

/**
 * Passes requests to the policy process, and its answers back. It decides nothing, but keeps clients from taking more
 * of Jetty's 200 threads, or for longer, than Spark's pages can spare. Spark's filters have checked view permission.
 */
private[spark] final class ElasticServlet(ui: SparkUI, requests: Requests) extends PluginServlet {
  import ElasticServlet._

  private val readers = new Semaphore(MostReads)
  private val writers = new Semaphore(MostWrites)

  override protected def service(request: HttpServletRequest, response: HttpServletResponse): Unit = {
    val writes = !Reads.contains(request.getMethod)
    val room = if (writes) writers else readers
    if (request.getMethod == "TRACE") refuse(response, 405, "TRACE is not allowed here: use GET")
    else if (!room.tryAcquire()) busy(response, "too many requests at once")
    else
      try serve(request, response, writes)
      finally room.release()
  }

  private def serve(request: HttpServletRequest, response: HttpServletResponse, writes: Boolean): Unit = {
    val mayModify = ui.killEnabled && ui.securityManager.checkModifyPermissions(request.getRemoteUser)
    // A client without write permission gets that answer whatever it sends.
    val body = if (writes && mayModify) read(request) else Right(Array.emptyByteArray)
    body match {
      case Left((status, why)) =>
        // The rest of the body is not worth reading, so the connection cannot be reused.
        response.setHeader("Connection", "close")
        refuse(response, status, why)
      case Right(bytes) =>
        requests.ask(if (writes) "writes" else "reads", message(request, bytes, mayModify), AnswerMs) match {
          case Some(found) =>
            val answer = Contract.mapper.treeToValue(found, classOf[HttpAnswer])
            send(response, answer.status, answer.headers, answer.body)
          case None => busy(response, "the policy process does not answer")
        }
    }
  }

  private def message(request: HttpServletRequest, body: Array[Byte], mayModify: Boolean): ObjectNode =
    Contract.mapper.valueToTree(
      HttpRequest(
        method = request.getMethod,
        path = Seq(request.getContextPath, request.getServletPath, request.getPathInfo).filter(_ != null).mkString,
        query = Option(request.getQueryString).getOrElse(""),
        headers = Headers.flatMap(name => Option(request.getHeader(name)).map(name -> _)).toMap,
        body = body,
        user = Option(request.getRemoteUser),
        address = request.getRemoteAddr,
        mayModify = mayModify,
        hosts = if (mayModify) hosts else Nil,
        proxies = proxies(request)))

  /** The known names of this UI: those of the driver, of the machine, and of a master that is its proxy. */
  private lazy val hosts: Seq[String] = {
    val master = ui.conf.get("spark.master", "")
    val masters = if (master.startsWith("spark://")) Utils.parseStandaloneMasterUrls(master).toSeq else Nil
    val urls = masters ++ ui.conf.getOption("spark.ui.reverseProxyUrl") :+ ui.webUrl
    val named = urls.flatMap(url => Try(new URI(url).getHost).toOption).filter(_ != null)
    val machine = Try(InetAddress.getLocalHost).toOption.toSeq.flatMap(m => Seq(m.getHostName, m.getCanonicalHostName))
    (named ++ machine ++ ui.conf.getOption("spark.driver.host") :+ Utils.localHostName()).distinct
  }

  /** Return YARN's proxy URLs. The proxy hides the requested host, but the filter that admits it knows them. */
  private def proxies(request: HttpServletRequest): Seq[String] =
    request.getServletContext.getFilterRegistrations.values.asScala.toSeq
      .flatMap(filter => Option(filter.getInitParameter("PROXY_URI_BASES")))
      .flatMap(_.split(","))

  /** Return the body, or the status and the reason why there is none. */
  private def read(request: HttpServletRequest): Either[(Int, String), Array[Byte]] = {
    val tooLarge = (413, s"the body has more than the allowed $MostBytes bytes: send less")
    val tooSlow = (408, s"the body did not come within $BodyMs ms: send it at once")
    val until = System.nanoTime() + BodyMs * 1000000L
    val bytes = new ByteArrayOutputStream
    val part = new Array[Byte](8192)
    try {
      val in = request.getInputStream
      var n = if (request.getContentLengthLong > MostBytes) MostBytes + 1 else in.read(part)
      while (n >= 0 && bytes.size + n <= MostBytes && System.nanoTime() < until) {
        bytes.write(part, 0, n)
        n = in.read(part)
      }
      if (n < 0) Right(bytes.toByteArray) else Left(if (bytes.size + n > MostBytes) tooLarge else tooSlow)
    } catch { case _: IOException => Left(tooSlow) } // Jetty closes a connection after 8 s of silence
  }

  private def busy(response: HttpServletResponse, why: String): Unit = {
    response.setHeader("Retry-After", "1")
    refuse(response, 503, s"$why: try again")
  }

  private def refuse(response: HttpServletResponse, status: Int, why: String): Unit = {
    val body = Contract.mapper.createObjectNode()
    body.putArray("errors").add(why)
    send(response, status, Map("Content-Type" -> "application/json"), body.toString)
  }

  private def send(response: HttpServletResponse, status: Int, headers: Map[String, String], body: String): Unit = {
    response.setStatus(status)
    headers.foreach { case (name, value) => response.setHeader(name, value) }
    response.getOutputStream.write(body.getBytes(UTF_8))
  }
}

private[elastic] object ElasticServlet {

  def attach(ui: SparkUI, requests: Requests): Unit = {
    val servlet = new ElasticServlet(ui, requests)
    Seq("/elastic/api", "/elastic/metrics").foreach(ServletAccess.attach(ui, _, servlet))
  }

  private val Reads = Set("GET", "HEAD", "OPTIONS")
  private val Headers =
    Seq("Content-Type", "If-Match", "Origin", "Sec-Fetch-Site", "Host", "Forwarded", "X-Forwarded-Host")
  private val MostReads = 64
  private val MostWrites = 8
  private val MostBytes = 64 * 1024
  private val BodyMs = 5000L
  private val AnswerMs = 10000L
}
