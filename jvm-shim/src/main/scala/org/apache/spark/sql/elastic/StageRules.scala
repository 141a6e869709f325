package org.apache.spark.sql.elastic

import scala.collection.mutable

import org.apache.spark.elastic.{InitialCount, PackedLongs, PlannedExchange, Ranges}
import org.apache.spark.elastic.{StageAdvice, WrittenExchange}
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, SparkPlan, UnaryExecNode, UnionExec}
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastNestedLoopJoinExec, CartesianProductExec}
import org.apache.spark.sql.internal.SQLConf

import Moved.SparkSession

/** What both rules know: which shuffles go together, what to call them, and what is left alone. */
private[elastic] object StageRules {

  /** Numbers that Spark has chosen, and not the user. */
  val Origins: Seq[ShuffleOrigin] = Seq(ENSURE_REQUIREMENTS, REPARTITION_BY_COL)

  /**
   * The groups of shuffles that have to keep the same partitions, such as the two sides of a join. `plan` is a stage,
   * down to its exchanges. A join of each with each works far more than its bytes say: its group is not among them.
   */
  def groups(plan: SparkPlan): Seq[Seq[SparkPlan]] = plan match {
    case shuffle if isShuffle(shuffle) => Seq(Seq(shuffle))
    case _: Exchange | _: QueryStageExec => Nil
    case unary: UnaryExecNode => groups(unary.child)
    case union: UnionExec if union.outputPartitioning.isInstanceOf[UnknownPartitioning] =>
      union.children.flatMap(groups)
    case join: BroadcastHashJoinExec => join.children.flatMap(groups)
    // Beside something that is no exchange they have the number of its partitions.
    case other =>
      val read = inputs(other)
      if (read.forall(isExchange)) Seq(read.filter(isShuffle)) else Nil
  }

  private def inputs(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case leaf if isExchange(leaf) || leaf.children.isEmpty => Seq(leaf)
    case explodes @ (_: CartesianProductExec | _: BroadcastNestedLoopJoinExec) => Seq(explodes)
    case other => other.children.flatMap(inputs)
  }

  private def isShuffle(plan: SparkPlan): Boolean = plan match {
    case _: ShuffleExchangeExec | _: ShuffleQueryStageExec => true
    case AQEShuffleReadExec(_: ShuffleQueryStageExec, _) => true
    case _ => false
  }

  private def isExchange(plan: SparkPlan): Boolean =
    isShuffle(plan) || plan.isInstanceOf[Exchange] || plan.isInstanceOf[ExchangeQueryStageExec]

  /** The partitions that an exchange is to write. Not its `numPartitions`, which would run what is below it. */
  def planned(exchange: ShuffleExchangeExec): Int = exchange.outputPartitioning.numPartitions

  /** What the size of an exchange depends on: the logical plan that it is the output of, and its data. Costly to make. */
  def source(exchange: ShuffleExchangeLike): String = logical(exchange).map(SamePlan.name).getOrElse("")

  def logical(exchange: ShuffleExchangeLike): Option[LogicalPlan] =
    exchange.child.collectFirst { case plan if plan.logicalLink.isDefined => plan.logicalLink.get }

  /** The value of a setting, if the user has set one of its names. */
  def setByUser[T](session: SparkSession, names: ConfigEntry[_]*)(value: => T): Option[T] =
    Option.when(names.exists(entry => session.sessionState.conf.contains(entry.key)))(value)

  /** The number of partitions of a shuffle, as far as the user has told Spark. */
  def chosen(session: SparkSession): Option[Int] =
    setByUser(session, SQLConf.SHUFFLE_PARTITIONS, SQLConf.COALESCE_PARTITIONS_INITIAL_PARTITION_NUM)(
      session.sessionState.conf.numShufflePartitions)

  /** That of whatever has no number of its own. */
  def parallelism(session: SparkSession): Option[Int] =
    session.sparkContext.conf.getOption("spark.default.parallelism").flatMap(_.toIntOption)

  /** The bytes that each task of a stage should read, as far as the user has told Spark. */
  def advisedBytes(session: SparkSession): Option[Long] =
    setByUser(session, SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES, SQLConf.SHUFFLE_TARGET_POSTSHUFFLE_INPUT_SIZE)(
      session.sessionState.conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES))

  /** The fewest tasks that a stage may have, as far as the user has told Spark. */
  def least(session: SparkSession): Option[Int] =
    session.sessionState.conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM)

  /** Whether to fill the slots rather than to have few, large tasks, as far as the user has told Spark. */
  def parallelismFirst(session: SparkSession): Option[Boolean] =
    setByUser(session, SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST)(
      session.sessionState.conf.getConf(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST))

  /** The bytes below which no task is worth its start, as far as the user has told Spark. */
  def smallest(session: SparkSession): Option[Long] =
    setByUser(session, SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)(
      session.sessionState.conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE))

  /** What exchanges are known by in each execution of their plan, with what the user has told Spark. */
  def plan(session: SparkSession, sources: Seq[String], more: Any*): String = {
    val words = Seq[Option[Any]](
      chosen(session),
      parallelism(session),
      advisedBytes(session),
      least(session),
      parallelismFirst(session),
      smallest(session))
    (sources.sorted ++ words.map(_.fold("")(_.toString)) ++ more.map(_.toString)).mkString(" ")
  }

  /** What a rule makes of a plan. Who switches Spark's own rule off wants to keep his numbers. */
  def advised(session: SparkSession, advice: StageAdvice, plan: SparkPlan)(rule: => SparkPlan): SparkPlan =
    if (advice.isOn && session.sessionState.conf.coalesceShufflePartitionsEnabled) UnlessItFails(plan)(rule)
    else plan
}

/**
 * Marks what the application itself partitions into just as many partitions as Spark would: Spark may then leave its
 * exchange out and rely on another one, which has to keep this number.
 */
private[elastic] object MarkExplicitNumbers extends Rule[SparkPlan] {
  import StageRules.planned

  private val mark = TreeNodeTag[Unit]("elastic_explicit_number")

  override def apply(plan: SparkPlan): SparkPlan = {
    plan.foreach {
      case e: ShuffleExchangeExec if e.shuffleOrigin == REPARTITION_BY_NUM && planned(e) == conf.numShufflePartitions =>
        e.child.setTagValue(mark, ())
      case _ =>
    }
    plan
  }

  def isMarked(plan: SparkPlan): Boolean = plan.getTagValue(mark).isDefined
}

/** Before the map side of a stage runs: asks how many partitions it is to write. */
private[elastic] final case class InitialCountRule(session: SparkSession, advice: StageAdvice) extends Rule[SparkPlan] {
  import StageRules._

  // A micro-batch has the number of partitions that its query was given, and so has what a `foreachBatch` runs.
  override def apply(plan: SparkPlan): SparkPlan = if (!CurrentExecution.isBatch(session)) plan
  else
    advised(session, advice, plan) {
      // Where Spark is to leave the partitions of a result as they are, such as those of a cached plan, so are we.
      val last =
        if (conf.getConf(SQLConf.ADAPTIVE_EXECUTION_APPLY_FINAL_STAGE_SHUFFLE_OPTIMIZATIONS)) Seq(plan) else Nil
      val stages = last ++ plan.collect { case exchange: Exchange => exchange.child }
      val wanted =
        if (plan.exists(MarkExplicitNumbers.isMarked)) Map.empty[Int, Int]
        else {
          val found = joined(stages.flatMap(groups))
          found
            .zip(counts(found, SamePlan.isPinned(session, plan)))
            .flatMap { case (group, number) => number.toSeq.flatMap(n => group.map(_.id -> n)) }
            .toMap
        }
      val changed = plan.transformDown {
        case e: ShuffleExchangeExec if wanted.get(e.id).exists(_ != planned(e)) =>
          e.copy(outputPartitioning = withNumber(e).get(wanted(e.id)))
      }
      // Whatever relies on equal numbers in a way that the groups do not show: nothing is changed then.
      if ((changed eq plan) || ValidateRequirements.validate(changed)) changed else plan
    }

  /** Groups that have an exchange in common, which Spark would run once, are one group. */
  private def joined(groups: Seq[Seq[SparkPlan]]): Seq[Seq[ShuffleExchangeExec]] = {
    val changeable =
      groups.map(group => group -> group.collect { case e: ShuffleExchangeExec if withNumber(e).isDefined => e })
    // A group with a stage that has run keeps the number of that one.
    val whole = changeable.collect { case (group, found) if found.nonEmpty && found.size == group.size => found }
    val done = mutable.LinkedHashMap.empty[Int, Seq[ShuffleExchangeExec]]
    val placeOf = mutable.HashMap.empty[SparkPlan, Int]
    for ((group, place) <- whole.zipWithIndex) {
      val same = group.flatMap(e => placeOf.get(e.canonicalized)).distinct
      val all = group ++ same.flatMap(done.remove(_).get)
      all.foreach(e => placeOf(e.canonicalized) = place)
      done(place) = all
    }
    done.values.toSeq
  }

  /** How an exchange is partitioned with another number; nothing where the number is not Spark's. */
  private def withNumber(exchange: ShuffleExchangeExec): Option[Int => Partitioning] = exchange match {
    case advised if advised.advisoryPartitionSize.isDefined => None
    case free =>
      free.outputPartitioning match {
        case hash: HashPartitioning if Origins.contains(free.shuffleOrigin) =>
          Some(number => hash.copy(numPartitions = number))
        // A global sort's; ranges that the application asks for itself are left as they are.
        case range: RangePartitioning if free.shuffleOrigin == ENSURE_REQUIREMENTS =>
          Some(number => range.copy(numPartitions = number))
        case _ => None
      }
  }

  /**
   * A number for each group. What is not known yet is asked with one question: its answer is waited for once. The plan is
   * prepared anew after each stage, and a subquery is one of its own: what was answered about an exchange stays, so equal
   * ones keep equal numbers, and run once. It is asked about once more when all stages below have run: their sizes are
   * known by then, and what counts in the end does not depend on whether they have ended together.
   */
  private def counts(groups: Seq[Seq[ShuffleExchangeExec]], isPinned: Boolean): Seq[Option[Int]] = {
    // Without an execution another run of the same plan, over other data by then, could not be told from this one.
    val id = CurrentExecution.id(session).toSeq
    val haveRun = groups.map(_.forall(e => SamePlan.hasRun(e.child)))
    def keys(place: Int, hasRun: Boolean) =
      for (id <- id; e <- groups(place)) yield s"$id $hasRun ${e.canonicalized.hashCode}"
    def known(place: Int) = {
      val last = keys(place, hasRun = true).flatMap(advice.counts(_))
      if (last.nonEmpty || haveRun(place)) last else keys(place, hasRun = false).flatMap(advice.counts(_))
    }
    val asked = groups.indices.filter(known(_).isEmpty)
    val fresh =
      asked.zip(advice.partitions(asked.map(place => question(groups(place), haveRun(place), isPinned)))).toMap
    groups.indices.map { place =>
      val number = fresh.getOrElse(place, known(place).max)
      keys(place, haveRun(place)).foreach(advice.counts(_) = number)
      Some(number)
    }
  }

  private def question(group: Seq[ShuffleExchangeExec], hasRun: Boolean, isPinned: Boolean): InitialCount = {
    val exchanges = group.map { e =>
      val from = source(e)
      // Also where a finished stage says it: those are bytes before compression.
      val found = logical(e)
      PlannedExchange(
        CurrentExecution.named(session, from),
        found.flatMap(ExpectedBytes.of).getOrElse(-1L),
        from,
        found.flatMap(BytesBound.of))
    }
    InitialCount(
      exchanges.head.id,
      exchanges,
      planned(group.head),
      chosen(session),
      parallelism(session),
      advisedBytes(session),
      least(session),
      smallest = smallest(session),
      plan = plan(session, exchanges.map(_.source), planned(group.head), hasRun, isPinned),
      pinned = isPinned)
  }
}

private[elastic] object InitialCountRule {
  import ElasticExtensions._

  def inject(extensions: SparkSessionExtensions): Unit = {
    extensions.injectQueryPostPlannerStrategyRule(_ => MarkExplicitNumbers)
    extensions.injectQueryStagePrepRule(session => InitialCountRule(classic(session), advice(session)))
  }
}

/**
 * After it ran: asks which ranges of partitions each task of the next stage is to read. Comes after Spark's own rule,
 * so that no answer leaves what that has decided.
 */
private[elastic] final case class RangesRule(session: SparkSession, advice: StageAdvice, control: Option[QueryControl])
    extends AQEShuffleReadRule {
  import StageRules._

  override protected val supportedShuffleOrigins: Seq[ShuffleOrigin] = Origins

  override def apply(plan: SparkPlan): SparkPlan =
    advised(session, advice, plan)(if (isLeftAlone) plan else sharedOut(plan))

  /** All groups are asked about at once: the answer is waited for once. */
  private def sharedOut(plan: SparkPlan): SparkPlan = {
    val asked = groups(plan).flatMap { group =>
      val stages = group.flatMap(written)
      if (stages.isEmpty || stages.size < group.size) None
      else question(stages, group.flatMap(leftToSpark).headOption).map(stages -> _)
    }
    val answers = portions(asked.map { case (_, question) => question }).flatMap(advice.ranges)
    val found =
      asked.zip(answers).flatMap { case ((stages, _), ranges) => ranges.toSeq.flatMap(specs(stages, _)) }.toMap
    if (found.isEmpty) plan else read(plan, found)
  }

  private def isLeftAlone =
    CurrentExecution.streamingQuery(session).exists(id => !control.forall(_.asksAboutStages(id)))

  /** A stage of a shuffle of Spark's own whose sizes are known, and whose number the application has not chosen. */
  private def written(plan: SparkPlan): Option[ShuffleQueryStageExec] = plan match {
    case stage: ShuffleQueryStageExec =>
      Option.when(stage.shuffle.isInstanceOf[
        ShuffleExchangeExec] && stage.isMaterialized && stage.mapStats.isDefined && stage.advisoryPartitionSize.isEmpty &&
        isSupported(stage.shuffle) && stage.shuffle.outputPartitioning != SinglePartition)(stage)
    case AQEShuffleReadExec(stage: ShuffleQueryStageExec, _) => written(stage)
    case _ => None
  }

  /** What Spark has done with the partitions of a stage that is more than to join some. */
  private def leftToSpark(plan: SparkPlan): Option[String] = plan match {
    case read: AQEShuffleReadExec if read.hasSkewedPartition => Some("skew")
    case read: AQEShuffleReadExec if !read.isCoalescedRead => Some("local")
    case _ => None
  }

  private def question(stages: Seq[ShuffleQueryStageExec], left: Option[String]): Option[Ranges] = {
    val sources = stages.map(stage => source(stage.shuffle))
    val written = stages.zip(sources).map { case (stage, source) =>
      WrittenExchange(CurrentExecution.named(session, source), PackedLongs(bytesByPartition(stage)))
    }
    val counts = written.map(_.bytes.values.length).distinct
    Option.when(counts.size == 1 && counts.head >= 2 && counts.head <= RangesRule.MostPartitions)(
      Ranges(
        written.head.id,
        written,
        left,
        chosen(session),
        parallelism(session),
        advisedBytes(session),
        least(session),
        parallelismFirst = parallelismFirst(session),
        smallest = smallest(session),
        // The sizes of a micro-batch are its own.
        plan = if (CurrentExecution.isBatch(session)) plan(session, sources, left) else ""))
  }

  /** What can be asked at once: the sizes of few more partitions than one question may have. */
  private def portions(questions: Seq[Ranges]): Seq[Seq[Ranges]] = {
    val before = questions.scanLeft(0L)((sum, question) => sum + question.exchanges.map(_.bytes.values.length).sum)
    questions.zip(before).groupBy(_._2 / RangesRule.MostPartitions).toSeq.sortBy(_._1).map(_._2.map(_._1))
  }

  /** What tasks are to read of each stage, by its id. */
  private def specs(
      stages: Seq[ShuffleQueryStageExec],
      ranges: Seq[(Int, Int)]): Seq[(Int, Seq[CoalescedPartitionSpec])] =
    stages.map { stage =>
      val bytes = bytesByPartition(stage)
      stage.id -> ranges.map { case (start, end) => CoalescedPartitionSpec(start, end, bytes.slice(start, end).sum) }
    }

  private def bytesByPartition(stage: ShuffleQueryStageExec): Array[Long] = stage.mapStats.get.bytesByPartitionId

  private def read(plan: SparkPlan, found: Map[Int, Seq[CoalescedPartitionSpec]]): SparkPlan = plan match {
    case AQEShuffleReadExec(stage: ShuffleQueryStageExec, _) if found.contains(stage.id) => read(stage, found)
    case stage: ShuffleQueryStageExec =>
      found.get(stage.id).fold[SparkPlan](stage) { specs =>
        val asWritten = specs.forall(spec => spec.endReducerIndex == spec.startReducerIndex + 1)
        if (asWritten) stage else AQEShuffleReadExec(stage, specs)
      }
    case other => other.mapChildren(read(_, found))
  }
}

private[elastic] object RangesRule {
  import ElasticExtensions._

  /** Of more partitions the sizes alone are megabytes, which would be sent, and stand in the journal. */
  val MostPartitions = 1 << 16

  def inject(extensions: SparkSessionExtensions): Unit =
    extensions.injectQueryStageOptimizerRule(session =>
      RangesRule(classic(session), advice(session), controlOf(session.sparkContext)))
}
