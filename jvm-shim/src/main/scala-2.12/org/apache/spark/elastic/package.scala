package org.apache.spark

package object elastic extends Scala213
