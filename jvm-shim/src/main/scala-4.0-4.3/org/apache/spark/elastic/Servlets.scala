package org.apache.spark.elastic

import jakarta.servlet.http

/** The servlet classes, whose package depends on the version. */
private[elastic] object Servlets {
  type HttpServlet = http.HttpServlet
  type HttpServletRequest = http.HttpServletRequest
  type HttpServletResponse = http.HttpServletResponse
}
