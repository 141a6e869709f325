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
import org.apache.spark.sql.elastic.ElasticExtensions._
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, SparkPlan, UnaryExecNode, UnionExec}
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastNestedLoopJoinExec, CartesianProductExec}
import org.apache.spark.sql.internal.SQLConf

/** The knowledge that both rules share: which shuffles belong together, their names, and exceptions. */
private[elastic] object StageRules {

  /** Origins of numbers that Spark has chosen, and not the user. */
  val Origins: Seq[ShuffleOrigin] = Seq(ENSURE_REQUIREMENTS, REPARTITION_BY_COL)

  /**
   * Return the groups of shuffles that must keep the same partitions, such as the two sides of a join. `plan` is a
   * stage, down to its exchanges. Inputs of a cross join are left out: it works far more than its bytes suggest.
   */
  def groups(plan: SparkPlan): Seq[Seq[SparkPlan]] = plan match {
    case shuffle if isShuffle(shuffle) => Seq(Seq(shuffle))
    case _: Exchange | _: QueryStageExec => Nil
    case unary: UnaryExecNode => groups(unary.child)
    case union: UnionExec if union.outputPartitioning.isInstanceOf[UnknownPartitioning] =>
      union.children.flatMap(groups)
    case join: BroadcastHashJoinExec => join.children.flatMap(groups)
    // Beside an input that is no exchange they have the number of its partitions.
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

  /** Return the partitions that an exchange will write. Its `numPartitions` would run the plan below it. */
  def planned(exchange: ShuffleExchangeExec): Int = exchange.outputPartitioning.numPartitions

  /** Return a name for the logical plan and the data that determine an exchange's size. Expensive. */
  def source(exchange: ShuffleExchangeLike): String = logical(exchange).map(SamePlan.name).getOrElse("")

  def logical(exchange: ShuffleExchangeLike): Option[LogicalPlan] =
    exchange.child.collectFirst { case plan if plan.logicalLink.isDefined => plan.logicalLink.get }

  /** Return the value of a setting, if the user has set it or one of these others. */
  private def setByUser[T](session: SparkSession, entry: ConfigEntry[T], others: ConfigEntry[_]*): Option[T] = {
    val conf = session.sessionState.conf
    Option.when((entry +: others).exists(known => conf.contains(known.key)))(conf.getConf(entry))
  }

  /** Return the number of partitions of a shuffle, if the user has set it. */
  def chosen(session: SparkSession): Option[Int] =
    setByUser(session, SQLConf.SHUFFLE_PARTITIONS, SQLConf.COALESCE_PARTITIONS_INITIAL_PARTITION_NUM)
      .map(_ => session.sessionState.conf.numShufflePartitions)

  /** Return the number of partitions where there is no other setting, if the user has set it. */
  def parallelism(session: SparkSession): Option[Int] =
    session.sparkContext.conf.getOption("spark.default.parallelism").flatMap(_.toIntOption)

  /** Return the bytes that each task of a stage should read, if the user has set them. */
  def advisedBytes(session: SparkSession): Option[Long] =
    setByUser(session, SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES, SQLConf.SHUFFLE_TARGET_POSTSHUFFLE_INPUT_SIZE)

  /** Return the fewest tasks that a stage may have, if the user has set them. */
  def least(session: SparkSession): Option[Int] =
    session.sessionState.conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM)

  /** Return whether to fill the slots rather than have few, large tasks, if the user has set it. */
  def parallelismFirst(session: SparkSession): Option[Boolean] =
    setByUser(session, SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST)

  /** Return the bytes below which no task is worth its start, if the user has set them. */
  def smallest(session: SparkSession): Option[Long] =
    setByUser(session, SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)

  /** Return what identifies exchanges in each execution of their plan, with the user's settings. */
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

  /** Apply a rule to a plan. A user who disables Spark's own rule wants to keep the numbers. */
  def advised(session: SparkSession, advice: StageAdvice, plan: SparkPlan)(rule: => SparkPlan): SparkPlan =
    if (advice.isOn && session.sessionState.conf.coalesceShufflePartitionsEnabled) UnlessItFails(plan)(rule)
    else plan
}

/**
 * Marks what the application itself partitions into exactly as many partitions as Spark would. Spark may then omit
 * its exchange and rely on another one, which has to keep this number.
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

/** Asks, before the map side of a stage runs, how many partitions it should write. */
private[elastic] final case class InitialCountRule(session: SparkSession, advice: StageAdvice) extends Rule[SparkPlan] {
  import StageRules._

  // A micro-batch has its query's number of partitions, and so has what its `foreachBatch` runs.
  override def apply(plan: SparkPlan): SparkPlan = if (!CurrentExecution.isBatch(session)) plan
  else
    advised(session, advice, plan) {
      // Where Spark must leave the partitions of a result as they are, as for a cached plan, so must this rule.
      val last =
        if (conf.getConf(SQLConf.ADAPTIVE_EXECUTION_APPLY_FINAL_STAGE_SHUFFLE_OPTIMIZATIONS)) Seq(plan) else Nil
      val stages = last ++ plan.collect { case exchange: Exchange => exchange.child }
      val wanted =
        if (plan.exists(MarkExplicitNumbers.isMarked)) Map.empty[Int, Int]
        else {
          val found = joined(stages.flatMap(groups))
          found
            .zip(counts(found, SamePlan.isPinned(session, plan)))
            .flatMap { case (group, number) => group.map(_.id -> number) }
            .toMap
        }
      val changed = plan.transformDown {
        case e: ShuffleExchangeExec if wanted.get(e.id).exists(_ != planned(e)) =>
          e.copy(outputPartitioning = withNumber(e).get(wanted(e.id)))
      }
      // Something may rely on equal numbers in a way that groups do not show: then nothing is changed.
      if ((changed eq plan) || ValidateRequirements.validate(changed)) changed else plan
    }

  /** Merge groups that share an exchange, which Spark would run once. */
  private def joined(groups: Seq[Seq[SparkPlan]]): Seq[Seq[ShuffleExchangeExec]] = {
    val changeable =
      groups.map(group => group -> group.collect { case e: ShuffleExchangeExec if withNumber(e).isDefined => e })
    // A group with a stage that has run keeps the number of that stage.
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

  /** Return how an exchange is partitioned with another number; None if the number is not Spark's. */
  private def withNumber(exchange: ShuffleExchangeExec): Option[Int => Partitioning] = exchange match {
    case advised if advised.advisoryPartitionSize.isDefined => None
    case free =>
      free.outputPartitioning match {
        case hash: HashPartitioning if Origins.contains(free.shuffleOrigin) =>
          Some(number => hash.copy(numPartitions = number))
        // A global sort's: 200 ranges of a few rows take 0.1 to 0.2 s. Ranges that the application asks for stay.
        case range: RangePartitioning if free.shuffleOrigin == ENSURE_REQUIREMENTS =>
          Some(number => range.copy(numPartitions = number))
        case _ => None
      }
  }

  /**
   * Return a number for each group. Unknown ones are asked for together, with one wait. Spark prepares the plan again
   * after each stage, and a subquery separately. So the answer about an exchange is kept: equal ones keep equal
   * numbers, and run once. It is asked for once more when all stages below have run: their sizes are known by then,
   * and the final number does not depend on whether they ended together.
   */
  private def counts(groups: Seq[Seq[ShuffleExchangeExec]], isPinned: Boolean): Seq[Int] = {
    // Without an execution id, this run could not be distinguished from a later one over other data.
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
      number
    }
  }

  private def question(group: Seq[ShuffleExchangeExec], hasRun: Boolean, isPinned: Boolean): InitialCount = {
    val exchanges = group.map { e =>
      val from = source(e)
      // These are bytes before compression, also where they come from a finished stage.
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
  def inject(extensions: SparkSessionExtensions): Unit = {
    extensions.injectQueryPostPlannerStrategyRule(_ => MarkExplicitNumbers)
    extensions.injectQueryStagePrepRule(session => InitialCountRule(classic(session), advice(session)))
  }
}

/**
 * Asks, after the map side has run, which ranges of partitions each task of the next stage should read. Runs after
 * Spark's own rule, so that without an answer Spark's decision stays. The answer is Spark's own node alone, because
 * native engines (Comet, RAPIDS, Gluten) look for its class; so a plan does not show the reason.
 */
private[elastic] final case class RangesRule(session: SparkSession, advice: StageAdvice, control: Option[QueryControl])
    extends AQEShuffleReadRule {
  import StageRules._

  override protected val supportedShuffleOrigins: Seq[ShuffleOrigin] = Origins

  override def apply(plan: SparkPlan): SparkPlan =
    advised(session, advice, plan)(if (isLeftAlone) plan else sharedOut(plan))

  /** Ask about all groups at once, with one wait. */
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

  /** Return a stage of a shuffle of Spark's own with known sizes and a number that the application has not chosen. */
  private def written(plan: SparkPlan): Option[ShuffleQueryStageExec] = plan match {
    case stage: ShuffleQueryStageExec =>
      Option.when(stage.shuffle.isInstanceOf[
        ShuffleExchangeExec] && stage.isMaterialized && stage.mapStats.isDefined && stage.advisoryPartitionSize.isEmpty &&
        isSupported(stage.shuffle) && stage.shuffle.outputPartitioning != SinglePartition)(stage)
    case AQEShuffleReadExec(stage: ShuffleQueryStageExec, _) => written(stage)
    case _ => None
  }

  /** Return what Spark has done to the partitions of a stage other than join some. */
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

  /** Return what to ask at once: the sizes of few more partitions than one question may have. */
  private def portions(questions: Seq[Ranges]): Seq[Seq[Ranges]] = {
    val before = questions.scanLeft(0L)((sum, question) => sum + question.exchanges.map(_.bytes.values.length).sum)
    questions.zip(before).groupBy(_._2 / RangesRule.MostPartitions).toSeq.sortBy(_._1).map(_._2.map(_._1))
  }

  /** Return what tasks should read of each stage, by its id. */
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

  /** For more partitions the sizes alone are megabytes, which would be sent and written to the journal. */
  val MostPartitions = 1 << 16

  def inject(extensions: SparkSessionExtensions): Unit =
    extensions.injectQueryStageOptimizerRule(session =>
      RangesRule(classic(session), advice(session), controlOf(session.sparkContext)))
}
