"""The checks of `spark-elastic doctor`, one function each."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spark_elastic.core.events import PolicyFileChanged
from spark_elastic.core.keys.application import ADVISE_ONLY, POLICY_FILE
from spark_elastic.core.keys.key import is_on
from spark_elastic.core.keys.rescaling import MODE, PYTHON, STATE_STORE
from spark_elastic.core.own_settings import own_texts, settings_of
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.transitions import FINISHED
from spark_elastic.installation import Spark
from spark_elastic.jar import JarNotFoundError, jar_path
from spark_elastic.lacks import Lack, lacks_of, repartitions
from spark_elastic.policy_file import PolicyFileError, load_policy
from spark_elastic.runtime.custom.host import Host
from spark_elastic.settings import PREFIX, Settings, SettingsError, load, spellings
from spark_elastic.spark_conf import DRIVER_CLASS_PATH, JARS, PLUGIN, PLUGINS, has_jar, has_plugin
from spark_elastic.version import __version__
from spark_elastic_tools.cli import kubernetes
from spark_elastic_tools.cli.check import Check
from spark_elastic_tools.client import Driver, Json, NoDriver, title
from spark_elastic_tools.java import NoJavaError, java_for

_OLDEST_PYTHON = (3, 10)
_PROBE_TIMEOUT_S = 20
_CONVERTIBLE = ("no_repartition_unconverted", "no_repartition_chosen")


def python() -> Check:
    """Check the Python that runs this command."""
    found = f"Python {platform.python_version()} ({sys.executable})"
    if sys.version_info < _OLDEST_PYTHON:
        return Check.fail("python", found, "install Python 3.10 or newer")
    return Check.ok("python", found)


def java(spark: Spark | None) -> Check:
    """Check the Java that this Spark would run."""
    try:
        found = java_for(spark.version if spark is not None else None)
    except NoJavaError as error:
        problem, _, change = str(error).partition(": ")
        return Check.fail("java", problem, change)
    return Check.ok("java", f"Java {found.version} ({found.program})")


def spark(found: Spark | None) -> Check:
    """Check that Spark is installed."""
    if found is None:
        return Check.fail("spark", "no Spark found", "type `pip install pyspark`, or set SPARK_HOME")
    return Check.ok("spark", str(found))


def jar(spark: Spark | None) -> Check:
    """Check that there is a jar for that Spark."""
    try:
        return Check.ok("jar", str(jar_path(spark)))
    except JarNotFoundError as error:
        found, _, change = str(error).partition(": ")
        return Check.fail("jar", found, change)


def lacks(spark: Spark, found: Iterable[Lack]) -> list[Check]:
    """List what this Spark lacks and a later version has."""
    return [
        Check.warn("lacks", f"{spark} lacks {lack}", f"use Spark {lack.since} or later if you need it")
        for lack in found
    ]


def no_properties_file() -> Check:
    """Report that there are no settings to check."""
    return Check.ok("settings", "no spark-defaults.conf: start with spark-submit $(spark-elastic conf)")


def settings(conf: Mapping[str, str], file: Path) -> list[Check]:
    """Check all settings under the prefix."""
    try:
        load(conf)
    except SettingsError as error:
        # Each sentence is "what was found, what is allowed: what to type".
        parts = (sentence.rpartition(": ") for sentence in error.errors)
        return [Check.fail("settings", found, change) for found, _, change in parts]
    count = sum(name.startswith(PREFIX) for name in conf)
    return [
        Check.ok("settings", f"{count} of spark-elastic in {file}"),
        *_own_settings(load(conf).core(), None),
        *_custom_policies(load(conf)),
    ]


def _own_settings(application: CoreSettings, file: PolicyFileChanged | None) -> list[Check]:
    """List the own settings of each named query, from the conf or the policy file, and their problems."""
    check, results = "query settings", []
    for name in file.settings if file is not None else application.queries:
        own, problems = settings_of(name, application, file)
        parts = (sentence.rpartition(": ") for sentence in problems)
        results += [Check.fail(check, f"{name}: {found}", change) for found, _, change in parts]
        if own is not None and not problems:
            texts = own_texts(own, application).items()
            results.append(
                Check.ok(check, f"{name}: " + ", ".join(f"{key} is {text}" for key, text in texts))
            )
    return results


def _custom_policies(settings: Settings) -> list[Check]:
    """Check that each named custom policy can be imported and created, each in its own process."""
    host = Host()
    host.begin(settings)
    results = []
    for name in settings.custom_policies:
        problems = host.problems((name,), _PROBE_TIMEOUT_S)
        parts = (problem.rpartition(": ") for problem in problems)
        results += [Check.fail("policy", found, change) for found, _, change in parts]
        if not problems:
            results.append(Check.ok("policy", f"{name} can be imported and made here"))
    host.close()
    return results


def policy_file(conf: Mapping[str, str]) -> list[Check]:
    """Check the policy file, if one is configured."""
    try:
        settings = load(conf)
    except SettingsError:
        return []  # the check of the settings reports it
    name = settings[POLICY_FILE]
    if name is None:
        return []
    try:
        found = load_policy(Path(name).read_bytes())
    except OSError as error:
        return [Check.fail("policy file", f"{name} cannot be read ({error.strerror})", "name another file")]
    except PolicyFileError as error:
        parts = (sentence.rpartition(": ") for sentence in error.errors)
        return [Check.fail("policy file", found, change) for found, _, change in parts]
    named = dict.fromkeys((*found.queries, *found.sharing, *found.settings))
    return [
        Check.ok("policy file", f"{name} names {', '.join(named) or 'no query'}"),
        *(_own_settings(settings.core(), found.event("", 0, name)) if settings[MODE] != "off" else ()),
    ]


def plugin(conf: Mapping[str, str], file: Path) -> Check:
    """Check that the settings turn the plugin on."""
    if has_plugin(conf):
        return Check.ok("plugin", f"on in {file}")
    return Check.warn(
        "plugin",
        f"{PLUGINS} in {file} has no {PLUGIN}",
        "add the lines of `spark-elastic conf --format defaults`, or submit with $(spark-elastic conf)",
    )


def class_path(conf: Mapping[str, str], spark: Spark | None, home: Path | None) -> list[Check]:
    """Check that the driver finds the plugin's class, in the jar for this Spark.

    The jar may be named in the settings or lie next to Spark's own jars in the folder `home`.
    """
    if not has_plugin(conf):
        return []
    try:
        wanted = jar_path(spark)
    except JarNotFoundError:
        return []  # the check of the jar reports it
    on_driver = has_jar(conf.get(DRIVER_CLASS_PATH, ""), os.pathsep)
    on_all = has_jar(conf.get(JARS, ""), ",")
    beside = [str(jar) for jar in (home / "jars").glob("spark-elastic_*.jar")] if home is not None else []
    results = []
    for entry in dict.fromkeys((*on_driver, *on_all, *beside)):
        path = Path(unquote(urlsplit(entry).path))
        if path.name != wanted.name:
            results.append(
                Check.fail("class path", f"{entry} is of another version", f"replace it by {wanted}")
            )
        elif urlsplit(entry).scheme in ("", "file", "local") and not path.exists():
            results.append(Check.fail("class path", f"{entry} does not exist", f"replace it by {wanted}"))
    if not on_driver and not on_all and not beside:
        results.append(
            Check.fail(
                "class path", "the driver has no jar of spark-elastic", f"add {DRIVER_CLASS_PATH} {wanted}"
            )
        )
    return results or [Check.ok("class path", "the driver has the jar")]


def dynamic_allocation(conf: Mapping[str, str]) -> Check:
    """Check that Spark's dynamic allocation does not scale the executors as well."""
    name = "spark.dynamicAllocation.enabled"
    if is_on(conf, name):
        return Check.warn(
            "conflicts",
            f"{name} is true: queries keep Spark's own count, and executors are left to Spark",
            f"set {name} to false",
        )
    return Check.ok("conflicts", "none")


def checkpoints(conf: Mapping[str, str], spark: Spark | None) -> Check:
    """Report what a query needs to resume without the plugin from a checkpoint that was created with it."""
    if spark is not None and not repartitions(spark):
        return Check.ok("checkpoints", "in the format of this Spark, which needs nothing without the plugin")
    try:
        unchanged = load(conf)[STATE_STORE] == "unchanged"
    except SettingsError:
        return Check.ok("checkpoints", "not looked at")  # the check of the settings says why
    if unchanged:
        return Check.ok("checkpoints", "in the format that each application chooses")
    # Spark restores the state store from a checkpoint, but not its format.
    needs = "spark.sql.streaming.stateStore.checkpointFormatVersion=2"
    found = f"without the plugin, stateful queries that began with it need {needs}"
    return Check.ok("checkpoints", f"{found}, or 'spark-elastic checkpoint convert'")


def policy_python(conf: Mapping[str, str], environment: Mapping[str, str]) -> Check:
    """Check that the Python of the policy process has this version of the package."""
    ours = [conf[name] for name in spellings(conf, PYTHON)]
    names = ("spark.pyspark.driver.python", "spark.pyspark.python")
    variables = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
    sparks = [*(conf.get(name) for name in names), *(environment.get(name) for name in variables)]
    # The driver's Python may be a notebook or a script; the plugin skips those.
    pythons = [path for path in sparks if path and Path(path).name.startswith("python")]
    program = next(iter((*ours, *pythons)), "python3")
    probe = [program, "-c", "import spark_elastic; print(spark_elastic.__version__)"]
    advice = f"set {PYTHON.full_name} to a Python that has it, such as {sys.executable}"
    try:
        run = subprocess.run(probe, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return Check.fail("policy", f"'{program}' does not run", advice)
    version = run.stdout.strip()
    if run.returncode != 0:
        # `spark-elastic conf` names this Python, so it matters only if the settings are written by hand.
        kind = Check.fail if has_plugin(conf) else Check.warn
        return kind("policy", f"{program} has no spark-elastic", advice)
    if version != __version__:
        return Check.fail("policy", f"{program} has spark-elastic {version}, not {__version__}", advice)
    return Check.ok("policy", f"{program} has spark-elastic {version}")


# ---- The checks of `spark-elastic doctor --live`: what a running application reports about itself.


_NO_API = (
    "search the driver's log for 'spark-elastic: ': on a vendor's build of Spark the REST API itself can "
    "be what does not fit, while the rest is on"
)


def checks(driver: Driver) -> list[Check]:
    """Ask the driver which parts are on or off, and why. Raises Failure."""
    try:
        overview = driver.get("/overview")
    except NoDriver as failure:
        raise NoDriver(f"{failure}\n{_NO_API}") from failure
    application, parts = overview["application"], overview.get("parts", [])
    return [
        Check.ok("driver", f"{application['name']} ({application['id']}) at {driver.url}"),
        _version(overview),
        Check.ok("spark", f"Spark {overview['sparkVersion']}"),
        *_mode(overview),
        _policy(overview),
        # A driver of another version may report no policies, parts or lacks.
        *_running_policies(overview.get("customPolicies", [])),
        _slots(overview),
        *([] if overview.get("ended") else kubernetes.checks(driver, application["id"])),
        *_checkpoints(driver),
        *_parts(parts),
        *_lacks(overview, parts),
    ]


def _version(overview: Json) -> Check:
    there = overview["version"]
    if there != __version__:
        return Check.fail(
            "version",
            f"the driver has spark-elastic {there}, this is {__version__}",
            f"type `pip install 'spark-elastic[cli]=={there}'` here, or install {__version__} there",
        )
    return Check.ok("version", f"spark-elastic {there}")


def _mode(overview: Json) -> Iterable[Check]:
    yield Check.ok("mode", overview["mode"])
    if overview["adviseOnly"]:
        yield Check.warn(
            "mode", "it decides but changes nothing", f"set {ADVISE_ONLY.full_name} to false to let it act"
        )
    if not overview["mayWrite"]:
        why = "the REST API is read-only" if overview["readOnly"] else "Spark's ACLs do not let you modify"
        yield Check.warn("changes", why, "to change bounds, log in as a user who may modify the application")


def _policy(overview: Json) -> Check:
    times = overview["policyRestarts"]
    if times:
        return Check.warn(
            "policy",
            f"its process was replaced {times} time{'s' if times != 1 else ''}",
            "search the driver's log for 'restarting the policy process'",
        )
    return Check.ok("policy", "its process has run since the application started")


def _running_policies(policies: Iterable[Json]) -> Iterable[Check]:
    for policy in policies:
        if policy["error"] is None:
            yield Check.ok("policy", f"{policy['name']} has answered {policy['answers']} times")
        else:
            yield Check.warn(
                "policy",
                f"{policy['name']} has no answer: {policy['error']}",
                "repair it; until then what it wanted last stays in force",
            )


def _slots(overview: Json) -> Check:
    slots, many = overview["slots"]["now"], len(overview["executors"])
    found = f"{slots} on {many} executor{'s' if many != 1 else ''}"
    if not slots:
        return Check.warn("slots", found, "queries wait for the first executor: see Spark's page Executors")
    return Check.ok("slots", found)


def _checkpoints(driver: Driver) -> Iterable[Check]:
    """Warn of queries whose state could be rescaled if their checkpoints were converted."""
    for query in driver.get("/queries")["queries"]:
        # A driver of another version may not say it.
        keeps = query.get("keepsPartitions")
        if keeps is not None and keeps["reason"] in _CONVERTIBLE and query["state"] != FINISHED:
            found, _, change = keeps["message"].partition(". ")
            yield Check.warn("checkpoint", f"{title(query)}: {found}", change)


def _parts(parts: Iterable[Json]) -> Iterable[Check]:
    on = [part["name"] for part in parts if part["on"]]
    off = [part for part in parts if not part["on"]]
    if on:
        yield Check.ok("parts", f"on: {', '.join(on)}")
    for part in off:
        yield Check.warn(
            "parts",
            f"off: {part['name']}: {part['reason']}",
            "the rest works without it; a newer Spark, or Apache's own build of this one, may have it",
        )
    if not on and not off:
        yield Check.ok("parts", "not told by this driver: its log names those that are off")


def _lacks(overview: Json, parts: Iterable[Json]) -> list[Check]:
    spark, told = Spark(overview["sparkVersion"]), overview.get("lacks")
    if told is None:
        return lacks(spark, lacks_of(spark, off={part["name"] for part in parts if not part["on"]}))
    names = ("since", "what", "why", "instead")
    return lacks(spark, [Lack(**{name: lack[name] for name in names}) for lack in told])
