"""The smallest application: it records the time when its session and one job are done, in epoch milliseconds.

usage: start_app.py FILE
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("start").getOrCreate()
spark.range(100).count()
Path(sys.argv[1]).write_text(str(time.time_ns() // 1_000_000))
spark.stop()
