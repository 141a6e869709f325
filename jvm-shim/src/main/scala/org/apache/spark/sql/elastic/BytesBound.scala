package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types._

/**
 * Computes an upper bound of the bytes that a plan yields, if there is one. There is none above whatever creates rows
 * or long values: generators, many-to-many joins, functions of the user.
 */
private[elastic] object BytesBound {
  private val Compressed = 16.0 // the highest compression ratio expected of files and cached columns
  private val CompressedText = Seq("gz", "bz2", "deflate", "lz4", "snappy", "xz", "zst").map("." + _)

  def of(plan: LogicalPlan): Option[Long] = known(bound(plan))

  private[elastic] def known(bytes: Double): Option[Long] =
    Some(bytes).filter(_ < Long.MaxValue.toDouble).map(_.toLong)

  private def bound(plan: LogicalPlan): Double = plan match {
    case stage: LogicalQueryStage => if (SamePlan.hasRun(stage.physicalPlan)) said(stage) else bound(stage.logicalPlan)
    case project: Project => if (project.projectList.forall(isNoLonger)) shaped(project, project.child) else Unknown
    case total: Aggregate => if (total.expressions.forall(isNoLonger)) shaped(total, total.child) else Unknown
    case window: Window =>
      if (window.windowExpressions.forall(isNoLonger)) shaped(window, window.child) else Unknown
    case expand: Expand => shaped(expand, expand.child) * expand.projections.size
    case union: Union => union.children.map(bound).sum
    case sample: Sample if !sample.withReplacement => bound(sample.child)
    case _: Filter | _: Sort | _: Distinct | _: GlobalLimit | _: LocalLimit | _: RepartitionOperation |
        _: SubqueryAlias =>
      bound(plan.children.head)
    case join: Join => joined(join)
    case _: LocalRelation | _: Range | _: OneRowRelation => said(plan)
    case cached: InMemoryRelation if cached.cacheBuilder.isCachedColumnBuffersLoaded => said(cached) * Compressed
    case leaf: LogicalRelation => ofFiles(leaf)
    case _ => Unknown
  }

  private val Unknown = Double.PositiveInfinity

  private def ofFiles(leaf: LogicalRelation): Double = leaf.relation match {
    // A catalog's statistics may be out of date.
    case files: HadoopFsRelation if !files.location.isInstanceOf[CatalogFileIndex] =>
      def isCompressed(file: String) = CompressedText.exists(file.endsWith)
      val isBound = !files.fileFormat.isInstanceOf[TextBasedFileFormat] || !files.inputFiles.exists(isCompressed)
      if (isBound) files.sizeInBytes.toDouble * Compressed else Unknown
    case _ => Unknown
  }

  private def joined(join: Join): Double = join match {
    case Join(left, _, LeftSemi | LeftAnti | ExistenceJoin(_), _, _) => bound(left)
    case ExtractEquiJoinKeys(kind, leftKeys, rightKeys, _, _, left, right, _) =>
      def byLeft = if (isUnique(right, rightKeys)) widened(left, right) else Unknown
      def byRight = if (isUnique(left, leftKeys)) widened(right, left) else Unknown
      kind match {
        case _: InnerLike => byLeft.min(byRight)
        case LeftOuter => byLeft
        case RightOuter => byRight
        case _ => Unknown
      }
    case _ => Unknown
  }

  /** Bound the rows of `child`, each with a row of `other` beside it. */
  private def widened(child: LogicalPlan, other: LogicalPlan): Double =
    bound(child) * (1 + averageRow(other) / width(child.output))

  /** Return the bytes of one row. The length of its texts is known once they have been written. */
  private def averageRow(side: LogicalPlan): Double =
    if (areShort(side.output)) width(side.output)
    else
      side match {
        case stage: LogicalQueryStage if SamePlan.hasRun(stage.physicalPlan) =>
          // A hashed relation takes at least a mebibyte, which says nothing about few rows.
          val bytes = said(stage).min(bound(stage.logicalPlan))
          stage.stats.rowCount.filter(_ > 0).fold(width(stage.output))(rows => bytes / rows.toDouble)
        case _: Project | _: Filter | _: Aggregate if side.expressions.forall(isNoLonger) =>
          averageRow(side.children.head)
        case _ => Unknown
      }

  /** Whether each key occurs once, by the plan or by what Spark found when it broadcast these rows. */
  private def isUnique(side: LogicalPlan, keys: Seq[Expression]): Boolean = side match {
    case stage: LogicalQueryStage if SamePlan.hasRun(stage.physicalPlan) && isBroadcast(stage) =>
      stage.physicalPlan.exists {
        case sent: BroadcastQueryStageExec =>
          // The class is private in Spark. The relation of a nested loop has no such method.
          val rows = sent.broadcast.relationFuture.get().value.asInstanceOf[AnyRef]
          rows.getClass.getMethods.find(_.getName == "keyIsUnique").exists(_.invoke(rows) == java.lang.Boolean.TRUE)
        case _ => false
      }
    case _ => SamePlan.unmeasured(side).distinctKeys.exists(_.subsetOf(ExpressionSet(keys)))
  }

  private def isBroadcast(stage: LogicalQueryStage) = stage.physicalPlan.exists(_.isInstanceOf[BroadcastQueryStageExec])

  /** Bound the rows of `child`, as wide as those of `plan`. One long value can be nearly all of its row. */
  private def shaped(plan: LogicalPlan, child: LogicalPlan): Double = {
    val buffers = plan.expressions.flatMap(_.collect { case f: DeclarativeAggregate => f.aggBufferAttributes }).flatten
    val row = plan.output ++ buffers
    val ratio = width(row) / width(child.output)
    bound(child) * (if (areShort(row)) ratio else ratio.max(1.0))
  }

  private def width(row: Seq[Attribute]): Double = 8.0 + row.map(_.dataType.defaultSize).sum

  /** Whether no value of an expression, nor a buffer of its aggregates, is far longer than its inputs. */
  private def isNoLonger(expression: Expression): Boolean =
    expression.collect { case function: AggregateFunction => function }.forall {
      case _: Max | _: Min => true
      case known: DeclarativeAggregate => areShort(known.aggBufferAttributes)
      case _ => false
    } && isCopied(expression)

  private def isCopied(expression: Expression): Boolean = isShort(expression.dataType) || (expression match {
    case _: Attribute | _: Literal => true
    case _: AggregateExpression | _: Alias | _: CaseWhen | _: Cast | _: Coalesce | _: GetStructField | _: If |
        _: Lower | _: Max | _: Min | _: String2TrimExpression | _: Substring | _: Upper =>
      expression.children.forall(isCopied)
    case _ => false
  })

  private def areShort(row: Seq[Attribute]): Boolean = row.forall(value => isShort(value.dataType))

  private def isShort(kind: DataType): Boolean = kind match {
    case _: StringType | BinaryType | _: ArrayType | _: MapType | _: UserDefinedType[_] => false
    case struct: StructType => struct.forall(field => isShort(field.dataType))
    case _ => true
  }

  private[elastic] def said(plan: LogicalPlan): Double = plan.stats.sizeInBytes.toDouble
}

/**
 * Estimates the bytes that a plan yields from Spark's statistics, except for joins. Without column statistics Spark
 * multiplies both sides of a join: safe for broadcasts, exabytes after three. Here it yields at most what it reads.
 */
private[elastic] object ExpectedBytes {
  import BytesBound.{known, said}

  /** Return None if unknown, as for a table without statistics. */
  def of(plan: LogicalPlan): Option[Long] = known(bytes(plan))

  private def bytes(plan: LogicalPlan): Double = plan match {
    // A stage that has not run has the statistics of its plan.
    case stage: LogicalQueryStage if said(stage) == said(stage.logicalPlan) => bytes(stage.logicalPlan)
    case unary: UnaryNode =>
      val share = said(unary) / said(unary.child)
      bytes(unary.child) * (if (share.isNaN) 1 else share)
    case leaf if leaf.children.isEmpty =>
      if (said(leaf) < leaf.conf.defaultSizeInBytes) said(leaf) else Double.PositiveInfinity
    case other => said(other).min(other.children.map(bytes).sum)
  }
}
