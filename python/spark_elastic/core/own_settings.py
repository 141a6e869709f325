"""The settings of one query: the application's, overridden by those given under its name.

The policy file, including its defaults, takes precedence over the application's settings. Among names and
patterns that match a query the most specific one counts, for each setting (`name_patterns.py`). A setting in
neither has the application's value. Where the application has left it at the default of its mode, the query
gets the default of its own mode.
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
    """Return the settings of the query of this name, None if they equal the application's, and the problems.

    A source with a problem is left out as a whole: everything that the file says about the query, or the
    application's settings for it. `running` are the settings of a running query: those that apply only at a
    start stay as they are there.
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
    """Return the settings that differ from the application's, as text by the name of the setting."""
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
    """Publish the problems with a query's settings, and those that differ from the application's."""
    if problems:
        turn.report("own_settings_refused", query=query, errors="; ".join(problems))
    if own is not None:
        texts = own_texts(own, application)
        shown = ", ".join(f"{PREFIX}{name} is {text}" for name, text in texts.items())
        turn.report("own_settings", query=query, settings=shown)


def may_restart(application: CoreSettings, file: PolicyFileChanged | None) -> bool:
    """Return whether any query could be restarted after a failure, by the settings given by name."""
    said = [*application.queries.values()]
    if file is not None:
        said += (file.default_settings, *file.settings.values())
    strategies = {texts.get(rescaling.STRATEGY.name, "none") for texts in said}
    # Adaptive mode has a restart strategy unless the application has chosen another one.
    usual = rescaling.STRATEGY.name not in application.texts
    adaptive = usual and any(texts.get(rescaling.MODE.name) == "adaptive" for texts in said)
    return adaptive or bool(strategies - {"none"}) or not isinstance(application.restart, NoRestart)


def _at_start(running: CoreSettings) -> dict[str, str]:
    """Return the start-only settings that a query keeps which started with these settings."""
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
