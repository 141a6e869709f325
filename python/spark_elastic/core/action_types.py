"""All kinds of actions: those that can be written down and read back."""

from __future__ import annotations

from spark_elastic.core import actions as ac
from spark_elastic.core.policies.ask import AskPolicy

ACTION_TYPES: tuple[type[ac.Action], ...] = (
    ac.Configure,
    ac.TurnOff,
    ac.StartQuery,
    ac.HoldQuery,
    ac.FailQuery,
    ac.CancelQuery,
    ac.TakeSavepoint,
    ac.Rescale,
    ac.BoundSources,
    ac.LimitRows,
    ac.KeepText,
    ac.RequestExecutors,
    ac.KillExecutors,
    ac.DecommissionExecutors,
    ac.SetTimer,
    ac.CancelTimer,
    ac.Report,
    AskPolicy,
)
