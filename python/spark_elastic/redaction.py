"""Remove credentials from texts before they are stored, shown or logged.

The driver sends texts that were not written for other readers, such as exceptions of connectors that contain
a URL with a login, or folders typed with one. All of these texts are read in one place (`wire.py`) and
redacted there.
"""

from __future__ import annotations

import logging
import re

__all__ = ["RedactingFormatter", "redacted"]

_HIDDEN = "***"
# In these schemes the name before the @ is a container, and part of the path.
_CONTAINERS = ("abfs://", "abfss://", "wasb://", "wasbs://")
# The text between :// and @, except for a port. A password may contain any character, unescaped.
_LOGIN = re.compile(
    r"""(?P<scheme>[a-z][a-z0-9+.-]*://)[^\s/?#"'<>@:]*(?P<password>:(?!\d{1,5}[/?#])[^\s"'<>]*)?@""",
    re.IGNORECASE,
)
# The words of Spark's own spark.redaction.regex, and the values assigned to them.
_NAMED = re.compile(
    r"""((?:secret|passw(?:or)?d|token|access[._-]?key)[\w.-]*(?:["']?\s*=\s*["']?|["']\s*:\s*["']))"""
    r"""[^\s,;&"')\]}]+""",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """Return `text` without logins in URLs, and without the values of passwords, tokens and the like."""
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
    """Removes credentials from log messages, including their tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, with its traceback if it has one."""
        return redacted(super().format(record))
