"""Take credentials out of texts, before anybody keeps, shows or logs them.

What the driver tells has texts that nobody has written for others to read: exceptions of connectors with a
URL and the login in it, folders that somebody has typed with one. All of it is read in one place (`wire.py`),
and so it is redacted there.
"""

from __future__ import annotations

import logging
import re

__all__ = ["RedactingFormatter", "redacted"]

_HIDDEN = "***"
# With these a name before the @ is that of a container, and part of the place.
_CONTAINERS = ("abfs://", "abfss://", "wasb://", "wasbs://")
# What is between :// and @, but for a port: a password may have any character in it, typed as it is.
_LOGIN = re.compile(
    r"""(?P<scheme>[a-z][a-z0-9+.-]*://)[^\s/?#"'<>@:]*(?P<password>:(?!\d{1,5}[/?#])[^\s"'<>]*)?@""",
    re.IGNORECASE,
)
# The words of Spark's own spark.redaction.regex, and what they are said to be.
_NAMED = re.compile(
    r"""((?:secret|passw(?:or)?d|token|access[._-]?key)[\w.-]*(?:["']?\s*=\s*["']?|["']\s*:\s*["']))"""
    r"""[^\s,;&"')\]}]+""",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """Return `text` without logins in URLs, and without what a password, token or the like is said to be."""
    if "@" in text:
        text = _LOGIN.sub(_without_login, text)
    if "=" in text or ":" in text:
        text = _NAMED.sub(rf"\g<1>{_HIDDEN}", text)
    return text


def _without_login(found: re.Match[str]) -> str:
    if found["password"] is None and found["scheme"].lower() in _CONTAINERS:
        return found[0]
    return f"{found['scheme']}{_HIDDEN}@"


class RedactingFormatter(logging.Formatter):
    """Leaves credentials out of what is logged, those in traces as well."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and its trace if it has one."""
        return redacted(super().format(record))
