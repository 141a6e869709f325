"""What goes into an adapter and comes out of it."""

from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]
