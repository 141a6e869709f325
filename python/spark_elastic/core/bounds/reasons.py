"""What is said of bounds: who has declared which, what becomes of them, and how slots are shared."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.sentences import Reason

BOUNDS_REASONS: Mapping[str, Reason] = {
    "bounds_requested": Reason("info", "New bounds, asked for by {by}: {bounds}."),
    "bounds_dropped": Reason(
        "info", "The bounds that were asked for no longer count, says {by}: what is configured does."
    ),
    "bounds_recalled": Reason(
        "info", "Has the bounds that were asked for before and kept beside its checkpoint: {bounds}."
    ),
    "kept_bounds_outdated": Reason(
        "info",
        "The bounds that are kept beside its checkpoint, {bounds}, no longer count: the policy file says "
        "something else about it than at that time.",
    ),
    "kept_bounds_unusable": Reason(
        "failed", "The bounds that are kept beside its checkpoint cannot be read, and do not count: {error}"
    ),
    "bounds_not_kept": Reason(
        "failed",
        "The bounds that were asked for could not be kept beside its checkpoint, so another driver does not "
        "begin with them: {error}",
    ),
    "slots_shared": Reason(
        "info",
        "Can use {slots} of {total_slots:slot}: the lower bounds of all queries take {reserved}, and the "
        "rest is divided by weight, {weight} of {weights} being its own.",
    ),
    "source_bounds": Reason("info", "From the next micro-batch on: {bounds}."),
    "sources_not_bounded": Reason("failed", "Its sources are read as before: {error}", once=True),
    "source_not_divisible": Reason(
        "info",
        "Cannot read {source} ({what}) in {least:task} at least: what Spark makes of it cannot be divided.",
    ),
    "policy_file_read": Reason("info", "The policy file {path} counts from now on."),
    "policy_file_refused": Reason(
        "failed", "The policy file {path} is left out, what counted before still does: {errors}"
    ),
    "own_settings": Reason("info", "Has settings of its own: {settings}."),
    "no_own_settings": Reason("info", "Has the settings of the application from now on."),
    "own_settings_refused": Reason(
        "failed", "The settings that are said for this query cannot be used, and are left out: {errors}"
    ),
    "bounds_refused": Reason(
        "failed", "The bounds that are declared for this query cannot be used: {errors}"
    ),
    "sources_follow": Reason(
        "rescale_in_place",
        "Has no shuffle, so its sources are read in up to {after:task} from the next micro-batch on, one for "
        "each of {slots:slot}, as far as there is enough to read.",
    ),
    "sources_fit": Reason(
        "nothing_to_do",
        "Has no shuffle, and its sources are read in up to {after:task}: they suit {slots:slot}.",
    ),
    "sources_stay": Reason(
        "nothing_to_do",
        "Has no shuffle, and what reads its sources cannot be divided ({stuck}), so slots beyond that stay "
        "empty: {help}.",
        once=True,
    ),
    "sources_bring_executors": Reason(
        "nothing_to_do",
        "Has no shuffle, and its sources are read in as many tasks as in plain Spark: with "
        "spark.dynamicAllocation.enabled Spark requests executors only for tasks that wait.",
    ),
    "other_sources_stay": Reason(
        "nothing_to_do",
        "What reads the others of its sources cannot be divided ({stuck}), so these are read as before: "
        "{help}.",
        once=True,
    ),
    "files_stay_whole": Reason(
        "nothing_to_do",
        "Files of {stuck} cannot be split, as is so with gzip, and each is read in one task: other slots "
        "read nothing. More and smaller files would help, or a format that can be split.",
        once=True,
    ),
}
