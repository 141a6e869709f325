"""The platforms: when scripts run there, where their machines have Spark, how they are configured.

The facts are those of the platforms' own documentation, or of what others install there in the same way.
Nothing of it was tried on a machine of theirs; the README beside each generated script says so as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from spark_elastic.core.keys.rescaling import MODE, PYTHON
from spark_elastic.spark_conf import PLUGIN, PLUGINS


@frozen(kw_only=True)
class Platform:
    """A platform: its name, by which a file of bash knows what to do there, and what a script says of itself.

    `about` has places for {home} and {log}, the folder of the installation and the log. `schemes` are the
    kinds of places, beside folders, from which its machines can take files.
    """

    name: str
    title: str
    schemes: tuple[str, ...]
    about: str


def home(version: str) -> str:
    """Return the folder that a script installs a version into."""
    return f"/opt/spark-elastic/{version}"


def settings(mode: str, version: str) -> Mapping[str, str]:
    """Return the settings that turn the plugin on where a script has installed it."""
    return {
        PLUGINS: PLUGIN,
        MODE.full_name: mode,
        PYTHON.full_name: f"{home(version)}/bin/python",
    }


def configurations(mode: str, version: str) -> list[dict[str, object]]:
    """Return the settings as EMR takes them when a cluster is created (`--configurations`).

    EMR writes its configuration files from such classifications, after bootstrap actions have run; that of
    spark-defaults.conf is `spark-defaults`.
    https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-configure-apps.html
    """
    return [{"Classification": "spark-defaults", "Properties": dict(settings(mode, version))}]


# An init script runs on each node before the driver's or an executor's JVM starts. A cluster does not start
# if one ends with another code than 0. Packages go by /databricks/python/bin/pip.
#   https://docs.databricks.com/en/init-scripts/index.html
#   https://docs.databricks.com/clusters/init-scripts.html
# DB_IS_DRIVER is TRUE on the driver's node alone.
#   https://docs.databricks.com/init-scripts/environment-variables.html
# A script on a volume can read volumes, one in the workspace can read workspace files, from runtime 11.3 on.
#   https://learn.microsoft.com/azure/databricks/init-scripts/referencing-files
# Standard (shared) access mode runs init scripts that are on an allowlist; users have no SparkContext there.
#   https://docs.databricks.com/data-governance/unity-catalog/manage-privileges/allowlist.html
#   https://learn.microsoft.com/azure/databricks/compute/standard-limitations
# 14.3 is the first runtime with long-term support whose Spark has a jar: 13.3 has Spark 3.4.
# Runtime 16.4 exists for Scala 2.12 and 2.13, 17 and later for 2.13 alone.
#   https://docs.databricks.com/aws/en/release-notes/runtime/
#   https://docs.databricks.com/release-notes/runtime/16.4.html
# Not documented by Databricks, done by others: NVIDIA puts its plugin's jar into /databricks/jars and reads
# /databricks/spark/VERSION (github.com/NVIDIA/spark-rapids, jenkins/databricks). OpenLineage and Hail write
# `[driver] { "key" = "value" }` into a file of /databricks/driver/conf, where the name that sorts first wins.
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
# start if one fails. A step runs on the primary node after all is installed.
#   https://aws.amazon.com/premiumsupport/knowledge-center/bootstrap-step-emr/
#   https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-plan-bootstrap.html
# EMR 7 is on Amazon Linux 2023, whose python3 is 3.9; python3.11 and python3.11-pip are further packages.
#   https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-default-ami.html
#   https://docs.aws.amazon.com/linux/al2023/ug/python.html
# EMR turns dynamic allocation on.
#   https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-spark-configure.html
# Not documented by AWS: Spark's jars are in /usr/lib/spark/jars, where others put jars for the class path.
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
