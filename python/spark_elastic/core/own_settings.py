"""Which settings count for one query: the application's, with what is said under its name over them.

What the policy file says counts more than what the application's settings say, its defaults among it. Of
names and patterns that stand for a query the one that says most counts, for each setting
(`name_patterns.py`). What neither says is as in the application; where that has left a setting at the
default of its mode, it is the default of the query's mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from attrs import evolve

from spark_elastic.core.events import PolicyFileChanged
from spark_elastic.core.failures.strategy import POLICY_TYPES, NoRestart, RestartPolicy
from spark_elastic.core.keys import PER_QUERY, rescaling
from spark_elastic.core.keys.key import PREFIX, Key, fields_of, key_of, view_of
from spark_elastic.core.name_patterns import merged
from spark_elastic.core.settings import CoreSettings, contradictions
from spark_elastic.core.turn import Turn


def settings_of(
    name: str | None,
    application: CoreSettings,
    file: PolicyFileChanged | None,
    running: CoreSettings | None = None,
) -> tuple[CoreSettings | None, tuple[str, ...]]:
    """Return the settings of the query of this name, None if they are the application's; and what is wrong.

    What is wrong is left out as a whole: all that the file says of the query, or the application's settings.
    `running` are those of a query that runs: what counts at a start only stays as it is there.
    """
    kept = {} if running is None else _at_start(running)
    said = merged(name, application.queries)
    own, problems = _resolve(name, application, {**said, **kept})
    if problems:
        said = {}
        own, _ = _resolve(name, application, kept)
    if file is not None:
        more = {**said, **file.default_settings, **merged(name, file.settings)}
        found, wrong = _resolve(name, application, {**more, **kept})
        if wrong:
            problems += wrong
        else:
            own = found
    return own, problems


def own_texts(settings: CoreSettings, application: CoreSettings) -> dict[str, str]:
    """Return what differs from the application's settings, as text by the name of the setting."""
    found = {
        key.name: key.format(value)
        for field in attrs.fields(CoreSettings)
        if (key := key_of(field)) is not None
        and (value := getattr(settings, field.name)) != getattr(application, field.name)
    }
    if settings.restart != application.restart:
        found |= _restart_texts(settings.restart, application.restart)
    return found


def report_settings(
    query: str, own: CoreSettings | None, application: CoreSettings, problems: Sequence[str], turn: Turn
) -> None:
    """Publish what was wrong with the settings of a query, and those that it has beside the application's."""
    if problems:
        turn.report("own_settings_refused", query=query, errors="; ".join(problems))
    if own is not None:
        texts = own_texts(own, application)
        shown = ", ".join(f"{PREFIX}{name} is {text}" for name, text in texts.items())
        turn.report("own_settings", query=query, settings=shown)


def may_restart(application: CoreSettings, file: PolicyFileChanged | None) -> bool:
    """Say whether any query could be started again after a failure, by what is said of queries by name."""
    said = [*application.queries.values()]
    if file is not None:
        said += (file.default_settings, *file.settings.values())
    strategies = {texts.get(rescaling.STRATEGY.name, "none") for texts in said}
    # Adaptive mode has a restart strategy unless the application has chosen another one.
    usual = rescaling.STRATEGY.name not in application.texts
    adaptive = usual and any(texts.get(rescaling.MODE.name) == "adaptive" for texts in said)
    return adaptive or bool(strategies - {"none"}) or not isinstance(application.restart, NoRestart)


def _at_start(running: CoreSettings) -> dict[str, str]:
    """Return what a query continues with that began with these settings."""
    keys = {key: name for name, key in _fields().items() if key.per_query == "start"}
    return {key.name: key.format(getattr(running, name)) for key, name in keys.items()}


def _fields() -> dict[str, Key[Any]]:
    keys = {field.name: key_of(field) for field in attrs.fields(CoreSettings)}
    return {name: key for name, key in keys.items() if key is not None}


def _resolve(
    name: str | None, application: CoreSettings, said: Mapping[str, str]
) -> tuple[CoreSettings | None, tuple[str, ...]]:
    if not said:
        return None, ()
    texts = {**application.texts, **said}
    mode = texts.get(rescaling.MODE.name, application.mode)
    values: dict[Key[Any], Any] = {}
    for key in PER_QUERY.values():
        usual = key.adaptive if mode == "adaptive" else key.default
        values[key] = key.kind.parse(texts[key.name]) if key.name in texts else usual
    prefix = PREFIX if name is None else f"{PREFIX}query.{name}."
    wrong = contradictions(values, prefix=prefix)
    if wrong:
        return None, tuple(wrong)
    strategy = values[rescaling.STRATEGY]
    unnamed = evolve(application, bounds={}, source_bounds={}, sharing={}, texts={}, queries={})
    own = evolve(
        unnamed,
        **fields_of(CoreSettings, values),
        executor_wait_ms=CoreSettings.executor_wait(
            values[rescaling.RESOURCE_WAIT_MS], is_set=rescaling.RESOURCE_WAIT_MS.name in texts
        ),
        restart=NoRestart() if mode == "off" else view_of(POLICY_TYPES[strategy], values),
    )
    return (None if own == unnamed else own), ()


def _restart_texts(own: RestartPolicy, application: RestartPolicy) -> dict[str, str]:
    found: dict[str, str] = {}
    if type(own) is not type(application):
        found[rescaling.STRATEGY.name] = next(name for name, of in POLICY_TYPES.items() if of is type(own))
    for field in attrs.fields(type(own)):
        key, value = key_of(field), getattr(own, field.name)
        if key is not None and value != getattr(application, field.name, None):
            found[key.name] = key.format(value)
    return found
