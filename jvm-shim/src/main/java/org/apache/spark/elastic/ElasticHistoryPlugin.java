package org.apache.spark.elastic;

import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * The Elastic tab in the History Server. A server of any Spark version finds this class by name and calls it for each
 * application. On a Spark that the jar was not built for, it shows nothing.
 */
public final class ElasticHistoryPlugin implements AppHistoryServerPlugin, HistoryPluginOfScala212 {
  private static final Logger LOG = LoggerFactory.getLogger(ElasticHistoryPlugin.class);

  private final AppHistoryServerPlugin inside = load();

  private static AppHistoryServerPlugin load() {
    try {
      String misfit = Installed.misfit();
      if (misfit == null) {
        Class<?> plugin = Class.forName("org.apache.spark.elastic.ElasticHistory");
        return (AppHistoryServerPlugin) plugin.getConstructor().newInstance();
      }
      LOG.warn("spark-elastic: no Elastic tab in the History Server: {}", misfit);
    } catch (Exception | LinkageError e) {
      LOG.warn("spark-elastic: no Elastic tab in the History Server", e);
    }
    return null;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Seq<SparkListener> createListeners(SparkConf conf, ElementTrackingStore store) {
    return inside == null
        ? (Seq<SparkListener>) (Object) Nil$.MODULE$
        : (Seq<SparkListener>) (Object) inside.createListeners(conf, store);
  }

  @Override
  public void setupUI(SparkUI ui) {
    if (inside != null) {
      inside.setupUI(ui);
    }
  }
}

/** The method's signature in Scala 2.12, so that the class has both variants. */
interface HistoryPluginOfScala212 {
  scala.collection.Seq<SparkListener> createListeners(SparkConf conf, ElementTrackingStore store);
}
