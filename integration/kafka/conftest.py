"""Tests here go on from each other, as those on the cluster do."""

from integration.sequel import in_sequence as in_sequence
from integration.sequel import sequel as sequel
