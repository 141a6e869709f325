"""The policies by the names that ``spark.elastic.policy`` has for them (`core/keys/policies.py`)."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.keys.policies import DECLARED, SCHEDULE
from spark_elastic.core.policies.autoscale.policy import Autoscale
from spark_elastic.core.policies.declared import Declared
from spark_elastic.core.policies.policy import Policy
from spark_elastic.core.policies.schedule.policy import Schedule

POLICIES: Mapping[str, Policy] = {DECLARED: Declared(), SCHEDULE: Schedule(), "autoscale": Autoscale()}
