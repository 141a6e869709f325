"""Tests of allowed savepoint targets: below a configured folder, and not merely with a similar path."""

from __future__ import annotations

import pytest

from spark_elastic.core.actions import TakeSavepoint
from spark_elastic.core.keys.key import Place
from spark_elastic.http.errors import Refusal
from spark_elastic.http.resources import permitted
from spark_elastic.settings import Settings, SettingsError, load
from tests.unit.http.world import ADAPTIVE, API, ID, world

SAVEPOINTS = f"{API}/queries/{ID}/savepoints"
DIR = "spark.elastic.savepointDir"
PREFIXES = "spark.elastic.savepoint.allowedPrefixes"
SECRET = "pl4nted"


def settings(
    folder: str = "s3a://b/x", prefixes: str = "/data/s, hdfs://nn:8020/s/,file:///var/s"
) -> Settings:
    return load({DIR: folder, PREFIXES: prefixes})


@pytest.mark.parametrize(
    ("target", "written", "within"),
    [
        ("s3a://b/x", "s3a://b/x", "s3a://b/x"),
        ("s3a://b/x/", "s3a://b/x", "s3a://b/x"),
        ("S3A://b//x///y/", "s3a://b/x/y", "s3a://b/x"),
        ("/data/s/a b/ü", "/data/s/a b/ü", "/data/s"),
        ("hdfs://nn:8020/s/daily", "hdfs://nn:8020/s/daily", "hdfs://nn:8020/s"),
        ("file:/var/s/1", "file:/var/s/1", "file:/var/s"),
        ("file:///var/s/1", "file:/var/s/1", "file:/var/s"),
    ],
)
def test_what_is_below_a_folder_of_the_settings_is_written(target: str, written: str, within: str) -> None:
    assert permitted(target, settings()) == (written, within)


@pytest.mark.parametrize("folder", ["/data/50%", "s3a://b/a#b", "s3a://b/a b/ü:x", "relative"])
def test_the_folder_of_the_settings_may_have_any_name(folder: str) -> None:
    assert permitted(folder, settings(folder)) == (folder, folder)
    for other in (f"{folder}%", f"{folder}#1", f"{folder}?1"):
        with pytest.raises(Refusal) as refused:
            permitted(other, settings(folder))
        assert "it has surrounding blanks, or one of % ? # " in refused.value.errors[0]


OUTSIDE = [
    "s3a://b/xy", "s3a://b", "s3a://b/", "s3a://B/x", "s3a://b2/x", "s3a://b/X/y", "s3://b/x/y", "s3a:/b/x",
    "s3a:///b/x", "s3a://b:80/x", f"s3a://k:{SECRET}@b/x", f"s3a://{SECRET}@b/x", "s3a://b@evil/x",
    "s3a://b/x/../y", "s3a://b/./x", "s3a://b/x/..", "s3a://b/x/%2e%2e/y", "s3a://b/x%2fy", "s3a://b/x/a\\..\\b",
    "s3a://b/x?versionId=1", "s3a://b/x#y", "s3a://b/x/\x00", "s3a://b/x/\ny", " s3a://b/x", "s3a://b/x ",
    "/data/sx", "/data", "/", "//data/s", "//nn:8020/s", "data/s", "file:/data/s", "file:///etc", "file://host/var/s",
    "hdfs://nn/s", "hdfs:/s", "hdfs:///s", "s", "~/s", "", ":", "file:", "file:var/s", "://b/x",
    f"ftp://user:{SECRET}@host/s", f"jdbc:mysql://u:{SECRET}@h/db", "http://169.254.169.254/latest",
]  # fmt: skip


@pytest.mark.parametrize("target", OUTSIDE)
def test_what_is_not_is_refused_with_what_is_allowed_and_no_word_of_the_target(target: str) -> None:
    with pytest.raises(Refusal) as refused:
        permitted(target, settings())
    (said,) = refused.value.errors
    assert "allowed is what is below s3a://b/x and /data/s and hdfs://nn:8020/s and file:/var/s" in said
    assert DIR in said
    assert PREFIXES in said
    assert SECRET not in said


def test_a_container_is_part_of_the_place_and_no_login() -> None:
    abfss = "abfss://container@account.dfs.core.windows.net/s"
    assert permitted(f"{abfss}/1", settings(abfss))[1] == abfss
    for other in ("abfss://other@account.dfs.core.windows.net/s/1", "abfss://account.dfs.core.windows.net/s"):
        with pytest.raises(Refusal):
            permitted(other, settings(abfss))


def test_what_the_settings_say_relatively_is_nothing_to_compare_with() -> None:
    with pytest.raises(Refusal) as refused:
        permitted("/savepoints/x", load({DIR: "savepoints"}))
    assert "allowed is what is below nothing" in refused.value.errors[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (DIR, f"ftp://user:{SECRET}@host/s"),
        (DIR, f"s3a://{SECRET}@bucket/s"),
        (PREFIXES, f"/s,ftp://user:{SECRET}@host/s"),
        (PREFIXES, "/s/../t"),
        (PREFIXES, "relative"),
        (PREFIXES, "/s%20t"),
    ],
)
def test_a_folder_of_the_settings_has_no_login_and_a_prefix_no_tricks(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load({name: value})


def test_a_place_is_read_again_from_what_it_is_written_as() -> None:
    for text in ("/", "/a/b", "s3a://b/", "file:/a", "hdfs://nn:8020/a"):
        place = Place.parse(text)
        assert (str(place), Place.parse(str(place))) == (text, place)


@pytest.mark.parametrize("stop", [False, True])
def test_a_request_is_held_against_the_settings(stop: bool) -> None:
    conf = {**ADAPTIVE, DIR: "hdfs://nn/s", PREFIXES: "file:/var/s"}
    with world(conf) as api:
        for target in ("file:///etc", "hdfs://nn/s/../t", f"ftp://u:{SECRET}@h/s"):
            reply = api.post(SAVEPOINTS, {"target": target, "stop": stop})
            assert reply.status == 400
            assert "allowed is what is below hdfs://nn/s and file:/var/s" in reply.errors
            assert SECRET not in reply.text
        assert api.post(SAVEPOINTS, {"target": "file:///var//s/1", "stop": stop}).status == 202
        order = api.shim.ordered(TakeSavepoint)
        assert (order.target, order.within, order.stop) == ("file:/var/s/1", "file:/var/s", stop)


def test_the_folder_of_the_settings_is_known_in_any_spelling() -> None:
    conf = {**ADAPTIVE, DIR: "file:///var/s/", "spark.elastic.savepoint.keep": "2"}
    with world(conf) as api:
        assert api.post(SAVEPOINTS, {"target": "file:/var//s"}).status == 202
        order = api.shim.ordered(TakeSavepoint)
        assert (order.target, order.within, order.keep) == ("file:///var/s/", "file:///var/s/", 2)


def test_without_a_target_it_stays_in_the_folder_of_the_settings() -> None:
    with world({**ADAPTIVE, DIR: "savepoints"}) as api:
        assert api.post(SAVEPOINTS).status == 202
        order = api.shim.ordered(TakeSavepoint)
        assert (order.target, order.within) == ("savepoints", "savepoints")
