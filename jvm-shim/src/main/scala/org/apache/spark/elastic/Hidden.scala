package org.apache.spark.elastic

import java.lang.reflect.{Field, Method}

/** Reflective access to private members of Spark, which no compiler checks. */
private[spark] object Hidden {

  /** @param place class and field, as a literal "a.b.C#field" or "a.b.C#field:I" for `Linkage` to find */
  def field(place: String): Field = {
    val names = place.takeWhile(_ != ':').split('#')
    val field = Class.forName(names.head).getDeclaredField(names.last)
    field.setAccessible(true)
    field
  }

  /** @param place as for a field, without a type */
  def method(place: String, arguments: Class[_]*): Method = {
    val names = place.split('#')
    val method = Class.forName(names.head).getDeclaredMethod(names.last, arguments: _*)
    method.setAccessible(true)
    method
  }
}
