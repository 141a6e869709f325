/**
 * Spark has this package since 4.1. It is declared for Java sources that import all of it, and remains empty. It has
 * no class file, so after a change of such a source the build of these versions has to start clean.
 */
package org.apache.spark.sql.execution.streaming.runtime;
