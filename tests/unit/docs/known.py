"""The test that runs each command in the docs, or the reason why none does.

The first pattern that matches a whole command counts.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class RunBy:
    """A test, and the text in its file which shows that it runs the command."""

    file: str
    words: str


@frozen
class NotRun:
    """Why no test here can run it."""

    reason: str


_DRIVER_COMMANDS = "tests/unit/tools/cli/test_driver_commands.py"
_CHECKPOINTS = "integration/streaming/test_checkpoint_command.py"
_GETTING_STARTED = "integration/docs/test_getting_started.py"
_NO_INDEX = NotRun("installs the released wheel; the tests run the checkout's own")
_BENCH = "measures for minutes to hours"
_OBJECTS = "needs a Kubernetes cluster; tests/unit/kubernetes checks the objects and the settings"

KNOWN: dict[str, RunBy | NotRun] = {
    r"spark-elastic doctor --live": RunBy("tests/unit/tools/cli/test_doctor_live.py", '"--live"'),
    r"spark-elastic doctor": RunBy(_GETTING_STARTED, "spark-elastic doctor"),
    r"spark-elastic conf --format defaults": RunBy(_GETTING_STARTED, "spark-elastic conf --format defaults"),
    r"spark-elastic conf --mode reactive": RunBy(_GETTING_STARTED, "spark-elastic conf --mode reactive"),
    r"spark-elastic init-script .*": RunBy("tests/unit/tools/init_scripts/test_command.py", '"init-script"'),
    r"spark-elastic jar": RunBy("tests/unit/tools/cli/test_commands.py", 'run("jar"'),
    r"spark-elastic status( .*)?": RunBy("integration/streaming/test_cli.py", '"status"'),
    r"spark-elastic watch( .*)?": RunBy(_DRIVER_COMMANDS, '"watch"'),
    r"spark-elastic explain( .*)?": RunBy(_DRIVER_COMMANDS, '"explain"'),
    r"spark-elastic rescale .*": RunBy(_DRIVER_COMMANDS, '"rescale"'),
    r"spark-elastic savepoint .*": RunBy("tests/unit/tools/cli/test_savepoint_commands.py", '"savepoint"'),
    r"spark-elastic stop .*": RunBy("tests/unit/tools/cli/test_savepoint_commands.py", '"stop"'),
    r"spark-elastic simulate --load .* --policy my_package.*": RunBy(
        "tests/unit/docs/test_custom_policies.py", "commands(block)"
    ),
    r"spark-elastic simulate --load .*": RunBy("tests/unit/docs/test_examples.py", "_SIMULATED"),
    r"spark-elastic simulate --journal .*": RunBy("tests/unit/tools/cli/test_simulate.py", '"--journal"'),
    r"spark-elastic simulate scenario.yaml .*": RunBy("tests/unit/tools/cli/test_simulate.py", '"--compare"'),
    r"spark-elastic advise http:.*": RunBy("integration/advice/test_advise.py", "advise(url)"),
    r"spark-elastic advise .*": RunBy("tests/unit/tools/cli/test_advise.py", '"advise", *args'),
    r"spark-elastic compare .*": RunBy("integration/compare/test_compare.py", '"compare", "-n", "1"'),
    r"spark-elastic checkpoint inspect s3a:.*": NotRun(
        "needs an object store; integration/streaming/test_checkpoint_command.py inspects local checkpoints"
    ),
    r"spark-elastic checkpoint inspect .*": RunBy(_CHECKPOINTS, '"inspect"'),
    r"spark-elastic checkpoint repartition .*": RunBy(_CHECKPOINTS, '"repartition"'),
    r"spark-elastic checkpoint convert .*": RunBy(_CHECKPOINTS, '"convert"'),
    r"spark-elastic checkpoint undo .*": RunBy(_CHECKPOINTS, '"undo"'),
    r"spark-elastic checkpoint forget .*": RunBy(_CHECKPOINTS, '"forget"'),
    r"spark-submit --packages .*": RunBy("integration/jar/test_jar_alone.py", '"--packages" in block.text'),
    r"spark-submit --master yarn .*": RunBy(
        "integration/yarn/test_cluster_mode.py", '"environment/bin/python"'
    ),
    r"spark-submit --master k8s.*|kubectl .*|helm .*": NotRun(_OBJECTS),
    r"spark-submit SUBSTITUTED app.py": RunBy(_GETTING_STARTED, "spark-submit $("),
    r"spark-submit SUBSTITUTED --class Main app.jar": RunBy(_GETTING_STARTED, "--class Main app.jar"),
    r"spark-sql SUBSTITUTED .*": RunBy(_GETTING_STARTED, "$ spark-sql"),
    r"\$SPARK_HOME/sbin/start-thriftserver.sh SUBSTITUTED": RunBy(_GETTING_STARTED, "start-thriftserver.sh"),
    r"spark-shell SUBSTITUTED": RunBy(_GETTING_STARTED, "spark-shell $("),
    r"\$SPARK_HOME/sbin/start-history-server.sh": RunBy(
        "integration/browser/test_history_server.py", "SPARK_DAEMON_CLASSPATH"
    ),
    r"\$SPARK_HOME/sbin/start-connect-server.sh SUBSTITUTED": RunBy(
        "integration/connect/server.py", "org.apache.spark.sql.connect.service.SparkConnectServer"
    ),
    r"curl -s .*/savepoints": RunBy("tests/unit/http/test_savepoints.py", "/savepoints"),
    r"curl -s .*": RunBy("integration/cluster/rescale.sh", "resource-requirements"),
    r"jq -r? ?.*|sed -i .*|cat bounds.json": NotRun("only shows or edits what the command before it gave"),
    r"make test": NotRun("is what runs these tests"),
    r"make demo( .*)?|spark-elastic demo( .*)?": RunBy("integration/demo/test_demo.py", '"demo"'),
    r"make bench-(core|simulate|autoscale|advise|batch|nexmark|planning)( .*)?": NotRun(
        f"{_BENCH}; tests/unit/test_bench_*.py run parts of it"
    ),
    r"make bench-flink( .*)?": RunBy("integration/flink/test_bench.py", "integration.bench.flink"),
    r"make bench-(rescale|rest)": NotRun(f"{_BENCH} of a cluster"),
    r"make chaos FAULTS=60 SEED=1": RunBy("integration/chaos/test_chaos.py", "SEED, FAULTS"),
    r"pip install spark-elastic\[cli,demo\] pyspark": RunBy(
        "integration/demo/test_wheel.py", "pip install 'spark-elastic[cli,demo]'"
    ),
    r"make wheel( SPARK=4.2)?": RunBy("integration/demo/test_wheel.py", "built as `make wheel` does"),
    r"pip install SUBSTITUTED.*|echo dist/\*.whl": RunBy("integration/demo/test_wheel.py", "str(wheel)"),
    r"pip (install|download) .*": _NO_INDEX,
    r"(databricks|aws) .*": NotRun("needs an account there"),
    r"sudo dnf .*": NotRun("is for the machines of EMR; the tests of the script have Pythons as they have"),
}
