"""Make the archives of classes that tests use: see class_archive.py.

usage: python -m integration.make_class_archive

They are kept until the jar, Spark or Java changes. Where Java makes none, tests run without.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.class_archive import DRIVERS, FOLDER, OTHERS
from integration.cluster.application import executors
from integration.jdk_tools import JCMD, run_tool
from integration.streaming.driver import driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.launch import WITH_PLUGIN
from spark_elastic.jar import jar_path
from spark_elastic_lab.demo.cluster import SMALL_JVM, Cluster
from spark_elastic_tools.java import find_java

_RECORD = "-XX:+RecordDynamicDumpInfo"
_BATCHES = 3


def main() -> int:
    """Make the archives for the current installation, unless they exist."""
    stamp, wanted = FOLDER / "made-for", _made_for()
    if stamp.exists() and stamp.read_text() == wanted:
        return 0
    print("spark-elastic: noting which classes Spark loads, up to a minute", file=sys.stderr, flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="classes-") as folder:
        try:
            _make(Path(folder))
        except subprocess.SubprocessError as error:
            said = getattr(error, "stderr", None) or getattr(error, "stdout", None) or error
            print(f"spark-elastic: none is noted: {said}", file=sys.stderr, flush=True)
    stamp.write_text(wanted)
    return 0


def _made_for() -> str:
    jar, java = jar_path(), Path(find_java()).resolve()
    release = java.parents[1] / "release"  # an update of Java does not change its path
    parts = (path.read_bytes() for path in (jar, release) if path.exists())
    digest = hashlib.sha256(b"".join(parts)).hexdigest()
    return f"{jar} {digest} {jar.stat().st_mtime_ns} {pyspark.__file__} {pyspark.__version__} {java}\n"


def _make(folder: Path) -> None:
    """Let an application use a bit of everything, and dump the classes that its
    driver and executor loaded.
    """
    with Cluster(folder / "cluster") as cluster, driver(folder / "driver", options=_RECORD) as jvm:
        worker = cluster.add_worker()
        conf = {
            **WITH_PLUGIN,
            "spark.master": cluster.master_url,
            "spark.ui.enabled": "true",
            "spark.executor.memory": "640m",
            "spark.executor.extraJavaOptions": f"{SMALL_JVM} {_RECORD}",
            "spark.elastic.journal.dir": str(folder / "journal"),
        }
        with jvm.session(conf) as spark:
            _work(spark, folder)
            (executor,) = executors(worker).values()
            run_tool(JCMD, str(executor.pid), "VM.cds", "dynamic_dump", OTHERS)
        run_tool(JCMD, str(jvm.pid), "VM.cds", "dynamic_dump", DRIVERS)


def _work(spark: SparkSession, folder: Path) -> None:
    inbox = Inbox(folder / "inbox")
    rows = spark.readStream.schema(SCHEMA).json(str(inbox.folder))

    def write(batch: DataFrame, number: int) -> None:
        batch.write.parquet(str(folder / "out" / str(number)))

    totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    writer = totals.writeStream.outputMode("update").foreachBatch(write)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    for _ in range(_BATCHES):
        inbox.put()
        query.processAllAvailable()
    query.stop()
    found = spark.read.schema(SCHEMA).json(str(inbox.folder))
    found.join(found.groupBy("key").count(), "key").orderBy("key", "value").collect()


if __name__ == "__main__":
    sys.exit(main())
