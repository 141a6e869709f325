"""The JSON contract with the shim: convert events, actions, questions and answers to plain objects and back.

Every object names its class in ``type``. Reading ignores unknown fields and gives absent ones their default.
A missing field without a default, a value of the wrong type or an unknown class raises `WireError`. The
numbers in a question are a list, or packed: big-endian 64-bit integers, as one base64 text. Credentials are
removed from all texts that are read (`redaction.py`), because the policy process needs none.
"""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, TypeVar

from cattrs import BaseValidationError, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.preconf.json import make_converter
from cattrs.v import format_exception

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action
from spark_elastic.core.batch.questions import ANSWER_TYPES, QUESTION_TYPES, Answer, Question
from spark_elastic.core.events import BatchStages, Event, ExecutorsUsed, StageCompleted
from spark_elastic.core.policies.policy import AskPolicy, PolicyAnswered
from spark_elastic.redaction import redacted

# ---- All event types that can be written and read back.


EVENT_TYPES: tuple[type[ev.Event], ...] = (
    ev.Snapshot,
    ev.ExecutorAdded,
    ev.ExecutorRemoved,
    ev.ExecutorExcluded,
    ev.ExecutorUnexcluded,
    ev.ExecutorDecommissioning,
    ev.ExecutorUsage,
    ev.QuerySubmitted,
    ev.QueryStarted,
    ev.BatchPlanned,
    ev.QueryProgress,
    ev.QueryIdle,
    ev.QueryFailed,
    ev.QueryTerminated,
    StageCompleted,
    ExecutorsUsed,
    BatchStages,
    ev.ActionDone,
    ev.ActionFailed,
    ev.SavepointTaken,
    ev.SavepointRequested,
    ev.CancelRequested,
    ev.RequirementsRequested,
    ev.RequirementsDropped,
    ev.PolicyFileChanged,
    ev.PolicyFileRefused,
    ev.TimerFired,
    PolicyAnswered,
)


# ---- All action types that can be written and read back.


ACTION_TYPES: tuple[type[ac.Action], ...] = (
    ac.Configure,
    ac.TurnOff,
    ac.StartQuery,
    ac.HoldQuery,
    ac.FailQuery,
    ac.CancelQuery,
    ac.TakeSavepoint,
    ac.Rescale,
    ac.PrepareMove,
    ac.BoundSources,
    ac.LimitRows,
    ac.KeepText,
    ac.DropOriginal,
    ac.RequestExecutors,
    ac.KillExecutors,
    ac.DecommissionExecutors,
    ac.SetTimer,
    ac.CancelTimer,
    ac.Report,
    AskPolicy,
)


T = TypeVar("T")

_EVENTS: Mapping[str, type[Event]] = {cls.__name__: cls for cls in EVENT_TYPES}
_ACTIONS: Mapping[str, type[Action]] = {cls.__name__: cls for cls in ACTION_TYPES}
_QUESTIONS: Mapping[str, type[Question]] = {cls.__name__: cls for cls in QUESTION_TYPES}
_ANSWERS: Mapping[str, type[Answer]] = {cls.__name__: cls for cls in ANSWER_TYPES}


class WireError(ValueError):
    """An object violates the contract."""


def _exactly(*kinds: type) -> Any:
    """Return a hook that accepts only values of `kinds`: JSON has types, so values are never converted."""

    def structure(value: Any, _: Any) -> Any:
        if type(value) not in kinds:
            raise ValueError(f"expected {kinds[0].__name__}, got {value!r}")
        return value

    return structure


def _text(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"expected str, got {value!r}")
    return redacted(value)


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"expected a number, got {value!r}")
    return float(value)


def _integers(value: Any, _: Any) -> tuple[int, ...]:
    if isinstance(value, list) and all(type(number) is int for number in value):
        return tuple(value)
    try:
        numbers = array("q", b64decode(value, validate=True))
    except (TypeError, ValueError):
        raise ValueError("expected a list of int, or a base64 text of packed ones") from None
    if sys.byteorder == "little":
        numbers.byteswap()
    return tuple(numbers)


_converter = make_converter()
_converter.register_structure_hook(str, _text)
_converter.register_structure_hook(int, _exactly(int))
_converter.register_structure_hook(bool, _exactly(bool))
_converter.register_structure_hook(float, _number)
_converter.register_structure_hook_func(lambda kind: kind == tuple[int, ...], _integers)
# The numbers that a decision compared keep their type, so that 8 does not become 8.0.
_converter.register_structure_hook(float | int | str, _exactly(float, int, str))
# The view shown to a policy follows from earlier events, and would be most of the journal.
_converter.register_structure_hook(
    AskPolicy, make_dict_structure_fn(AskPolicy, _converter, view=override(omit=True))
)
_converter.register_unstructure_hook(
    AskPolicy, make_dict_unstructure_fn(AskPolicy, _converter, view=override(omit=True))
)


def _describe(error: BaseException, kind: type | None) -> str:
    # A plain ValueError comes from the hooks above, and is more specific than the generic message.
    return str(error) if type(error) is ValueError else format_exception(error, kind)


def _decode(value: Mapping[str, Any], types: Mapping[str, type[T]], what: str) -> T:
    name = value.get("type")
    cls = types.get(name) if isinstance(name, str) else None
    if cls is None:
        raise WireError(f"unknown {what} type {name!r}")
    try:
        return _converter.structure(value, cls)
    except BaseValidationError as error:
        reasons = "; ".join(transform_error(error, format_exception=_describe))
        raise WireError(f"{what} {name}: {reasons}") from error


def _encode(value: Event | Action | Question | Answer, types: Mapping[str, type[Any]]) -> dict[str, Any]:
    name = type(value).__name__
    if types.get(name) is not type(value):
        raise WireError(f"{name} has no place in the contract")
    return {"type": name, **_converter.unstructure(value)}


def decode_event(value: Mapping[str, Any]) -> Event:
    """Decode an event. Raises `WireError`."""
    return _decode(value, _EVENTS, "event")


def encode_event(event: Event) -> dict[str, Any]:
    """Encode an event as a JSON-ready object. Raises `WireError` for a class outside the contract."""
    return _encode(event, _EVENTS)


def decode_action(value: Mapping[str, Any]) -> Action:
    """Decode an action. Raises `WireError`."""
    return _decode(value, _ACTIONS, "action")


def encode_action(action: Action) -> dict[str, Any]:
    """Encode an action as a JSON-ready object. Raises `WireError` for a class outside the contract."""
    return _encode(action, _ACTIONS)


def decode_question(value: Mapping[str, Any]) -> Question:
    """Decode a question about a batch stage. Raises `WireError`."""
    return _decode(value, _QUESTIONS, "question")


def encode_question(question: Question) -> dict[str, Any]:
    """Encode a question as a JSON-ready object. Raises `WireError` for a class outside the contract."""
    return _encode(question, _QUESTIONS)


def encode_answer(answer: Answer) -> dict[str, Any]:
    """Encode an answer as a JSON-ready object. Raises `WireError` for a class outside the contract."""
    return _encode(answer, _ANSWERS)
