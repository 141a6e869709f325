"""Tests of error summaries: of a Python traceback, the line that names the exception is shown."""

from __future__ import annotations

import pytest

from spark_elastic.core.failures.judge import summary

PROXY = "An exception was raised by the Python Proxy. Return Message: "
TRACE = """\
Traceback (most recent call last):
  File "/opt/py4j/java_gateway.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ~~~~~~~^^^^^^^^
"""


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("Job aborted\ndue to stage failure", "Job aborted\ndue to stage failure"),
        (f"{PROXY}{TRACE}ValueError: the sink is ill\n", "ValueError: the sink is ill"),
        (f"{PROXY}{TRACE}AssertionError\n", "AssertionError"),
        (f"{PROXY}{TRACE}ValueError: one line\nand another\n", "ValueError: one line"),
        # The last of several exceptions is the one that was not caught.
        (
            f"{TRACE}KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
            f"{TRACE}ValueError: no a\n",
            "ValueError: no a",
        ),
        # Python may have called Java.
        (
            f"{TRACE}py4j.protocol.Py4JJavaError: An error occurred while calling o75.save.\n"
            ": org.apache.spark.SparkException: Job aborted.\n\tat org.apache.spark.X.y(X.scala:1)\n",
            "py4j.protocol.Py4JJavaError: An error occurred while calling o75.save."
            ": org.apache.spark.SparkException: Job aborted.",
        ),
        # On an executor, Java appends its own stack trace.
        (
            f"Job aborted: org.apache.spark.api.python.PythonException: {TRACE}ZeroDivisionError: by zero\n\n"
            "\tat org.apache.spark.api.python.Runner.run(Runner.scala:9)\nDriver stacktrace:",
            "ZeroDivisionError: by zero",
        ),
        # The middle of a text that was too long is cut out.
        (f"{PROXY}{TRACE}  File …\nValueError: x", "ValueError: x"),
        (f"{PROXY}{TRACE}…\nValueError: x", "ValueError: x"),
        (f"{PROXY}{TRACE}", f"{PROXY}{TRACE}"),
    ],
)
def test_the_line_that_says_what_was_raised(error: str, shown: str) -> None:
    assert summary(error) == shown
