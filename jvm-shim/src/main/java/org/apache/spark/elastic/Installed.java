package org.apache.spark.elastic;

import java.io.IOException;
import java.io.InputStream;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Properties;

/**
 * What this jar was built for, and whether the running Spark matches. Another Spark version loads only this class and
 * the two that Spark finds by name, so they target Java 8. This class and ElasticPlugin use no Scala collection.
 */
final class Installed {
  private Installed() {}

  private static final Properties BUILT = read();

  private static Properties read() {
    Properties properties = new Properties();
    try (InputStream in = Installed.class.getResourceAsStream("/spark-elastic.properties")) {
      properties.load(in);
    } catch (IOException | RuntimeException e) {
      // A jar without this file fits no Spark.
    }
    return properties;
  }

  static String built(String property) {
    return BUILT.getProperty(property, "unknown");
  }

  /** Return the local path of this jar, wherever it came from: the policy process is started from it. */
  static String jar() throws IOException {
    URL place = Installed.class.getProtectionDomain().getCodeSource().getLocation();
    try {
      return Paths.get(place.toURI()).toAbsolutePath().toString();
    } catch (URISyntaxException | RuntimeException e) {
      throw new IOException("the jar is no local file: " + place, e);
    }
  }

  /** Return why nothing in this jar can work here, or null if it can; a custom build of the same version may do. */
  static String misfit() {
    String spark = spark();
    String binary = minor(scala.util.Properties.versionNumberString());
    if (minor(spark).equals(minor(built("spark"))) && binary.equals(minor(built("scala")))) {
      return null;
    }
    String wanted = minor(spark) + "_" + binary;
    boolean exists = Arrays.asList(built("jars").split(",")).contains(wanted);
    return String.format(
        "the jar is for Spark %s with Scala %s, this is Spark %s with Scala %s: %s",
        minor(built("spark")),
        minor(built("scala")),
        spark,
        binary,
        exists
            ? "take spark-elastic_" + wanted + "-" + built("version") + ".jar, as `spark-elastic jar` prints it"
            : "there is no jar for it, only for " + built("jars").replace(",", ", "));
  }

  /** Return the running Spark's version, from its package object since there may be no SparkContext. */
  private static String spark() {
    try {
      Class<?> found = Class.forName("org.apache.spark.package$");
      return (String) found.getMethod("SPARK_VERSION").invoke(found.getField("MODULE$").get(null));
    } catch (ReflectiveOperationException e) {
      return "unknown";
    }
  }

  private static String minor(String version) {
    String[] numbers = version.split("\\.");
    return numbers.length < 2 ? version : numbers[0] + "." + numbers[1];
  }
}
