"""What can go wrong between a client and a driver; each text says what was found and what to type."""

from __future__ import annotations


class Failure(Exception):
    """Something was not done; the text may have several lines, one for each error."""


class Refused(Failure):
    """The driver has understood the request and does not do it, or it has failed."""


class NoDriver(Failure):
    """Nobody answers, or somebody who is no driver with spark-elastic of this version, or not trusted."""


class NotAllowed(Failure):
    """Who asks may not: the API is read-only, Spark's ACLs forbid it, or the UI wants a login."""


class UnknownQuery(Failure):
    """No query, or more than one, is called so."""


class Busy(Failure):
    """The policy process is busy, just starting, or gone for the moment."""
