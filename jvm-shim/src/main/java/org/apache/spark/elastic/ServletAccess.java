package org.apache.spark.elastic;

import org.apache.spark.ui.SparkUI;

/** Attaches a servlet to Spark's UI: in Java, since scalac needs Spark's own Jetty, shipped under other names. */
interface ServletAccess {
  static void attach(SparkUI ui, String path, PluginServlet servlet) {
    ui.attachHandler(path, servlet, "/*");
  }
}
