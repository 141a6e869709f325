"""Nexmark's queries in Spark SQL, for streams and for batches alike.

q5, q7 and q18 say in other words what their definitions do with ranks and with joins of a stream with its own
aggregate; the rows are the same. These are left out:

- q4 and q6 (the average price of a category, and of a seller's last ten auctions) correct averages while bids
  come in. Behind an aggregation, Spark runs another one only if no later row changes its input.
- q9 and q19 (the winning bid and the ten highest bids of each auction) rank rows; Spark ranks no streams.
- q15 and q16 (statistics of bids and of channels) count distinct values, which Spark does for batches only.
- q10 differs from q0 in its sink alone, and q12 has windows of processing time, which no batch repeats.
- q23 joins twice as q20 does once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen


@frozen(kw_only=True)
class Query:
    """A query of the views `person`, `auction`, `bid` and `side_input`.

    In mode `update` the last row of each of its `keys` is its result. A row of mode `append` is final once
    the watermark has reached the time in the column `closed`; None: at once. `reads` counts how often it
    reads the events.
    """

    text: str
    mode: Literal["append", "update"] = "append"
    keys: tuple[str, ...] = ()
    closed: str | None = None
    reads: int = 1


_COUNTS = """
    SELECT window(dateTime, '10 seconds', '2 seconds') AS span, auction, count(*) AS num
    FROM bid GROUP BY window(dateTime, '10 seconds', '2 seconds'), auction
"""
_BY_PRICE = """
    SELECT window(dateTime, '10 seconds') AS span, price,
      collect_list(struct(auction, bidder, dateTime, extra)) AS bids
    FROM bid GROUP BY window(dateTime, '10 seconds'), price
"""

QUERIES: Mapping[str, Query] = {
    # Pass through.
    "q0": Query(text="SELECT auction, bidder, price, dateTime, extra FROM bid"),
    # Currency conversion.
    "q1": Query(text="SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid"),
    # Selection.
    "q2": Query(text="SELECT auction, price FROM bid WHERE auction % 123 = 0"),
    # Local item suggestion: who sells in these states?
    "q3": Query(
        text="""
            SELECT p.name, p.city, p.state, a.id
            FROM auction a JOIN person p ON a.seller = p.id
            WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
        """,
        reads=2,
    ),
    # Hot items: the auctions with the most bids.
    "q5": Query(
        text=f"""
            SELECT starttime, endtime, hot.auction, hot.num FROM (
              SELECT span.start AS starttime, span.end AS endtime,
                explode(filter(counts, one -> one.num = most)) AS hot
              FROM (
                SELECT span, max(num) AS most, collect_list(struct(auction, num)) AS counts
                FROM ({_COUNTS}) GROUP BY span))
        """,
        closed="endtime",
    ),
    # Highest bid.
    "q7": Query(
        text=f"""
            SELECT endtime, highest.auction, highest.bidder, price, highest.dateTime, highest.extra FROM (
              SELECT span.end AS endtime, best.price, explode(best.bids) AS highest
              FROM (
                SELECT span, max_by(struct(price, bids), price) AS best FROM ({_BY_PRICE}) GROUP BY span))
        """,
        closed="endtime",
    ),
    # Monitor new users: who has come and sold in the same time?
    "q8": Query(
        text="""
            SELECT p.id, p.name, p.span.start AS starttime, p.span.end AS endtime
            FROM (
              SELECT id, name, window(dateTime, '10 seconds') AS span
              FROM person GROUP BY id, name, window(dateTime, '10 seconds')) p
            JOIN (
              SELECT seller, window(dateTime, '10 seconds') AS span
              FROM auction GROUP BY seller, window(dateTime, '10 seconds')) a
            ON p.id = a.seller AND p.span = a.span
        """,
        closed="endtime",
        reads=2,
    ),
    # User sessions.
    "q11": Query(
        text="""
            SELECT bidder, bids, span.start AS starttime, span.end AS endtime FROM (
              SELECT bidder, count(*) AS bids, session_window(dateTime, '10 seconds') AS span
              FROM bid GROUP BY bidder, session_window(dateTime, '10 seconds'))
        """,
        closed="endtime",
    ),
    # Join with a bounded side input.
    "q13": Query(
        text="""
            SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
            FROM bid b JOIN side_input s ON b.auction % 10000 = s.key
        """
    ),
    # Calculation.
    "q14": Query(
        text="""
            SELECT auction, bidder, 0.908 * price AS price,
              CASE
                WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
                ELSE 'otherTime'
              END AS bidTimeType,
              dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
            FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
        """
    ),
    # Auction statistics.
    "q17": Query(
        text="""
            SELECT auction, date_format(dateTime, 'yyyy-MM-dd') AS day, count(*) AS total_bids,
              count_if(price < 10000) AS rank1_bids,
              count_if(price >= 10000 AND price < 1000000) AS rank2_bids,
              count_if(price >= 1000000) AS rank3_bids,
              min(price) AS min_price, max(price) AS max_price,
              avg(price) AS avg_price, sum(price) AS sum_price
            FROM bid GROUP BY auction, date_format(dateTime, 'yyyy-MM-dd')
        """,
        mode="update",
        keys=("auction", "day"),
    ),
    # The last bid of each bidder for each auction.
    "q18": Query(
        text="""
            SELECT auction, bidder, last.price, last.channel, last.url, last.dateTime, last.extra FROM (
              SELECT auction, bidder, max(struct(dateTime, price, channel, url, extra)) AS last
              FROM bid GROUP BY auction, bidder)
        """,
        mode="update",
        keys=("auction", "bidder"),
    ),
    # Bids for the auctions of a category.
    "q20": Query(
        text="""
            SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, b.extra, a.itemName,
              a.description, a.initialBid, a.reserve, a.expires, a.seller, a.category
            FROM bid b JOIN auction a ON b.auction = a.id
            WHERE a.category = 10
        """,
        reads=2,
    ),
    # The id of the channel, from its name or the URL.
    "q21": Query(
        text="""
            SELECT * FROM (
              SELECT auction, bidder, price, channel,
                CASE lower(channel)
                  WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                  ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')
                END AS channel_id
              FROM bid)
            WHERE channel_id IS NOT NULL
        """
    ),
    # The folders of the URL.
    "q22": Query(
        text="""
            SELECT auction, bidder, price, channel,
              split(url, '/')[3] AS dir1, split(url, '/')[4] AS dir2, split(url, '/')[5] AS dir3
            FROM bid
        """
    ),
}
"""Every query by its name."""
