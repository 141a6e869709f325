"""Run one batch query and one streaming query over the same JSON files, and write the results as JSON.

usage: both_kinds.py INPUT CHECKPOINT RESULT
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

source, checkpoint, result = sys.argv[1:]
spark = SparkSession.builder.appName("both kinds").getOrCreate()
SCHEMA = "key int, value int"


def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def collected(frame: DataFrame) -> dict[str, list[int]]:
    return {str(row.key): [row.n, row.total] for row in frame.collect()}


streamed = totals(spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(source))
writer = streamed.writeStream.outputMode("complete").format("memory").queryName("streamed")
query = writer.option("checkpointLocation", checkpoint).start()
query.processAllAvailable()
progress, jvm = query.lastProgress, spark.sparkContext._jvm
assert progress is not None
assert jvm is not None
plugin = jvm.java.lang.Class.forName("org.apache.spark.elastic.ElasticPlugin")
found = {
    "batch": collected(totals(spark.read.schema(SCHEMA).json(source))),
    "stream": collected(spark.table("streamed")),
    "partitions": progress["stateOperators"][0]["numShufflePartitions"],
    "jar": plugin.getProtectionDomain().getCodeSource().getLocation().getPath(),
}
query.stop()
spark.stop()
Path(result).write_text(json.dumps(found))
