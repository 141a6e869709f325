package org.apache.spark.elastic

import scala.collection.mutable

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, FieldVisitor, MethodVisitor}
import org.apache.xbean.asm9.Opcodes._

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
