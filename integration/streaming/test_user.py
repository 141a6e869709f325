"""Tests that a query reads and writes as the user who started it, in all of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.jdk_tools import compile_java
from integration.streaming.driver import PLUGIN, driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SOMEBODY = "somebody"
_JAVA = """\
import java.security.PrivilegedExceptionAction;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.StreamingQuery;

/** Starts a query as some user, and notes who runs its batches. */
public class Users {
  public static final List<String> seen = new CopyOnWriteArrayList<>();

  public static StreamingQuery start(DataStreamWriter<Row> writer, String user) throws Exception {
    VoidFunction2<Dataset<Row>, Long> note =
        (batch, number) -> seen.add(UserGroupInformation.getCurrentUser().getUserName());
    PrivilegedExceptionAction<StreamingQuery> start = () -> writer.foreachBatch(note).start();
    return UserGroupInformation.createRemoteUser(user).doAs(start);
  }
}
"""


def test_a_query_that_is_rescaled_runs_as_the_user_who_has_started_it(tmp_path: Path) -> None:
    source, classes = tmp_path / "Users.java", tmp_path / "classes"
    source.write_text(_JAVA)
    compile_java(source, classes)
    policy = ScriptedPolicy(tmp_path / "policy")
    policy.order(every=1)
    inbox = Inbox(tmp_path / "in")
    conf = {**PLUGIN, "spark.elastic.python": policy.python}
    with driver(tmp_path / "driver", [classes]) as jvm, jvm.session(conf) as spark:
        rows = spark.readStream.schema(SCHEMA).json(str(inbox.folder))
        query = jvm.jvm.Users.start(rows.writeStream._jwrite, SOMEBODY)

        def rescaled() -> bool:
            inbox.put()
            query.processAllAvailable()
            ordered = policy.rescales(str(query.id().toString()))
            return ordered >= 2 and jvm.jvm.Users.seen.size() >= 3

        eventually(rescaled, "it is rescaled twice, and a batch follows")
        query.stop()
        seen = list(jvm.jvm.Users.seen)
    assert set(seen) == {SOMEBODY}
