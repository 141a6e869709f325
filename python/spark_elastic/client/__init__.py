"""Clients of the REST API: where a driver is, how it is asked, and the same answers from a journal."""
