"""Start a Spark for the work on a checkpoint, and give access to the files of all its file systems."""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_elastic.installation import Spark, installed_pyspark, installed_spark, spark_home
from spark_elastic.jar import JarNotFoundError, jar_path
from spark_elastic.spark_conf import (
    DRIVER_CLASS_PATH,
    JARS,
    PLUGINS,
    ConflictError,
    default_properties_file,
    read_properties,
    with_jar,
)
from spark_elastic_tools.java import NoJavaError, java_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST = (4, 2)
_NEEDED = ".".join(map(str, OLDEST))
_END_S = 20.0
_LAST_LINES = 5
# Nothing that stays on disk, and no plugin: neither ours nor those of spark-defaults.conf.
_CONF = {
    "spark.app.name": "spark-elastic checkpoint",
    PLUGINS: "",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "ERROR",
    # One job for each store, so that progress knows which one it is.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # For sums over partitions, which have a row for each. Moving state names its own number.
    "spark.sql.shuffle.partitions": "1",
}
_LOCAL_CONF = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


class NoSparkError(Exception):
    """No Spark that can do this, or it did not start; the message says what to type."""


class JavaError(Exception):
    """An exception of Spark or of a file system; the message is its own, without the trace."""


def needed_spark() -> Spark:
    """Return the installed Spark if it can change state and PySpark is there. Raises NoSparkError."""
    spark = installed_spark()
    have = f"{spark} (from {'SPARK_HOME' if os.environ.get('SPARK_HOME') else 'pip'})"
    advice = f"type `pip install 'pyspark>={_NEEDED}'`, in an environment of its own if yours needs another"
    if spark is None or find_spec("pyspark") is None:
        found = f"{spark}, but no PySpark," if spark is not None else "no PySpark"
        raise NoSparkError(f"{found} is installed here; PySpark {_NEEDED} or later is needed: {advice}")
    if _minor(spark) < OLDEST:
        raise NoSparkError(
            f"{have} cannot read and write state offline; PySpark {_NEEDED} or later is needed, whichever "
            f"Spark runs the query: {advice}"
        )
    pyspark = installed_pyspark()
    if pyspark is not None and pyspark.minor != spark.minor:
        raise NoSparkError(
            f"{have} is not the {pyspark} of PySpark: unset SPARK_HOME, or install the PySpark of "
            "that version"
        )
    return spark


def _minor(spark: Spark) -> tuple[int, ...]:
    return tuple(int(part) for part in spark.minor.split(".") if part.isdigit())


@contextmanager
def session(master: str, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Start Spark with these settings and those of spark-defaults.conf. Raises NoSparkError.

    It has no UI and no event log, and leaves nothing behind when the block ends.
    """
    spark = needed_spark()
    try:
        java_for(spark.version)
        jar = jar_path(spark)
    except (NoJavaError, JarNotFoundError) as error:
        raise NoSparkError(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="spark-elastic-checkpoint-") as folder:
        settings = _settings(master, conf, jar, Path(folder))
        with _started(settings, Path(folder) / "log") as started:
            yield started


def _settings(master: str, conf: Mapping[str, str], jar: Path, folder: Path) -> dict[str, str]:
    file = default_properties_file(os.environ, spark_home())
    try:
        defaults = read_properties(file) if file is not None else {}
        jars = with_jar({**defaults, **conf}, jar)
    except (OSError, UnicodeDecodeError) as error:
        raise NoSparkError(f"{file} cannot be read: {error}") from error
    except ConflictError as error:
        raise NoSparkError(str(error)) from error
    local = {key: value for key, value in _LOCAL_CONF.items() if key not in defaults}
    return {
        **_CONF,
        **(local if master.startswith("local") else {}),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **conf,
        **{key: jars[key] for key in (JARS, DRIVER_CLASS_PATH)},
        "spark.master": master,
    }


@contextmanager
def _started(settings: Mapping[str, str], log: Path) -> Iterator[SparkSession]:
    # PySpark is slow to load, and `needed_spark` gives the better error if it is missing.
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    gateway: Any = None
    context: SparkContext | None = None
    logged = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # Py4J logs the traces of what is raised here, too
    try:
        with log.open("wb") as output:
            try:
                # The JVM gets all settings when it starts, so that the class path has our jar.
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    conf, popen_kwargs={"stdout": output, "stderr": output}
                )
                context = SparkContext(gateway=gateway, conf=conf)
            except Exception as error:
                raise NoSparkError(f"Spark did not start: {_why(error, log)}") from error
        spark = SparkSession(context)
        _ = spark.streams  # makes the coordinator, which a state store asks when it loads
        yield spark
    finally:
        if context is not None:
            with suppress(Exception):  # a JVM that has died stops nothing
                context.stop()
        if gateway is not None:
            _end(gateway)
        logging.disable(logged)


def _why(error: Exception, log: Path) -> str:
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return "\n".join([java_message(error), *said[-_LAST_LINES:]])


def _end(gateway: Any) -> None:
    process: subprocess.Popen[bytes] = gateway.proc
    with suppress(Exception):
        gateway.shutdown()
    if process.stdin is not None:
        process.stdin.close()  # the JVM ends with it
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# ---- Java's files and exceptions


def java_message(error: BaseException) -> str:
    """Return what an exception of the JVM says, and what its first cause says, a line of each."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return _first_line(str(error)) or type(error).__name__
    said = [_first_line(str(error))]
    with suppress(Exception):  # the JVM may be gone
        said = [_text(java)]
        while java.getCause() is not None:
            java = java.getCause()
        said.append(_text(java))
    return ": ".join(dict.fromkeys(said))


def _text(java: Any) -> str:
    return _first_line(str(java.getMessage() or java.toString()))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


@contextmanager
def java_errors() -> Iterator[None]:
    """Raise JavaError where the JVM throws an exception, or cannot be reached any more."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise JavaError(java_message(error)) from error


class HadoopFiles:
    """The files below a folder on any file system that Spark's Hadoop has. All methods raise JavaError.

    `root` is the folder's whole name.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        with java_errors():
            jvm: Any = spark._jvm
            self._new_path = jvm.org.apache.hadoop.fs.Path
            folder = self._new_path(path)
            session: Any = spark._jsparkSession
            self._files = folder.getFileSystem(session.sessionState().newHadoopConf())
            self.root = str(self._files.makeQualified(folder).toString())

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder; none if it does not exist."""
        with java_errors():
            path = self._path(folder)
            if not self._files.exists(path):
                return ()
            return [str(one.getPath().getName()) for one in self._files.listStatus(path)]

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None if it does not exist."""
        with java_errors():
            file = self._path(path)
            if not self._files.exists(file):
                return None
            stream = self._files.open(file)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def changed_ms(self, path: str) -> int:
        """Return when a file was written, in ms since 1970."""
        with java_errors():
            return int(self._files.getFileStatus(self._path(path)).getModificationTime())

    def delete(self, path: str) -> None:
        """Delete a file."""
        with java_errors():
            self._files.delete(self._path(path), False)

    def _path(self, relative: str) -> Any:
        return self._new_path(f"{self.root.rstrip('/')}/{relative}")
