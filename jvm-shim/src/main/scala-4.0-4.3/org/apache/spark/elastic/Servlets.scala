package org.apache.spark.elastic

import jakarta.servlet.http

/** The classes of servlets, which have moved. */
private[elastic] object Servlets {
  type HttpServlet = http.HttpServlet
  type HttpServletRequest = http.HttpServletRequest
  type HttpServletResponse = http.HttpServletResponse
}
