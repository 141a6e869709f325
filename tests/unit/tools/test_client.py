"""Tests of the addresses of drivers that the client accepts."""

from __future__ import annotations

import pytest

from spark_elastic_tools.client import tidy_url


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("http://localhost:4040", "http://localhost:4040"),
        ("localhost:4040/", "http://localhost:4040"),
        (" https://host/proxy/app-1/jobs/?id=1#top ", "https://host/proxy/app-1"),
        ("http://host:4040/elastic/api/v1/queries", "http://host:4040"),
        ("http://host/proxy/elastic-app/elastic/", "http://host/proxy/elastic-app"),
        ("http://[::1]:4040/StreamingQuery", "http://[::1]:4040"),
        ("http://rm:8088/proxy/redirect/application_1_1/jobs/", "http://rm:8088/proxy/application_1_1"),
        ("http://rm:8088/proxy/redirect/", "http://rm:8088/proxy/redirect"),
    ],
)
def test_an_address_is_taken_as_somebody_copies_it(typed: str, url: str) -> None:
    assert tidy_url(typed) == url


@pytest.mark.parametrize("typed", ["", "ftp://host", "http://", "http://host:many", "http://u:p@host"])
def test_what_is_no_address_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        tidy_url(typed)
