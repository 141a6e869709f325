"""The policies that can be named in ``spark.elastic.policy``, beside the declared bounds alone."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.policies.autoscale.policy import Autoscale
from spark_elastic.core.policies.policy import Policy

POLICIES: Mapping[str, Policy] = {"autoscale": Autoscale()}
