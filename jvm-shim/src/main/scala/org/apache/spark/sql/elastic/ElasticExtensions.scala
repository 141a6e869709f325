package org.apache.spark.sql.elastic

import org.apache.spark.{sql, SparkContext}
import org.apache.spark.elastic.{Harmless, StageAdvice}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.classic.StreamingQueryManager
import org.apache.spark.sql.internal.{SessionState, StaticSQLConf}

/**
 * Gives each session our query manager in place of Spark's, and our rules for adaptive execution: the first, cloned
 * ones, and those made later. Spark calls this class for each session's extensions because the plugin has added it to
 * `spark.sql.extensions`.
 */
private[spark] final class ElasticExtensions extends (SparkSessionExtensions => Unit) {
  import ElasticExtensions._

  override def apply(extensions: SparkSessionExtensions): Unit = {
    // No analysis, and so no query, is earlier than the building of the check rules.
    extensions.injectCheckRule { session =>
      install(session)
      (_: LogicalPlan) => ()
    }
    // The parser is built while the session's state is: too early to change it, but a thread can wait for it. So an
    // application that asks for `spark.streams` before its first query gets ours too, and not one that it must give up.
    // Where the state cannot be built, the one that waits tries it itself: that must not make another one wait.
    extensions.injectParser { (session, parser) =>
      val isTriedAgain = Thread.currentThread.isInstanceOf[Waiter]
      if (!isTriedAgain && controlOf(session.sparkContext).isDefined) new Waiter(session).start()
      parser
    }
    extensions.injectQueryPostPlannerStrategyRule(_ => MarkExplicitNumbers)
    extensions.injectQueryStagePrepRule(session => InitialCountRule(classic(session), advice(session)))
    extensions.injectQueryStageOptimizerRule(session => RangesRule(classic(session), advice(session)))
    extensions.injectPreCBORule(session => KafkaRelationsRule(classic(session), advice(session)))
    extensions.injectColumnar(session => ScanRule(classic(session), advice(session)))
    extensions.injectColumnar(session => SourceBoundsRule(classic(session), controlOf(session.sparkContext)))
  }
}

private[spark] object ElasticExtensions extends Logging {
  @volatile private var installed: Option[(SparkContext, QueryControl, StageAdvice)] = None

  /** From now on the sessions of `sc` get our query manager and rules. Other extensions are kept. */
  def enable(sc: SparkContext, control: QueryControl, advice: StageAdvice): Unit = {
    installed = Some((sc, control, advice))
    val ours = classOf[ElasticExtensions].getName
    val others = sc.conf.get(StaticSQLConf.SPARK_SESSION_EXTENSIONS).getOrElse(Nil).filterNot(_ == ours)
    sc.conf.set(StaticSQLConf.SPARK_SESSION_EXTENSIONS, others :+ ours)
  }

  def disable(sc: SparkContext): Unit = if (controlOf(sc).isDefined) installed = None

  private def controlOf(sc: SparkContext): Option[QueryControl] =
    installed.collect { case (owner, control, _) if owner eq sc => control }

  /** Where the rules of a session ask; it says that nobody is there once the plugin is off. */
  private def advice(session: sql.SparkSession): StageAdvice =
    installed.collect { case (owner, _, advice) if owner eq session.sparkContext => advice }.getOrElse(StageAdvice.none)

  private def classic(session: sql.SparkSession): SparkSession = session.asInstanceOf[SparkSession]

  private final class Waiter(session: sql.SparkSession) extends Thread("elastic-install") {
    setDaemon(true)
    override def run(): Unit = install(session)
  }

  private def install(session: sql.SparkSession): Unit =
    try
      session match {
        case classic: SparkSession => controlOf(classic.sparkContext).foreach(install(classic, _))
        case _ => // Connect's client: its queries run in the server's sessions
      }
    catch {
      case Harmless(e) =>
        logError(
          "spark-elastic: this session's queries run as in plain Spark, its query manager could not be replaced",
          e)
    }

  private def install(session: SparkSession, control: QueryControl): Unit = {
    val state = session.sessionState
    state.synchronized {
      if (!builderOf(state).isInstanceOf[Builder]) {
        val builder = new Builder(session, state, control)
        set(state, "streamingQueryManagerBuilder", builder)
        // A lazy val that was read already keeps its value: replace that too.
        field("streamingQueryManager").get(state) match {
          case plain: StreamingQueryManager =>
            val ours = builder()
            ours.replace(new FormerManager(plain, session))
            set(state, "streamingQueryManager", ours)
          case _ => // not read yet
        }
      }
    }
  }

  /** Made when somebody first asks for it, as in Spark: each manager adds a listener to the shared bus for good. */
  private final class Builder(session: SparkSession, state: SessionState, control: QueryControl)
      extends (() => StreamingQueryManager) {
    override def apply(): ElasticQueryManager = new ElasticQueryManager(session, state.conf, control)
  }

  private def builderOf(state: SessionState): Any = field("streamingQueryManagerBuilder").get(state)

  private def field(name: String): java.lang.reflect.Field = {
    val field = classOf[SessionState].getDeclaredField(name)
    field.setAccessible(true)
    field
  }

  private def set(state: SessionState, name: String, value: AnyRef): Unit = field(name).set(state, value)
}
