package org.apache.spark.elastic

import java.lang.reflect.{Field, Method}

/** What Spark keeps to itself, and no compiler looks up. */
private[spark] object Hidden {

  /** @param place the class and the field, as a literal like "a.b.C#field" or "a.b.C#field:I": so `Linkage` finds it */
  def field(place: String): Field = {
    val names = place.takeWhile(_ != ':').split('#')
    val field = Class.forName(names.head).getDeclaredField(names.last)
    field.setAccessible(true)
    field
  }

  /** @param place as for a field, without its type */
  def method(place: String, arguments: Class[_]*): Method = {
    val names = place.split('#')
    val method = Class.forName(names.head).getDeclaredMethod(names.last, arguments: _*)
    method.setAccessible(true)
    method
  }
}
