"""Read settings from a Spark configuration, using the registry in `core/keys/`, and write them.

A key is written in Spark's style (``spark.elastic.schedulerMode``) or in Flink's
(``spark.elastic.scheduler-mode``); some keys have an older name as well. ``python -m spark_elastic.settings``
prints the table shown in docs/settings.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from spark_elastic import policy_options, query_settings
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.bounds.declared import WantedBounds, WantedSharing
from spark_elastic.core.failures.strategy import POLICY_TYPES
from spark_elastic.core.keys import (
    KEYS,
    NAMES,
    OF_QUERY,
    PER_QUERY,
    application,
    batch,
    called,
    policies,
    rescaling,
)
from spark_elastic.core.keys.key import PREFIX, Key, view_of
from spark_elastic.core.settings import CoreSettings, contradictions
from spark_elastic.settings_errors import (
    SettingsError,
    mode_is_off,
    policy_without_bounds,
    refused_value,
    said_twice,
    unknown_name,
)

__all__ = ["PREFIX", "Key", "Settings", "SettingsError", "keys", "load", "markdown_table", "spellings"]

Value = TypeVar("Value")


def _complete(values: Mapping[Key[Any], Any]) -> Mapping[Key[Any], Any]:
    return {key: values.get(key, key.default) for key in KEYS}


@frozen(kw_only=True)
class Settings:
    """The user's settings, read and checked: `settings[KEY]` is the value of a key.

    A key missing from `values` has its default in reactive mode. `chosen` has the keys that were set although
    their default depends on the mode; a query in another mode has these values too. `queries` has settings by
    the name of a query, or a pattern of names, as text by setting name. `policy_options` are the options of
    custom policies.
    """

    values: Mapping[Key[Any], Any] = field(factory=dict, converter=_complete)
    bounds: Mapping[str, WantedBounds] = field(factory=dict)
    source_bounds: Mapping[str, Mapping[str, WantedBounds]] = field(factory=dict)
    sharing: Mapping[str, WantedSharing] = field(factory=dict)
    chosen: frozenset[Key[Any]] = frozenset()
    queries: Mapping[str, Mapping[str, str]] = field(factory=dict)
    policy_options: policy_options.Options = field(factory=dict)

    def __getitem__(self, key: Key[Value]) -> Value:
        value: Value = self.values[key]
        return value

    def core(self) -> CoreSettings:
        """Return the settings that the scheduler uses."""
        return view_of(
            CoreSettings,
            self.values,
            # If no questions about batch stages are asked, there are no answers to wait for.
            decision_wait_ms=self[batch.DECISION_WAIT_MS] if self[batch.ENABLED] else 0,
            executor_wait_ms=CoreSettings.executor_wait(
                self[rescaling.RESOURCE_WAIT_MS], is_set=rescaling.RESOURCE_WAIT_MS in self.chosen
            ),
            bounds=self.bounds,
            source_bounds=self.source_bounds,
            sharing=self.sharing,
            texts={
                name: key.format(self.values[key])
                for name, key in PER_QUERY.items()
                if key in self.chosen or (not key.by_mode and self.values[key] != key.default)
            },
            queries=self.queries,
            restart=view_of(POLICY_TYPES[self[rescaling.STRATEGY]], self.values),
        )

    @property
    def custom_policies(self) -> tuple[str, ...]:
        """The custom policies named in the settings; the policy file may name more."""
        texts = [own[policies.POLICY.name] for own in self.queries.values() if policies.POLICY.name in own]
        chains = [self[policies.POLICY], *map(policies.POLICY.kind.parse, texts)]
        return tuple(dict.fromkeys(name for chain in chains for name in chain if name not in policies.NAMES))

    def batch(self) -> BatchSettings:
        """Return the settings that decide about batch stages."""
        return view_of(BatchSettings, self.values)

    def as_conf(self) -> dict[str, str]:
        """Return the value of every key that has one, as text; `load` reads it back to equal settings.

        Keys left at a default that depends on the mode are omitted.
        """
        there = (
            (key, value)
            for key, value in self.values.items()
            if (value is not None or key.default is not None) and self._is_chosen(key)
        )
        ours = {key.full_name: key.format(value) for key, value in there}
        of_queries = query_settings.QuerySettings(self.bounds, self.source_bounds, self.sharing, self.queries)
        return {**ours, **query_settings.write(of_queries), **policy_options.write(self.policy_options)}

    def _is_chosen(self, key: Key[Any]) -> bool:
        return not key.by_mode or key in self.chosen


def keys() -> tuple[Key[Any], ...]:
    """Return all keys, in the order of the table."""
    return KEYS


def load(conf: Mapping[str, str]) -> Settings:
    """Read the settings from a Spark configuration; names without the prefix are ignored.

    Raises SettingsError with every error found: what was typed, what is allowed, what to type instead.
    """
    errors: list[str] = []
    values: dict[Key[Any], Any] = {}
    typed: dict[Key[Any], str] = {}
    refused: set[Key[Any]] = set()
    of_queries, wrong = query_settings.read(conf)
    errors.extend(wrong)
    for name, text in sorted(conf.items()):
        if not name.startswith(PREFIX) or query_settings.is_one(name) or policy_options.is_one(name):
            continue
        key = _key(name)
        if key is None:
            errors.append(unknown_name(name, NAMES))
            continue
        try:
            value = key.kind.parse(text.strip())
        except (ValueError, KeyError):
            refused.add(key)
            errors.append(refused_value(key, name, text))
            continue
        if key in typed and values[key] != value:
            errors.append(said_twice(key, typed[key], name, conf))
            continue
        values[key] = value
        typed[key] = name
    chosen = frozenset(key for key in values if key.by_mode)
    if values.get(rescaling.MODE) == "adaptive":
        values = {**{key: key.adaptive for key in KEYS}, **values}
    settings = Settings(
        values=values,
        bounds=of_queries.bounds,
        source_bounds=of_queries.source_bounds,
        sharing=of_queries.sharing,
        chosen=chosen,
        queries=of_queries.settings,
    )
    used = {policies.short(name) for name in settings.custom_policies}
    more = settings[application.POLICY_FILE] is not None
    options, wrong = policy_options.read(conf, used, more=more)
    settings = evolve(settings, policy_options=options)
    errors.extend(wrong)
    if settings[rescaling.MODE] == "off":
        errors.extend(mode_is_off(of_queries.settings))
    policy = settings[policies.POLICY]
    if settings[rescaling.MODE] != "adaptive" and policy != policies.POLICY.default:
        errors.append(policy_without_bounds(settings[rescaling.MODE], policy))
    errors.extend(contradictions(settings.values, refused))
    if errors:
        raise SettingsError(tuple(errors))
    return settings


def spellings(conf: Mapping[str, str], key: Key[Any]) -> tuple[str, ...]:
    """Return the names under which `conf` sets `key`, in any spelling."""
    return tuple(name for name in conf if name.startswith(PREFIX) and _key(name) is key)


def _key(name: str) -> Key[Any] | None:
    """Return the key with this full name, in any spelling."""
    return called(name.removeprefix(PREFIX))


def _row(name: str, *cells: str) -> str:
    return " | ".join((f"| `{name}`", *cells)) + " |"


def _key_row(key: Key[Any], before: str = "") -> str:
    older = "".join(f" Older name: `{alias}`." for alias in key.aliases)
    default = key.format(key.default)
    if key.adaptive != key.default:
        default += f" (adaptive: {key.format(key.adaptive)})"
    own = {None: "", "always": "yes", "start": "at its start"}[key.per_query]
    return _row(before + key.name, key.kind.name, default, own, key.doc + older)


def markdown_table() -> str:
    """Return the table of settings as Markdown."""
    lines = [
        "| Setting (`spark.elastic.…`) | Value | Default | Per query | What it does |",
        "|---|---|---|---|---|",
    ]
    lines += map(_key_row, KEYS)
    lines += [
        _row(policy_options.EXAMPLE, "text", "none", "", policy_options.DOC),
        *(_key_row(key, "query.NAME.") for key in OF_QUERY.values()),
        _row(query_settings.KEYS_EXAMPLE, "as there", "as there", "yes", query_settings.KEYS_DOC),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown_table(), end="")
