package org.apache.spark.elastic

import java.io.InputStream
import java.lang.reflect
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.commons.io.IOUtils
import org.apache.xbean.asm9.{ClassReader, ClassVisitor, FieldVisitor, MethodVisitor}
import org.apache.xbean.asm9.Opcodes._

import org.apache.spark.{SPARK_REVISION, SPARK_VERSION}
import org.apache.spark.internal.Logging

/**
 * Checks that the running Spark has what the plugin's classes call and override; a custom build may not. The check
 * runs before anything is enabled. A part that finds a difference is off, since it would fail in mid-query.
 *
 * Calls are read from the plugin's class files, and overrides from a record that the build derives from these, so
 * nothing is listed by hand. Classes are read here, not loaded. The Spark that the jar was compiled with is exempt.
 * Not detected: a member that has another meaning or has become static, and two different builds of one revision.
 */
private[spark] object Linkage extends Logging {
  private val Record = "spark-elastic-linkage.txt"
  private val All = Set("ElasticPlugin", "ElasticDriver", "ElasticHistory")
  private val Packages = Seq("org/apache/spark/elastic/", "org/apache/spark/sql/elastic/")
  private val HiddenField = """(org[\w.]+)#([\w$:]+)""".r
  private val MostShown = 3
  private val files = mutable.HashMap.empty[String, Option[ClassFile]]
  private val lineages = mutable.HashMap.empty[String, Seq[(String, ClassFile)]]

  /** The differences in this Spark, by the part that they concern; `None` stands for all parts. */
  private lazy val differs: Map[Option[Part], String] = {
    val record = read(Record).fold(Seq(""))(new String(_, UTF_8).linesIterator.toSeq)
    if (record.head.nonEmpty && record.head == SPARK_REVISION) Map.empty
    else
      try {
        val from = System.nanoTime()
        val found = look(record.tail)
        logDebug(s"spark-elastic: compared with this build of Spark in ${(System.nanoTime() - from) / 1000000L} ms")
        for (part <- Part.All; what <- found.get(Some(part))
          if !(None +: part.around.map(Option(_))).exists(found.contains))
          logWarning(s"spark-elastic: continues without ${part.name}: $what")
        found
      } catch {
        case Harmless(e) =>
          logWarning("spark-elastic: could not check what this build of Spark lacks", e)
          Map.empty[Option[Part], String]
      } finally {
        files.clear()
        lineages.clear()
      }
  }

  /** Parts that no Spark of this version supports: the jar for it lacks them. */
  private lazy val absent: Set[Part] = {
    val found = Part.All.filterNot(_.doors.exists(door => Packages.exists(in => file(s"$in$door").isDefined))).toSet
    files.clear()
    val named = found.filterNot(_.around.exists(found))
    if (named.nonEmpty)
      logInfo(s"spark-elastic: not available on Spark $SPARK_VERSION: ${named.map(_.name).mkString(", ")}")
    found
  }

  /** Return why nothing in the plugin can work with this Spark, if so. */
  def problem: Option[String] = differs.get(None)

  def has(part: Part): Boolean = whyOff(part).isEmpty

  /** @throws IllegalStateException if this part is off */
  def need(part: Part): Unit = whyOff(part).foreach(what => throw new IllegalStateException(what))

  /** Return by name why each part that this Spark can use is off, with an empty text for parts that are on. */
  def parts: Map[String, String] =
    Part.All.filterNot(_.around.exists(absent)).map(part => part.name -> whyOff(part).getOrElse("")).toMap

  private def whyOff(part: Part): Option[String] =
    if (absent(part)) Some(s"not available on Spark $SPARK_VERSION") else differs.get(Some(part))

  /** Write the record. The build calls this with the file to write, for the Spark that it compiles with. */
  def main(args: Array[String]): Unit = {
    val found = look(Nil)
    if (found.nonEmpty) throw new IllegalStateException(s"the Spark of this build lacks something: $found")
    val overrides = for (ours <- reached(All, Set.empty); (_, member, _) <- overridden(ours)) yield s"$ours $member"
    Files.write(Paths.get(args.head), (SPARK_REVISION +: overrides.distinct.sorted).asJava)
  }

  private def look(overrides: Seq[String]): Map[Option[Part], String] = {
    val recorded = overrides.map(_.split(' ')).groupMap(_.head)(_.last)
    val doors = Part.All.flatMap(_.doors).toSet
    val core = reached(Set("ElasticPlugin", "ElasticDriver"), doors)
    val parts = Part.All.map(p => Option(p) -> reached(p.doors.toSet, doors -- p.doors).diff(core))
    val found = for ((part, classes) <- (None -> core) +: parts) yield {
      val called = classes.flatMap(file(_).get.constants).collect { case (_, owner, member) if isOurs(owner) => member }
      val all = classes.flatMap(ours => differences(ours, called.toSet, recorded.getOrElse(ours, Nil))).distinct
      val more = if (all.size > MostShown) s" and ${all.size - MostShown} more" else ""
      Option.when(all.nonEmpty)(part -> all.take(MostShown).mkString("this build of Spark has ", ", ", more))
    }
    found.flatten.toMap
  }

  /** Return the plugin's classes that are reachable from these without passing closed doors. */
  private def reached(from: Set[String], closed: Set[String]): Seq[String] = {
    val found = mutable.LinkedHashSet.empty[String]
    def add(name: String): Unit =
      if (isOurs(name) && !closed(name.split('/').last.takeWhile(_ != '$')) && file(name).isDefined && found.add(name))
        file(name).get.constants.foreach { case (_, owner, _) => add(owner) }
    for (name <- from.toSeq.sorted; in <- Packages; kind <- Seq("", "$")) add(in + name + kind)
    found.toSeq
  }

  /**
   * Return what a class of the plugin was compiled with and does not find.
   *
   * @param called members that are called on the plugin's own classes
   * @param recorded members that this class overrides in the Spark that it was compiled with
   */
  private def differences(ours: String, called: Set[String], recorded: Seq[String]): Seq[String] = {
    val (its, line) = (file(ours).get, lineage(ours))
    val gone = its.constants.collect {
      case (ClassFile.Class, owner, _) if isOthers(owner) && file(owner).isEmpty => s"no $owner"
      case (ClassFile.Text, HiddenField(owner, member), _) if !hides(owner.replace('.', '/'), member) =>
        s"no $owner.$member"
      case (kind, owner, member) if !offers(kind, owner, member) && ofTrait(kind, owner, member).forall(called) =>
        s"no ${lineage(owner).map(_._1).find(isOthers).getOrElse(owner)}.$member"
    }
    val open = for {
      (owner, f) <- line if (its.flags & ACC_ABSTRACT) == 0 && isOthers(owner)
      (member, flags) <- f.members if (flags & ACC_ABSTRACT) != 0 && !line.exists(_._2.implements(member))
    } yield s"a new $owner.$member"
    val overrides = overridden(ours)
    val closed = overrides.collect { case (owner, member, true) => s"a final $owner.$member" } ++
      its.parents.filter(p => isOthers(p) && file(p).exists(f => (f.flags & ACC_FINAL) != 0)).map(p => s"a final $p")
    val alone = recorded.diff(overrides.map(_._2)).map(member => s"no $member that $ours overrides")
    (gone ++ open ++ closed ++ alone).map(_.replace('/', '.'))
  }

  /** Return the foreign members that a class of the plugin overrides, and whether they are final. */
  private def overridden(ours: String): Seq[(String, String, Boolean)] = {
    val (its, line) = (file(ours).get, lineage(ours))
    val mixedIn = its.constants.flatMap { case (kind, owner, member) => ofTrait(kind, owner, member) }.toSet
    for {
      (member, flags) <- its.members.toSeq.sorted if ClassFile.canOverride(member, flags) && !mixedIn(member)
      (owner, f) <- line if isOthers(owner)
      theirs <- f.members.get(member) if ClassFile.canOverride(member, theirs)
    } yield (owner, member, (theirs & ACC_FINAL) != 0)
  }

  /** Return the method of a class that calls this one of a trait: scalac generates all, called or not. */
  private def ofTrait(kind: Int, owner: String, member: String): Option[String] = {
    val self = s"$$(L$owner;"
    Option.when(kind == ClassFile.OfInterface && member.contains(self))(member.replace(self, "("))
  }

  private def offers(kind: Int, owner: String, member: String): Boolean =
    member.isEmpty || !(isOurs(owner) || isOthers(owner)) || file(owner).forall { f =>
      val line = if (member.startsWith("<")) Seq(owner -> f) else lineage(owner)
      (kind == ClassFile.Field || (kind == ClassFile.OfInterface) == ((f.flags & ACC_INTERFACE) != 0)) && line.exists {
        case (name, c) => c.members.get(member).exists(flags => isOurs(name) || (flags & ACC_PRIVATE) == 0)
      }
    }

  private def hides(owner: String, member: String): Boolean =
    file(owner).exists(_.members.keys.exists(key =>
      key == member || Seq(':', '(').exists(end => key.startsWith(s"$member$end"))))

  /** Return a class with all that it inherits from. */
  private def lineage(name: String): Seq[(String, ClassFile)] =
    lineages.getOrElseUpdate(name, file(name).toSeq.flatMap(f => (name -> f) +: f.parents.flatMap(lineage)).distinct)

  private def isOurs(name: String) = Packages.exists(name.startsWith)

  /** Whether a class is neither the plugin's nor Java's or Scala's, which have no custom builds. */
  private def isOthers(name: String) = !isOurs(name) && !Seq("java/", "scala/", "[").exists(name.startsWith)

  private def file(name: String): Option[ClassFile] =
    files.getOrElseUpdate(name, read(s"$name.class").map(new ClassFile(_)))

  private def read(path: String): Option[Array[Byte]] =
    Option(getClass.getClassLoader.getResourceAsStream(path))
      .map(Using.resource(_)(IOUtils.toByteArray(_: InputStream)))
}

/** The contents of a class file, with names in its own notation: `a/b/C`, `method(I)V`, `field:I`. */
private[elastic] final class ClassFile(bytes: Array[Byte]) extends ClassVisitor(ASM9) {
  import ClassFile._

  bytes(7) = V1_8.toByte // ASM rejects newer class files; the parts read here are the same in all versions
  private val reader = new ClassReader(bytes)
  var flags = 0
  var parents = Seq.empty[String]
  val members = mutable.HashMap.empty[String, Int] // access flags by member
  reader.accept(this, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES)

  override def visit(v: Int, access: Int, name: String, s: String, parent: String, interfaces: Array[String]): Unit = {
    flags = access
    parents = Option(parent).toSeq ++ interfaces
  }

  override def visitMethod(access: Int, name: String, kind: String, s: String, e: Array[String]): MethodVisitor = {
    members(name + kind) = access
    null
  }

  override def visitField(access: Int, name: String, kind: String, s: String, value: Any): FieldVisitor = {
    members(s"$name:$kind") = access
    null
  }

  /** Whether the class has this member, with a body. */
  def implements(member: String): Boolean = members.get(member).exists(access => (access & ACC_ABSTRACT) == 0)

  /** The entries of the constant pool: classes, strings and member references, which include all calls. */
  lazy val constants: Seq[(Int, String, String)] = {
    val buffer = new Array[Char](reader.getMaxStringLength)
    (1 until reader.getItemCount).map(reader.getItem).filter(_ > 0).flatMap { at =>
      reader.readByte(at - 1) match {
        case kind @ (Class | Text) => Some((kind, reader.readUTF8(at, buffer), ""))
        case kind @ (Field | Method | OfInterface) =>
          val member = reader.getItem(reader.readUnsignedShort(at + 2))
          val between = if (kind == Field) ":" else ""
          val name = reader.readUTF8(member, buffer) + between + reader.readUTF8(member + 2, buffer)
          Some((kind, reader.readClass(at, buffer), name))
        case _ => None
      }
    }
  }
}

private[elastic] object ClassFile {

  // Tags of the constant pool.
  final val Class = 7
  final val Text = 8
  final val Field = 9
  final val Method = 10
  final val OfInterface = 11

  /** Whether a member is a method that can override and be overridden. A name with `$$` is internal to a trait. */
  def canOverride(member: String, access: Int): Boolean =
    member.contains('(') && !member.startsWith("<") && !member.contains("$$") &&
      (access & (ACC_PRIVATE | ACC_STATIC)) == 0
}

/** Reflective access to private members of Spark, which no compiler checks. */
private[spark] object Hidden {

  /** @param place class and field, as a literal "a.b.C#field" or "a.b.C#field:I" for `Linkage` to find */
  def field(place: String): reflect.Field = {
    val names = place.takeWhile(_ != ':').split('#')
    val field = Class.forName(names.head).getDeclaredField(names.last)
    field.setAccessible(true)
    field
  }

  /** @param place as for a field, without a type */
  def method(place: String, arguments: Class[_]*): reflect.Method = {
    val names = place.split('#')
    val method = Class.forName(names.head).getDeclaredMethod(names.last, arguments: _*)
    method.setAccessible(true)
    method
  }
}
