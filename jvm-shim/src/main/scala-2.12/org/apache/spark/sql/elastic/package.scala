package org.apache.spark.sql

import org.apache.spark.Scala213

package object elastic extends Scala213
