"""The part of the catalogue about batch stages: every reason of theirs, and the one sentence that says it."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.reasons.reason import Reason

STAGE_REASONS: Mapping[str, Reason] = {
    # How many partitions a shuffle writes
    "initial_from_bytes": Reason(
        "stage",
        "Writes {after:partition} instead of {before}: {bytes:bytes} are expected, {tasks:task} of at most "
        "{volume:bytes} read them on {slots:slot}.",
    ),
    "initial_bounded": Reason(
        "stage",
        "Writes {after:partition} instead of {before}: {bytes:bytes} on {slots:slot} ask for {wanted}, and "
        "the bounds are {lower} and {upper}.",
    ),
    "initial_unbounded": Reason(
        "stage",
        "Writes {after:partition} instead of {before}: {bytes:bytes} are expected, but nobody can tell, and "
        "partitions can be joined afterwards, not cut.",
    ),
    "initial_kept": Reason(
        "stage",
        "Writes {after:partition} instead of {before}, as many as this plan has had before on {slots:slot}.",
    ),
    "initial_corrected": Reason(
        "stage",
        "Writes {after:partition} instead of {before}: the last time it was {written:bytes}, far from what "
        "the plan says.",
    ),
    "initial_most": Reason(
        "stage",
        "Writes {after:partition} instead of {before}: as many as tasks may ever read them "
        "(spark.elastic.batch.preset is flink).",
    ),
    "initial_fixed": Reason(
        "nothing_to_do",
        "Writes {before:partition}: the application sets spark.sql.shuffle.partitions to {chosen}, which is "
        "not touched (spark.elastic.batch.explicitParallelism, else spark.elastic.explicitParallelism).",
    ),
    "initial_unknown": Reason(
        "nothing_to_do",
        "Writes {before:partition}, as Spark has planned: the size of exchange {exchanges} is not known.",
    ),
    "initial_nothing": Reason("nothing_to_do", "Has no exchange that writes partitions."),
    "initial_off": Reason(
        "nothing_to_do", "Writes {before:partition}, as Spark has planned: the choice of them is off."
    ),
    # Which ranges are read
    "ranges_balanced": Reason(
        "stage",
        "Reads {before:partition} in {after:task} on {slots:slot}: {bytes:bytes}, at most {volume:bytes} per "
        "task; the largest has {largest:bytes}, {ratio} times the mean.",
    ),
    "ranges_bounded": Reason(
        "stage",
        "Reads {before:partition} in {after:task} on {slots:slot}: {bytes:bytes} ask for more, and the upper "
        "bound is {upper}; the largest has {largest:bytes}, {ratio} times the mean.",
    ),
    "ranges_skewed": Reason(
        "stage",
        "Reads {before:partition} in {after:task} on {slots:slot}, each partition whole: Spark has split "
        "none for a join, though {skewed:partition} had far more bytes than the others; the largest task has "
        "{largest:bytes}, {ratio} times the mean.",
    ),
    "ranges_as_written": Reason(
        "nothing_to_do",
        "Reads each of {before:partition} in a task of its own: {bytes:bytes} on {slots:slot}, at most "
        "{volume:bytes} per task.",
    ),
    "ranges_left_skew": Reason(
        "nothing_to_do",
        "Is left to Spark, which splits the skewed ones of {before:partition} for a join: {bytes:bytes}.",
    ),
    "ranges_left_local": Reason(
        "nothing_to_do",
        "Is left to Spark, which reads {bytes:bytes} where the map tasks have written them.",
    ),
    "ranges_kept": Reason(
        "nothing_to_do",
        "Is left to Spark, as before: about the same sizes of {before:partition} were read as Spark had it.",
    ),
    "ranges_nothing": Reason("nothing_to_do", "Has no partitions to share out between tasks."),
    "ranges_off": Reason("nothing_to_do", "Is left to Spark: the choice of ranges is off."),
    # Scans of files
    "split_from_bytes": Reason(
        "stage",
        "Scans {bytes:bytes} in {after:task} on {slots:slot}; {openings:opening} of files count for "
        "{opening:bytes} each, so a task has about {split:bytes}.",
    ),
    "split_bounded": Reason(
        "stage",
        "Scans {bytes:bytes} in {after:task}: {wanted} would be right, and no source may have more; "
        "{openings:opening} of files count for {opening:bytes} each, so a task has about {split:bytes}.",
    ),
    "split_nothing": Reason("nothing_to_do", "Is split by Spark: there is nothing to scan."),
    "split_no_slots": Reason("nothing_to_do", "Is split by Spark: there are no slots yet for {bytes:bytes}."),
    "split_off": Reason("nothing_to_do", "Is split by Spark: the choice of split sizes is off."),
    "offsets_divided": Reason(
        "stage",
        "Reads Kafka in at least {after:task} on {slots:slot}: where it has fewer partitions, the largest "
        "are divided.",
    ),
    "offsets_default": Reason(
        "stage",
        "Reads Kafka in at least {after:task} "
        "(spark.elastic.batch.autoParallelism.defaultSourceParallelism): where it has fewer partitions, the "
        "largest are divided.",
    ),
    "offsets_by_partition": Reason(
        "nothing_to_do", "Reads Kafka in one task per partition: the preset divides none."
    ),
    "offsets_in_order": Reason(
        "nothing_to_do",
        "Reads Kafka in one task per partition, which keeps the order of its records. Where that does not "
        "matter, spark.elastic.source.divideOrdered=true divides partitions among the slots.",
    ),
    "offsets_late": Reason(
        "nothing_to_do",
        "Reads Kafka in one task per partition: only the tasks are to find out which offset is the latest. "
        "Name the ending offsets, or set spark.elastic.batch.sources.kafkaLatest=true.",
    ),
    "offsets_no_slots": Reason(
        "nothing_to_do", "Reads Kafka in one task per partition: there are no slots yet."
    ),
    # Sources that make their own partitions
    "source_joined": Reason(
        "stage",
        "Joins {before:partition} of {source} into {after:task}: no source may have more.",
    ),
    "source_relied_on": Reason(
        "nothing_to_do",
        "Reads {before:partition} of {source} in a task each, though no source may have more than {most}: "
        "the plan relies on how they are sorted or partitioned.",
    ),
    "source_whole": Reason(
        "nothing_to_do",
        "Reads {source} in one task: it has one partition, and only options of its own make more of it "
        "(JDBC: numPartitions with partitionColumn, lowerBound and upperBound).",
    ),
    "source_as_made": Reason(
        "nothing_to_do",
        "Reads {before:partition} of {source} in a task each: it makes them itself, by rules of its own.",
    ),
}
