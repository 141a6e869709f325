"""The part of the catalogue about batch stages: every reason of theirs, and the one sentence that says it."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.reasons.reason import Reason

STAGE_REASONS: Mapping[str, Reason] = {
    # How many partitions a shuffle writes
    "initial_from_bytes": Reason(
        "stage",
        "Write {after:partition} instead of {before}: {bytes:bytes} expected, read in {tasks:task} of "
        "at most {volume:bytes} on {slots:slot}.",
    ),
    "initial_bounded": Reason(
        "stage",
        "Write {after:partition} instead of {before}: {bytes:bytes} on {slots:slot} need {wanted}, "
        "bounds are {lower} to {upper}.",
    ),
    "initial_unbounded": Reason(
        "stage",
        "Write {after:partition} instead of {before}: {bytes:bytes} is only a guess, and partitions "
        "can be coalesced later but not split.",
    ),
    "initial_kept": Reason(
        "stage",
        "Write {after:partition} instead of {before}: as in the plan's last run on {slots:slot}.",
    ),
    "initial_corrected": Reason(
        "stage",
        "Write {after:partition} instead of {before}: the last run wrote {written:bytes}, far from "
        "the estimate.",
    ),
    "initial_most": Reason(
        "stage",
        "Write {after:partition} instead of {before}: the most tasks that may read them "
        "(spark.elastic.batch.preset is flink).",
    ),
    "initial_fixed": Reason(
        "nothing_to_do",
        "Write {before:partition}: the application sets spark.sql.shuffle.partitions to {chosen} "
        "(spark.elastic.batch.explicitParallelism, else spark.elastic.explicitParallelism).",
    ),
    "initial_unknown": Reason(
        "nothing_to_do",
        "Write {before:partition} as planned by Spark: the size of exchange {exchanges} is not known.",
    ),
    "initial_nothing": Reason("nothing_to_do", "No exchange writes partitions."),
    "initial_off": Reason(
        "nothing_to_do", "Write {before:partition} as planned by Spark: choosing initial counts is off."
    ),
    # Which ranges are read
    "ranges_balanced": Reason(
        "stage",
        "Read {before:partition} in {after:task} on {slots:slot}: {bytes:bytes}, at most "
        "{volume:bytes} per task; the largest has {largest:bytes}, {ratio} × the mean.",
    ),
    "ranges_bounded": Reason(
        "stage",
        "Read {before:partition} in {after:task} on {slots:slot}: {bytes:bytes} need more, the upper "
        "bound is {upper}; the largest has {largest:bytes}, {ratio} × the mean.",
    ),
    "ranges_skewed": Reason(
        "stage",
        "Read {before:partition} in {after:task} on {slots:slot}, each partition whole: Spark split none "
        "for a join, with {skewed:partition} far above the others; the largest task has {largest:bytes}, "
        "{ratio} × the mean.",
    ),
    "ranges_as_written": Reason(
        "nothing_to_do",
        "Read each of {before:partition} in its own task: {bytes:bytes} on {slots:slot}, at most "
        "{volume:bytes} per task.",
    ),
    "ranges_left_skew": Reason(
        "nothing_to_do",
        "Left to Spark: it splits skewed ones of {before:partition} for a join, {bytes:bytes}.",
    ),
    "ranges_left_local": Reason(
        "nothing_to_do",
        "Left to Spark: it reads {bytes:bytes} where the map tasks wrote them.",
    ),
    "ranges_kept": Reason(
        "nothing_to_do",
        "Left to Spark, as before: sizes of {before:partition} are about the same.",
    ),
    "ranges_nothing": Reason("nothing_to_do", "No partitions to divide between tasks."),
    "ranges_off": Reason("nothing_to_do", "Left to Spark: choosing ranges is off."),
    # Scans of files
    "split_from_bytes": Reason(
        "stage",
        "Scan {bytes:bytes} in {after:task} of about {split:bytes} on {slots:slot}, "
        "{openings:opening} of files counted as {opening:bytes} each.",
    ),
    "split_bounded": Reason(
        "stage",
        "Scan {bytes:bytes} in {after:task} of about {split:bytes}, {wanted} exceed the bound of "
        "sources; {openings:opening} of files counted as {opening:bytes} each.",
    ),
    "split_nothing": Reason("nothing_to_do", "Split by Spark: nothing to scan."),
    "split_no_slots": Reason("nothing_to_do", "Split by Spark: no slots yet for {bytes:bytes}."),
    "split_off": Reason("nothing_to_do", "Split by Spark: choosing split sizes is off."),
    "offsets_divided": Reason(
        "stage",
        "Read Kafka in at least {after:task} on {slots:slot}: if it has fewer partitions, the largest "
        "are divided.",
    ),
    "offsets_default": Reason(
        "stage",
        "Read Kafka in at least {after:task} "
        "(spark.elastic.batch.autoParallelism.defaultSourceParallelism): if it has fewer partitions, "
        "the largest are divided.",
    ),
    "offsets_by_partition": Reason(
        "nothing_to_do", "Read Kafka in one task per partition: the preset divides none."
    ),
    "offsets_in_order": Reason(
        "nothing_to_do",
        "Read Kafka in one task per partition, in the order of its records. If order does not matter, "
        "set spark.elastic.source.divideOrdered=true.",
    ),
    "offsets_late": Reason(
        "nothing_to_do",
        "Read Kafka in one task per partition: only the tasks look up the latest offset. Name the "
        "ending offsets, or set spark.elastic.batch.sources.kafkaLatest=true.",
    ),
    "offsets_no_slots": Reason("nothing_to_do", "Read Kafka in one task per partition: no slots yet."),
    # Sources that make their own partitions
    "source_joined": Reason(
        "stage",
        "Read {before:partition} of {source} in {after:task}: the bound of sources allows no more.",
    ),
    "source_relied_on": Reason(
        "nothing_to_do",
        "Read {before:partition} of {source} in one task each, above the bound of {most}: the plan "
        "relies on how they are sorted or partitioned.",
    ),
    "source_whole": Reason(
        "nothing_to_do",
        "Read {source} in one task: it has one partition. Its own options make more (JDBC: "
        "numPartitions with partitionColumn, lowerBound and upperBound).",
    ),
    "source_as_made": Reason(
        "nothing_to_do",
        "Read {before:partition} of {source} in one task each: the source makes them by its own rules.",
    ),
}
