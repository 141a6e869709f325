"""Read Spark's own configuration where Spark reads it, and add the plugin to it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from spark_elastic.core.keys.rescaling import MODE, PYTHON
from spark_elastic.settings import SettingsError, load, spellings

PLUGIN = "org.apache.spark.elastic.ElasticPlugin"
PLUGINS = "spark.plugins"
JARS = "spark.jars"
DRIVER_CLASS_PATH = "spark.driver.extraClassPath"

_OUR_JAR = re.compile(r"spark-elastic_[^/\\]*\.jar")
_FLAGS = {"--jars": JARS, "--driver-class-path": DRIVER_CLASS_PATH}
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class ConflictError(ValueError):
    """Settings conflict with the plugin; the message says what to change."""


def plugin_conf(
    existing: Mapping[str, str], *, jar: Path, python: str, mode: str | None = None
) -> dict[str, str]:
    """Return the settings that enable the plugin; they override `existing`, and lists keep their entries.

    The jar goes into two lists. The driver's class path needs it because the plugin is loaded before the
    context starts. Spark's own list carries it to a driver in the cluster. Executors do not need it. `python`
    runs the policy process unless `existing` names another interpreter. `mode` None keeps a configured mode.

    Raises ConflictError if `existing` has another mode, another of our jars or unusable settings, or if the
    path of the jar contains a comma.
    """
    try:
        settings = load(existing)
        load({MODE.full_name: mode} if mode is not None else {})
    except SettingsError as error:
        raise ConflictError(str(error)) from error
    modes = spellings(existing, MODE)
    if mode is not None and modes and settings[MODE] != load({MODE.full_name: mode})[MODE]:
        raise ConflictError(f"{modes[0]} is '{existing[modes[0]]}' already: remove it, or ask for that mode")
    added = {
        PLUGINS: with_entry(existing.get(PLUGINS, ""), PLUGIN, ","),
        **with_jar(existing, jar),
    }
    if not modes:
        added[MODE.full_name] = mode or MODE.default
    if not spellings(existing, PYTHON):
        added[PYTHON.full_name] = python
    return added


def with_jar(existing: Mapping[str, str], jar: Path) -> dict[str, str]:
    """Return the two lists of jars with ours added to what `existing` has in them. Raises ConflictError."""
    if "," in str(jar):
        raise ConflictError(f"{jar} has a comma in its path, which ends a path in {JARS}: install elsewhere")
    return {
        JARS: _append_jar(existing, JARS, jar, ","),
        DRIVER_CLASS_PATH: _append_jar(existing, DRIVER_CLASS_PATH, jar, os.pathsep),
    }


def with_entry(value: str, entry: str, separator: str) -> str:
    """Return a list, as a setting writes it, with an entry that it may have already."""
    entries = _entries(value, separator)
    return separator.join(entries if entry in entries else [*entries, entry])


def has_jar(value: str, separator: str) -> list[str]:
    """Return the entries of a list of jars, or of a class path, that are jars of spark-elastic."""
    return [entry for entry in _entries(value, separator) if _OUR_JAR.fullmatch(_base_name(entry))]


def has_plugin(conf: Mapping[str, str]) -> bool:
    """Return whether the plugin is enabled."""
    return PLUGIN in _entries(conf.get(PLUGINS, ""), ",")


def default_properties_file(environment: Mapping[str, str], spark_home: Path | None) -> Path | None:
    """Return the spark-defaults.conf that spark-submit reads, or None if there is none."""
    folder = environment.get("SPARK_CONF_DIR")
    conf = Path(folder) if folder else spark_home / "conf" if spark_home is not None else None
    file = conf / "spark-defaults.conf" if conf is not None else None
    return file if file is not None and file.is_file() else None


def read_properties(file: Path) -> dict[str, str]:
    """Read a file of Java properties as spark-submit does; only keys of Spark are kept.

    Raises OSError, and UnicodeDecodeError if the file is not UTF-8 text.
    """
    result: dict[str, str] = {}
    text = re.sub(r"(?<!\\)((?:\\\\)*)\\\n[ \t\f]*", r"\1", file.read_text(encoding="utf-8"))
    for line in text.splitlines():
        stripped = line.lstrip(" \t\f")
        if not stripped or stripped[0] in "#!":
            continue
        match = re.match(r"((?:\\.|[^\\=:\s])+)\s*[=:]?\s*(.*)", stripped)
        if match is not None and match[1].startswith("spark."):
            result[_unescape(match[1])] = _unescape(match[2]).strip()
    return result


def submit_arguments(text: str) -> list[tuple[str, str]]:
    """Return the settings in arguments of spark-submit, such as PYSPARK_SUBMIT_ARGS, in their order."""
    result: list[tuple[str, str]] = []
    words = iter(shlex.split(text))
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in ("--conf", "-c", *_FLAGS):
            continue
        value = value if equals else next(words, "")
        if flag in _FLAGS:
            result.append((_FLAGS[flag], value))
        else:
            key, _, value = value.partition("=")
            result.append((key, value))
    return result


def _append_jar(existing: Mapping[str, str], key: str, jar: Path, separator: str) -> str:
    value = existing.get(key, "")
    for entry in has_jar(value, separator):
        if _base_name(entry) != jar.name:
            raise ConflictError(
                f"{key} has {entry}, but this installation needs {jar.name}: remove the former"
            )
        return value
    return with_entry(value, str(jar), separator)


def _entries(value: str, separator: str) -> list[str]:
    return [entry.strip() for entry in value.split(separator) if entry.strip()]


def _base_name(entry: str) -> str:
    return re.split(r"[/\\]", entry)[-1]


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)
