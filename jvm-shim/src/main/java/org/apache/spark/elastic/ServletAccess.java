package org.apache.spark.elastic;

import org.apache.spark.ui.SparkUI;

/**
 * Attaches a servlet to Spark's UI. In Java, since scalac needs the Jetty classes that Spark was compiled with, which
 * Spark ships under other names.
 */
interface ServletAccess {
  static void attach(SparkUI ui, String path, PluginServlet servlet) {
    ui.attachHandler(path, servlet, "/*");
  }
}
