"""Nexmark's events, each computed from its number alone: people, auctions, and bids of an auction house.

Of each 50 events in a row, the first is a person, the next 3 are auctions and the other 46 are bids. Event n
happens n ms after the first one, so that event time has 1,000 events per second at any load. Values are drawn
by hashing the number: the same numbers give the same rows, in any order and in any program. The expressions
are in the SQL that Spark and Flink share.

Sizes and chances are those of Nexmark's public definition: every second bid is for a hot auction, three of
four bids and of four auctions are those of a hot bidder and a hot seller. What is hot changes with each 100
auctions or people. Bids and auctions may name people and auctions that come a little later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame

PEOPLE, AUCTIONS, BIDS = 1, 3, 46
ROUND = PEOPLE + AUCTIONS + BIDS
EVENTS_PER_S = 1_000
"""Events per second of event time."""
WATERMARK_S = 4
"""How late an event may be, by the definition; none is."""
FIRST_ID = 1_000
"""The id of the first person and of the first auction."""

# 2015-07-15 00:00:00 UTC, in epoch ms.
_BEGIN = 1_436_918_400_000
_FIRST_CATEGORY, _CATEGORIES = 10, 5
_HOT_AUCTION_IN, _HOT_SELLER_IN, _HOT_BIDDER_IN = 2, 4, 4
# One of this many people, and of this many auctions, is hot.
_HOT_OF = 100
_ACTIVE_PEOPLE, _AUCTIONS_IN_FLIGHT = 1_000, 100
_LEAD = 10
_CHANNELS = 10_000
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
    *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
)
_FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jean", "Kim")
_LAST_NAMES = ("Adler", "Brook", "Cole", "Drake", "Ellis", "Frost", "Grant", "Hale", "Innes")
# The time until as many more auctions have begun as are in flight, in ms.
_HORIZON_MS = _AUCTIONS_IN_FLIGHT * ROUND // AUCTIONS * 1_000 // EVENTS_PER_S


def register(numbers: DataFrame, *, wait_us: int = 0) -> None:
    """Register the events with these numbers (column n, bigint) as the views `person`, `auction` and `bid`.

    The numbers may be a stream. Reading an event takes `wait_us` µs longer on average (0 to 1,000), without
    using a processor.
    """
    spark = numbers.sparkSession
    read = numbers.where(_waited(wait_us)) if wait_us else numbers
    for name, (kind, columns) in _KINDS.items():
        rows = read.where(kind).selectExpr(*(f"{value} AS {column}" for column, value in columns.items()))
        rows.withWatermark("dateTime", f"{WATERMARK_S} seconds").createOrReplaceTempView(name)
    side = spark.range(_CHANNELS).selectExpr("id AS key", "concat('value ', id) AS value")
    side.createOrReplaceTempView("side_input")


def views_in_flink() -> Iterator[str]:
    """Yield the statements that create the views of the events in Flink, from its table `numbers`.

    That has the columns n and dateTime; the latter carries the watermark.
    """
    for name, (kind, columns) in _KINDS.items():
        values = (f"{value} AS {column}" for column, value in {**columns, "dateTime": "dateTime"}.items())
        yield f"CREATE TEMPORARY VIEW {name} AS SELECT {', '.join(values)} FROM numbers WHERE {kind}"


def time_of(number: int) -> int:
    """Return the event time (epoch ms) of an event."""
    return _BEGIN + number * 1_000 // EVENTS_PER_S


def _waited(wait_us: int) -> str:
    """Return a condition that is always true, and waits for 1 ms with some of the events.

    Its value is not known before it runs, so Spark neither leaves it out nor moves other filters below it.
    """
    wait = f"n * {wait_us} % 1000 < {wait_us}"
    return f"coalesce(IF({wait}, reflect('java.lang.Thread', 'sleep', 1L), ''), '') != 'left out'"


# ---- Values, as SQL expressions of the event's number n. Each draw has a number of its own.


def _draw(place: int, below: int | str) -> str:
    """Return a whole number from 0 up, with equal chances."""
    return f"pmod(xxhash64(n, {place}), {below})"


def _one_of(place: int, values: tuple[str, ...]) -> str:
    return f"elt(CAST({_draw(place, len(values))} + 1 AS INT), {', '.join(map(repr, values))})"


def _four_digits(place: int) -> str:
    return f"lpad(CAST({_draw(place, 10_000)} AS STRING), 4, '0')"


def _text(place: int, length: int | str) -> str:
    """Return hexadecimal digits; the length is at most 512."""
    return f"left(repeat(sha2(concat(CAST(n AS STRING), '/{place}'), 512), 4), CAST({length} AS INT))"


def _padding(place: int, size: int) -> str:
    """Return a text that brings a row to its size (bytes), within a fifth of its own length."""
    return _text(place, f"{size * 4 // 5} + {_draw(place, size * 2 // 5 + 1)}")


def _price(place: int) -> str:
    """Return a price in cents whose logarithm has equal chances: 1 to a million dollars."""
    share = f"{_draw(place, 2**53)} / {2**53}e0"
    return f"CAST(round(power(1e1, 6 * ({share})) * 100) AS BIGINT)"


# The numbers of the last person and auction so far, from 0 up; -1 if there is no auction yet.
_LAST_PERSON = f"floor(n / {ROUND})"
_LAST_AUCTION = f"(floor(n / {ROUND}) * {AUCTIONS} + least(n % {ROUND}, {AUCTIONS}) - 1)"


def _active_person(place: int) -> str:
    active = f"least({_LAST_PERSON} + 1, {_ACTIVE_PEOPLE})"
    return f"({_LAST_PERSON} + 1 - {active} + {_draw(place, f'{active} + {_LEAD}')})"


def _auction_in_flight(place: int) -> str:
    first = f"greatest({_LAST_AUCTION} - {_AUCTIONS_IN_FLIGHT}, 0)"
    return f"({first} + {_draw(place, f'{_LAST_AUCTION} - {first} + 1 + {_LEAD}')})"


def _hot_or(place: int, one_in: int, hot: str, other: str) -> str:
    """Return an id: the hot one except in one of `one_in` cases."""
    return f"({FIRST_ID} + IF({_draw(place, one_in)} > 0, {hot}, {other}))"


def _hot(last: str) -> str:
    return f"(floor({last} / {_HOT_OF}) * {_HOT_OF})"


_MS = f"{_BEGIN} + floor(n * 1000 / {EVENTS_PER_S})"
_TIME = f"timestamp_millis({_MS})"
_EXPIRES = f"timestamp_millis({_MS} + 1 + {_draw(24, 2 * _HORIZON_MS)})"
_HOT_CHANNEL = f"{_draw(33, 2)} > 0"
_CHANNEL_NUMBER = f"CAST({_draw(35, _CHANNELS)} AS STRING)"
_CHANNEL = f"IF({_HOT_CHANNEL}, {_one_of(34, _HOT_CHANNELS)}, concat('channel-', {_CHANNEL_NUMBER}))"
_URL = (
    f"concat('https://www.nexmark.com/', regexp_replace(left(md5({_CHANNEL}), 15), '(.{{5}})', '$1/'), "
    f"'item.htm?query=1', IF({_HOT_CHANNEL} OR {_draw(36, 10)} = 0, '', "
    f"concat('&channel_id=', {_CHANNEL_NUMBER})))"
)

_KINDS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "person": (
        f"n % {ROUND} < {PEOPLE}",
        {
            "id": f"{FIRST_ID} + {_LAST_PERSON}",
            "name": f"concat({_one_of(10, _FIRST_NAMES)}, ' ', {_one_of(11, _LAST_NAMES)})",
            "emailAddress": f"concat({_text(12, 7)}, '@', {_text(13, 5)}, '.com')",
            "creditCard": f"concat_ws(' ', {', '.join(map(_four_digits, (14, 15, 16, 17)))})",
            "city": _one_of(18, _CITIES),
            "state": _one_of(19, _STATES),
            "dateTime": _TIME,
            "extra": _padding(20, 120),
        },
    ),
    "auction": (
        f"n % {ROUND} BETWEEN {PEOPLE} AND {PEOPLE + AUCTIONS - 1}",
        {
            "id": f"{FIRST_ID} + {_LAST_AUCTION}",
            "itemName": _text(21, 20),
            "description": _text(22, 100),
            "initialBid": _price(23),
            "reserve": f"{_price(23)} + {_price(25)}",
            "dateTime": _TIME,
            "expires": _EXPIRES,
            "seller": _hot_or(26, _HOT_SELLER_IN, _hot(_LAST_PERSON), _active_person(27)),
            "category": f"{_FIRST_CATEGORY} + {_draw(28, _CATEGORIES)}",
            "extra": _padding(29, 330),
        },
    ),
    "bid": (
        f"n % {ROUND} >= {PEOPLE + AUCTIONS}",
        {
            "auction": _hot_or(30, _HOT_AUCTION_IN, _hot(_LAST_AUCTION), _auction_in_flight(31)),
            # The second of 100 people, so that no hot seller is a hot bidder.
            "bidder": _hot_or(32, _HOT_BIDDER_IN, f"{_hot(_LAST_PERSON)} + 1", _active_person(37)),
            "price": _price(38),
            "channel": _CHANNEL,
            "url": _URL,
            "dateTime": _TIME,
            "extra": _padding(39, 68),
        },
    ),
}
