"""A view with one query, for tests that ask policies."""

from __future__ import annotations

from random import Random

from attrs import evolve

from spark_elastic.policies import ClusterView
from spark_elastic.policies.conformance import made_up, query

QUERY = "orders"
_ANY = made_up(Random(1))
VIEW: ClusterView = evolve(_ANY, queries={QUERY: query(QUERY, _ANY.at, _ANY.slots, Random(2))})
