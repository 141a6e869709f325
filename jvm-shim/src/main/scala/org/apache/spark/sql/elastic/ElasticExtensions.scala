package org.apache.spark.sql.elastic

import org.apache.spark.{sql, SparkContext}
import org.apache.spark.elastic.{Harmless, Linkage, Part, StageAdvice}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.internal.StaticSQLConf

/**
 * Adds the plugin's query listener and its rules to each session: the first one, clones, and later ones. Spark calls
 * it for each session's extensions because the plugin has added it to `spark.sql.extensions`.
 */
private[spark] final class ElasticExtensions extends (SparkSessionExtensions => Unit) {

  // Each part injects its own rules, since nothing may be loaded of a part that is off.
  override def apply(extensions: SparkSessionExtensions): Unit = {
    if (Linkage.has(Part.Queries)) QueryListener.inject(extensions)
    if (Linkage.has(Part.Counts)) InitialCountRule.inject(extensions)
    if (Linkage.has(Part.Ranges)) RangesRule.inject(extensions)
    if (Linkage.has(Part.KafkaReads)) KafkaRelationsRule.inject(extensions)
    if (Linkage.has(Part.Scans)) ScanRule.inject(extensions)
    if (Linkage.has(Part.SourceBounds)) SourceBoundsRule.inject(extensions)
    if (Linkage.has(Part.BatchFormats)) BatchFormatRule.inject(extensions)
  }
}

private[spark] object ElasticExtensions {
  @volatile private var installed: Option[(SparkContext, QueryControl, StageAdvice)] = None

  /**
   * Give the sessions of `sc` the plugin's listener and rules. Other extensions are kept, and come after these: a
   * native engine takes over exchanges as it finds them, so they need their numbers by then.
   */
  def enable(sc: SparkContext, control: QueryControl, advice: StageAdvice): Unit = {
    installed = Some((sc, control, advice))
    val ours = classOf[ElasticExtensions].getName
    val others = sc.conf.get(StaticSQLConf.SPARK_SESSION_EXTENSIONS).getOrElse(Nil).filterNot(_ == ours)
    sc.conf.set(StaticSQLConf.SPARK_SESSION_EXTENSIONS, ours +: others)
  }

  def disable(sc: SparkContext): Unit = if (controlOf(sc).isDefined) installed = None

  def controlOf(sc: SparkContext): Option[QueryControl] =
    installed.collect { case (owner, control, _) if owner eq sc => control }

  /** Return the advice for a session's rules, which reports that no policy is there once the plugin is off. */
  def advice(session: sql.SparkSession): StageAdvice =
    installed.collect { case (owner, _, advice) if owner eq session.sparkContext => advice }.getOrElse(StageAdvice.none)

  def classic(session: sql.SparkSession): SparkSession = session.asInstanceOf[SparkSession]
}

/** Guards changes to plans: an error costs the change, never the query. */
private[elastic] object UnlessItFails extends Logging {
  def apply[T](asItIs: => T)(changed: => T): T =
    try changed
    catch {
      case Harmless(e) =>
        logWarning("spark-elastic: a part of a plan is left unchanged", e)
        asItIs
    }
}
