"""Assemble a script: its header comment, its constants, and the bash that does the work."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from attrs import field, frozen

from spark_elastic.core.keys.rescaling import MODE, PYTHON
from spark_elastic.spark_conf import PLUGIN, PLUGINS
from spark_elastic.version import __version__

# ---- The platforms: when scripts run there, where their machines have Spark, how they are configured. The
# facts come from the platforms' own documentation, or from other projects that install there the same way.
# None of it has been tried on a real machine of a platform; the README next to each script in conf says so.


@frozen(kw_only=True)
class Platform:
    """A platform: its name, which selects the bash file for it, and the text for a script's header.

    `about` has placeholders {home} and {log}, the folder of the installation and the log. `schemes` are the
    URI schemes, in addition to folders, that its machines can take files from.
    """

    name: str
    title: str
    schemes: tuple[str, ...]
    about: str


def home(version: str) -> str:
    """Return the folder into which a script installs a version."""
    return f"/opt/spark-elastic/{version}"


def settings(mode: str, version: str) -> Mapping[str, str]:
    """Return the settings that turn the plugin on after a script has installed it."""
    return {
        PLUGINS: PLUGIN,
        MODE.full_name: mode,
        PYTHON.full_name: f"{home(version)}/bin/python",
    }


def configurations(mode: str, version: str) -> list[dict[str, object]]:
    """Return the settings in EMR's format for a new cluster (`--configurations`).

    EMR writes its configuration files from such classifications after bootstrap actions have run; the one for
    spark-defaults.conf is `spark-defaults`.
    https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-configure-apps.html
    """
    return [{"Classification": "spark-defaults", "Properties": dict(settings(mode, version))}]


# An init script runs on each node before the driver's or an executor's JVM starts. A cluster does not start
# if a script exits with a code other than 0. Packages are installed with /databricks/python/bin/pip.
#   https://docs.databricks.com/en/init-scripts/index.html
#   https://docs.databricks.com/clusters/init-scripts.html
# DB_IS_DRIVER is TRUE only on the driver's node.
#   https://docs.databricks.com/init-scripts/environment-variables.html
# A script on a volume can read volumes; one in the workspace can read workspace files from runtime 11.3.
#   https://learn.microsoft.com/azure/databricks/init-scripts/referencing-files
# Standard (shared) access mode runs only allowlisted init scripts; users have no SparkContext there.
#   https://docs.databricks.com/data-governance/unity-catalog/manage-privileges/allowlist.html
#   https://learn.microsoft.com/azure/databricks/compute/standard-limitations
# 14.3 is the first runtime with long-term support that has a Spark with a jar: 13.3 has Spark 3.4.
# Runtime 16.4 comes with Scala 2.12 or 2.13, 17 and later only with 2.13.
#   https://docs.databricks.com/aws/en/release-notes/runtime/
#   https://docs.databricks.com/release-notes/runtime/16.4.html
# Not documented by Databricks, but used by others: NVIDIA puts its plugin's jar into /databricks/jars and
# reads /databricks/spark/VERSION (github.com/NVIDIA/spark-rapids, jenkins/databricks). OpenLineage and Hail
# write `[driver] { "key" = "value" }` into a file in /databricks/driver/conf, where the name that sorts first
# wins.
DATABRICKS = Platform(
    name="databricks",
    title="Databricks: cluster-scoped init script",
    schemes=("dbfs:", "file:"),
    about="""\
On every node it puts the jar where Spark's own are (/databricks/jars). On the driver's node it also
installs the policy engine, under {home}, and writes the settings into
/databricks/driver/conf, last of all. Executors need nothing of it; the jar is on their nodes in case
this runtime hands them spark.plugins before the plugin has taken its own name out.

Store it on a Unity Catalog volume or as a workspace file, and name it under Compute > Advanced > Init
scripts. It writes to {log} and to its output, which Databricks
keeps with the cluster's logs.

Not run on Databricks yet. Suspected there:
  - Standard (formerly shared) access mode: the script, the jar and their folder need an entry in the
    metastore's allowlist. Queries run in the driver for clients of Spark Connect; foreachBatch is
    decided about as it is on any Connect server. Where users may not reach the driver's UI, there is no
    REST API for them.
  - Photon plans stages of its own: a batch query may keep Databricks' numbers of partitions. Streaming
    queries that Photon runs are rescaled as others, as far as their state is Spark's own.
  - A runtime is a build of Spark that differs from Apache's: the plugin compares, and leaves off what does
    not fit. Runtime 17.3 is reported to have javax.servlet where Apache's Spark 4 has jakarta.servlet
    (github.com/dataflint/spark/pull/71): the REST API and the Elastic tab would be off, the rest works.
    `spark-elastic doctor --live` asks a running application; where there is no REST API, the driver's log
    says it: "spark-elastic: continues without ...".""",
)

# Bootstrap actions run on every node, as hadoop with sudo, before EMR installs Spark; a cluster does not
# start if one fails. A step runs on the primary node after everything is installed.
#   https://aws.amazon.com/premiumsupport/knowledge-center/bootstrap-step-emr/
#   https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-plan-bootstrap.html
# EMR 7 runs on Amazon Linux 2023, whose python3 is 3.9; python3.11 and python3.11-pip are separate packages.
#   https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-default-ami.html
#   https://docs.aws.amazon.com/linux/al2023/ug/python.html
# EMR enables dynamic allocation.
#   https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-spark-configure.html
# Not documented by AWS: Spark's jars are in /usr/lib/spark/jars, where other projects add jars too.
EMR = Platform(
    name="emr",
    title="Amazon EMR on EC2: bootstrap action, and step",
    schemes=("s3:", "file:"),
    about="""\
As a bootstrap action, on every node: it installs the policy engine and the jars under
{home}. Then it waits in the background until EMR has installed Spark (an hour at
most), and puts the jar that fits into /usr/lib/spark/jars. In deploy mode cluster the driver may run on
any node.

EMR writes spark-defaults.conf after bootstrap actions, so the settings come in one of two ways:

  1. A step, after the bootstrap actions; it makes sure that jar and engine are there first:

       aws emr add-steps --cluster-id ID --steps 'Type=CUSTOM_JAR,Name=spark-elastic,
         ActionOnFailure=CONTINUE,Jar=command-runner.jar,Args=[bash,
         {home}/bootstrap.sh,configure]'     (in one line, without blanks)

  2. --configurations when the cluster is created; `spark-elastic init-script emr --configurations`
     prints that file. Applications then fail to start until the jar is there, and forever if it cannot be.

Its Python has to be 3.10 or later; EMR 7 has 3.9. A bootstrap action before this one can install it:

       sudo dnf install -y python3.11 python3.11-pip

It writes to {log} and to its output, which EMR keeps with the logs of
bootstrap actions.

Not run on EMR yet. Suspected there: EMR's Spark is a build of its own, so the plugin compares it with
Apache's and leaves off what does not fit; `spark-elastic doctor --live` asks a running application.
EMR has spark.dynamicAllocation.enabled on. Set it to false in either mode: while it is on queries keep
Spark's own count, whose tasks bring executors, and in adaptive mode spark-elastic requests none.""",
)

PLATFORMS: Mapping[str, Platform] = {platform.name: platform for platform in (DATABRICKS, EMR)}


# ---- The files that a script installs, and their checksums.


# File names as `pip download` and the build of the shim create them.
_WHEEL = re.compile(r"(?P<name>[\w.]+)-(?P<version>[\w.!+]+)(-\d\w*)?-[\w.]+-[\w.]+-[\w.]+\.whl")
_JAR = re.compile(r"spark-elastic_\d+\.\d+_\d+\.\d+-(?P<version>.+)\.jar")
_OURS = "spark-elastic"


class FilesError(ValueError):
    """A folder lacks what a script needs; the message says what was found and what to type."""


@frozen
class Files:
    """The files to install: SHA-256 checksums by file name, and pip requirement lines for the wheels."""

    checksums: Mapping[str, str] = field(factory=dict)
    requirements: tuple[str, ...] = ()


def from_index(version: str) -> Files:
    """Return the files if no folder is named: this version and its dependencies from pip, unchecked."""
    return Files(requirements=(f"{_OURS}=={version}",))


def read_files(folder: Path, version: str) -> Files:
    """Return the wheels and our jars in a folder, each with its checksum.

    Several wheels of one version are alternatives for different platforms. Raises FilesError if the folder
    has no wheel of this version of ours, two versions of one package, or a file of ours of another version.
    """
    paths = sorted(path for path in folder.glob("*") if path.suffix in (".whl", ".jar"))
    wheels: dict[str, dict[str, list[Path]]] = {}
    jars = []
    for path in paths:
        wheel, jar = _WHEEL.fullmatch(path.name), _JAR.fullmatch(path.name)
        if wheel is not None:
            wheels.setdefault(_normal(wheel["name"]), {}).setdefault(wheel["version"], []).append(path)
        elif jar is not None:
            _check_version(path, jar["version"], version)
            jars.append(path)
        else:
            raise FilesError(f"{path} is neither a wheel nor a jar of {_OURS}: remove it")
    _check(folder, wheels, version)
    checksums = {path.name: _sha256(path) for path in paths}
    return Files(checksums, tuple(_requirements(wheels, checksums)))


def _check(folder: Path, wheels: Mapping[str, Mapping[str, list[Path]]], version: str) -> None:
    if _OURS not in wheels:
        raise FilesError(
            f"{folder} has no wheel of {_OURS}: type `pip download --only-binary=:all: --python-version 3.11 "
            f"--platform manylinux2014_x86_64 --dest {folder} {_OURS}=={version}`, with the Python and the "
            "platform of the nodes"
        )
    for found, paths in wheels[_OURS].items():
        _check_version(paths[0], found, version)
    for name, versions in wheels.items():
        if len(versions) > 1:
            raise FilesError(f"{folder} has {name} {' and '.join(versions)}: keep one of them")


def _check_version(path: Path, found: str, version: str) -> None:
    if found != version:
        raise FilesError(
            f"{path} is of version {found}, and this is {_OURS} {version}: take the files of {version}, or "
            f"type `pip install {_OURS}=={found}` and make the script with that"
        )


def _requirements(
    wheels: Mapping[str, Mapping[str, list[Path]]], checksums: Mapping[str, str]
) -> Iterable[str]:
    for name, versions in sorted(wheels.items()):
        for version, paths in versions.items():
            hashes = " ".join(f"--hash=sha256:{checksums[path.name]}" for path in paths)
            yield f"{name}=={version} {hashes}"


def _normal(name: str) -> str:
    """Return a package's name in the index's normalized form."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while part := file.read(1 << 20):
            digest.update(part)
        return digest.hexdigest()


class PlaceError(ValueError):
    """Files cannot be taken from a place; the message says what was found, what is allowed, what to type."""


@frozen(kw_only=True)
class Order:
    """The options of a script.

    `place` is the folder or URI that it takes `files` from; None means pip's index. With `strict`, a failing
    script exits with a code other than 0, and the platform does not start the cluster.
    """

    platform: Platform
    mode: str
    files: Files
    place: str | None = None
    strict: bool = False


# Unity Catalog addresses a volume by three names.
_VOLUMES = "/Volumes/"


def check_place(place: str, platform: Platform) -> None:
    """Raise PlaceError if machines of this platform cannot take files from there."""
    scheme = urlsplit(place).scheme
    allowed = ", ".join(f"{name}/..." for name in platform.schemes)
    if scheme and f"{scheme}:" not in platform.schemes:
        raise PlaceError(
            f"'{place}' is not a place for {platform.name}: name an absolute folder, or {allowed}"
        )
    if not scheme and not place.startswith("/"):
        raise PlaceError(
            f"'{place}' is not an absolute folder: name one as {platform.name} sees it, or {allowed}"
        )
    names = place.removeprefix(_VOLUMES).strip("/").split("/")
    if platform is DATABRICKS and place.startswith(_VOLUMES) and len(names) < 3:
        raise PlaceError(
            f"'{place}' is not in a volume: name {_VOLUMES}CATALOG/SCHEMA/VOLUME or a folder in it"
        )


def script(order: Order) -> str:
    """Return the script, which includes its own fingerprint; equal orders give equal scripts."""
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
    text = (
        resources.files("spark_elastic_tools.init_scripts").joinpath(f"{name}.sh").read_text(encoding="utf-8")
    )
    # A fragment's header comment is only for readers of the fragment.
    return text.partition("\n\n")[2]
