package org.apache.spark.elastic

import javax.servlet.http

/** The servlet classes, whose package depends on the version. */
private[elastic] abstract class PluginServlet extends http.HttpServlet

private[elastic] object Servlets {
  type HttpServletRequest = http.HttpServletRequest
  type HttpServletResponse = http.HttpServletResponse
}
