"""The Spark that the tests run on, and its features."""

from __future__ import annotations

import pyspark

SPARK_MINOR = tuple(int(number) for number in pyspark.__version__.split(".")[:2])

MOVES_STATE = SPARK_MINOR >= (4, 2)
"""Whether the state of a query can get another partition count."""
