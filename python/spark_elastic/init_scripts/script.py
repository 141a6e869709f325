"""Put a script together: what it says of itself, its constants, and the bash that does the work."""

from __future__ import annotations

import hashlib
import shlex
from importlib import resources
from urllib.parse import urlsplit

from attrs import frozen

from spark_elastic import __version__
from spark_elastic.init_scripts.files import Files
from spark_elastic.init_scripts.platforms import Platform, home
from spark_elastic.spark_conf import PLUGIN


class PlaceError(ValueError):
    """Nothing can be taken from a place; the message says what was found, what is allowed, what to type."""


@frozen(kw_only=True)
class Order:
    """What a script is to do.

    `place` is the folder or URI that it takes `files` from, None: pip's index. With `strict` it ends with
    another code than 0 where it fails, and the platform then does not start the cluster.
    """

    platform: Platform
    mode: str
    files: Files
    place: str | None = None
    strict: bool = False


def check_place(place: str, platform: Platform) -> None:
    """Raise PlaceError if machines of this platform cannot take files from there."""
    scheme = urlsplit(place).scheme
    allowed = ", ".join(f"{name}/..." for name in platform.schemes)
    if scheme and f"{scheme}:" not in platform.schemes:
        raise PlaceError(f"'{place}' is no place for {platform.name}: name an absolute folder, or {allowed}")
    if not scheme and not place.startswith("/"):
        raise PlaceError(
            f"'{place}' is no absolute folder: name one as {platform.name} sees it, or {allowed}"
        )


def script(order: Order) -> str:
    """Return the script, the same for the same order; its own fingerprint stands in it."""
    return _written(order, hashlib.sha256(_written(order, "").encode()).hexdigest())


def _written(order: Order, fingerprint: str) -> str:
    parts = (
        "#!/usr/bin/env bash",
        _comment(order),
        _constants(order, fingerprint),
        _bash("common"),
        _bash(order.platform.name),
        'main "$@"',
    )
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _comment(order: Order) -> str:
    log = _log(order.platform)
    how = (
        "The files that it installs are taken from FROM and checked against CHECKSUMS."
        if order.place is not None
        else "It installs with pip, from the index that pip is set up for"
        + (", and only files that have the checksums below." if order.files.checksums else ".")
    )
    ends = (
        "If it fails, the cluster does not start (--strict)."
        if order.strict
        else f"If it fails, it says so in {log} and ends with 0: the cluster starts, with plain Spark."
    )
    lines = [
        f"spark-elastic {__version__} on {order.platform.title}.",
        f"Made by `spark-elastic init-script {order.platform.name}`; make it anew rather than change it.",
        "",
        *order.platform.about.format(home=home(__version__), log=log).splitlines(),
        "",
        f"{how} A second run changes nothing.",
        ends,
    ]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def _log(platform: Platform) -> str:
    return f"/var/log/spark-elastic/{platform.name}.log"


def _constants(order: Order, fingerprint: str) -> str:
    constants = {
        "VERSION": __version__,
        "FINGERPRINT": fingerprint,
        "PLUGIN": PLUGIN,
        "MODE": order.mode,
        "STRICT": "true" if order.strict else "false",
        "FROM": order.place or "",
        "LOG_FILE": _log(order.platform),
        "HOME_FOLDER": home(__version__),
        "CHECKSUMS": "\n".join(f"{value}  {name}" for name, value in order.files.checksums.items()),
        "REQUIREMENTS": "\n".join(order.files.requirements),
    }
    return "\n".join(f"readonly {name}={shlex.quote(value)}" for name, value in constants.items())


def _bash(name: str) -> str:
    text = resources.files("spark_elastic.init_scripts").joinpath(f"{name}.sh").read_text(encoding="utf-8")
    # What a fragment says of itself is for who reads it alone.
    return text.partition("\n\n")[2]
