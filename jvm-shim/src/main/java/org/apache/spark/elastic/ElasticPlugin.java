package org.apache.spark.elastic;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The class that `spark.plugins` names. Any Spark that supports plugins can load it. On a version that the jar was
 * not built for, it logs why, and the application runs as if the plugin were absent. Executors do nothing with it.
 */
public final class ElasticPlugin implements SparkPlugin {
  private static final Logger LOG = LoggerFactory.getLogger(ElasticPlugin.class);
  private static final String PLUGINS = "spark.plugins";

  @Override
  public DriverPlugin driverPlugin() {
    return new Door();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return null;
  }

  private static final class Door implements DriverPlugin {
    private DriverPlugin inside;

    @Override
    public Map<String, String> init(SparkContext sc, PluginContext context) {
      try {
        keepFromExecutors(sc.conf());
        String misfit = Installed.misfit();
        if (misfit == null) {
          // Loaded by name: another Spark version must not even load this class.
          Class<?> driver = Class.forName("org.apache.spark.elastic.ElasticDriver");
          inside = (DriverPlugin) driver.getConstructor().newInstance();
          return inside.init(sc, context);
        }
        LOG.error("spark-elastic: off, the application continues as plain Spark: {}", misfit);
      } catch (Exception | LinkageError e) {
        LOG.error("spark-elastic: could not start, the application continues as plain Spark", e);
      }
      return Collections.emptyMap();
    }

    @Override
    public void registerMetrics(String application, PluginContext context) {
      if (inside != null) {
        inside.registerMetrics(application, context);
      }
    }

    @Override
    public void shutdown() {
      if (inside != null) {
        inside.shutdown();
      }
    }

    /**
     * Hide the plugin from executors. They also load the classes that `spark.plugins` names, and die if their class
     * path lacks one. They have nothing to load here, and they get the driver's settings only later.
     */
    private static void keepFromExecutors(SparkConf conf) {
      List<String> others = new ArrayList<>();
      for (String name : conf.get(PLUGINS, "").split(",")) {
        if (!name.trim().isEmpty() && !name.trim().equals(ElasticPlugin.class.getName())) {
          others.add(name.trim());
        }
      }
      if (others.isEmpty()) {
        conf.remove(PLUGINS);
      } else {
        conf.set(PLUGINS, String.join(",", others));
      }
    }
  }
}
