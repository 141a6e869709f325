"""The checks of `spark-elastic doctor --live`: what a running application says of itself."""

from __future__ import annotations

from collections.abc import Iterable

from spark_elastic import __version__
from spark_elastic.cli.checks import Check, lacks
from spark_elastic.client.driver import Driver
from spark_elastic.client.failures import NoDriver
from spark_elastic.client.source import Json
from spark_elastic.core.keys.application import ADVISE_ONLY
from spark_elastic.installation import Spark
from spark_elastic.lacks import Lack, lacks_of

_NO_API = (
    "look into the driver's log for 'spark-elastic: ': on a vendor's build of Spark the REST API itself can "
    "be what does not fit, while the rest is on"
)


def checks(driver: Driver) -> list[Check]:
    """Ask the driver and tell what is on and what is off, and why. Raises Failure."""
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
        # A driver of another version may have neither these nor parts nor lacks.
        *_custom_policies(overview.get("customPolicies", [])),
        _slots(overview),
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
            "mode", "it decides and changes nothing", f"set {ADVISE_ONLY.full_name} to false to let it act"
        )
    if not overview["mayWrite"]:
        why = "the REST API is read-only" if overview["readOnly"] else "Spark's ACLs do not let you modify"
        yield Check.warn("changes", why, "log in as somebody who may, if you want to change bounds")


def _policy(overview: Json) -> Check:
    times = overview["policyRestarts"]
    if times:
        return Check.warn(
            "policy",
            f"its process was replaced {times} time{'s' if times != 1 else ''}",
            "look into the driver's log for 'the policy process is started again'",
        )
    return Check.ok("policy", "its process runs since the application began")


def _custom_policies(policies: Iterable[Json]) -> Iterable[Check]:
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
