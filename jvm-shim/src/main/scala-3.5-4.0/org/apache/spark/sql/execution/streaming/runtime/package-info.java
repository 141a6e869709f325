/** Spark has this package since 4.1. It is declared for Java sources that import all of it, and remains empty. */
package org.apache.spark.sql.execution.streaming.runtime;
