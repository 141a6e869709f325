"""What is decided about a query: its count, how long it waits for more, what becomes of a failed run."""

from __future__ import annotations

from attrs import define, evolve

from spark_elastic.core.cluster.shares import Share
from spark_elastic.core.events import Failure, QueryFacts
from spark_elastic.core.failures.judge import Judgement, StoreOf, judge
from spark_elastic.core.failures.strategy import RestartStrategy, new_strategy
from spark_elastic.core.failures.summary import summary
from spark_elastic.core.keep_orders import keep_text
from spark_elastic.core.query.hearing import Hearing
from spark_elastic.core.query.record import EXCEPTIONS_KEPT, RunFailure
from spark_elastic.core.rescale.concurrency import Candidate
from spark_elastic.core.rescale.gain import fit
from spark_elastic.core.rescale.parallelism import choose_running
from spark_elastic.core.rescale.situation import (
    HORIZON_MS,
    RESCALE_COST_MS,
    Choice,
    Situation,
    repartition_obstacle,
)
from spark_elastic.core.rescale.starting import choose_start
from spark_elastic.core.rescale.transition_manager import Resources, TransitionManager
from spark_elastic.core.settings import CoreSettings


def strategy_of(facts: QueryFacts, settings: CoreSettings) -> RestartStrategy:
    """Begin the restart strategy of a query.

    Queries that fail together are not to come back together; the same query always draws the same.
    """
    return new_strategy(settings.restart, int.from_bytes(facts.query.encode()[-8:], "big"))


@define
class _Submission:
    """Answers the manager for a query that waits for its start."""

    share: Share
    hands_off: bool

    def sufficient(self) -> bool:
        return self.hands_off or self.share.may_start

    def desired(self) -> bool:
        # Where only tasks bring executors, more come after the start.
        return self.share.content or (not self.share.suffices and self.share.may_start)


@define
class Deciding(Hearing):
    """Puts together what a decision depends on, and has it made."""

    @property
    def may_start(self) -> bool:
        """Whether the query may be started with the slots of now once it has waited as long as it may."""
        # Who only advises, or lets it alone, leaves it to Spark to wait for executors.
        return self.settings.hands_off or self.share.may_start

    def choose_start(self) -> Choice:
        """Choose the count for a start, with the slots of now."""
        now = self._situation(self.record.partitions, overdue=False)
        return choose_start(evolve(now, has_room=self.turn.moves.has_room_for(self.record.facts.query)))

    def choose_running(self, *, overdue: bool) -> Choice:
        """Choose what to do about the count while it runs, with the slots of now."""
        # What was ordered in place will be in force: deciding on the old count would order it again.
        return choose_running(self._situation(self.record.target or self.record.partitions, overdue=overdue))

    def choose_again(self, *, overdue: bool) -> Choice:
        """Choose anew for a rescale that is ordered and not through."""
        return choose_running(self._situation(self.record.partitions, overdue=overdue))

    def candidate(self, choice: Choice, *, since: int) -> Candidate:
        """Put a move that is waited for `since` then (epoch ms) beside those of other queries."""
        assert choice.partitions is not None
        assert choice.gain is not None
        return Candidate(
            since=since,
            partitions=choice.partitions,
            into_bounds=choice.is_into_bounds,
            gain_ms=None if self.record.measurements.latest is None else choice.gain.net_ms,
        )

    def _situation(self, partitions: int | None, *, overdue: bool) -> Situation:
        record = self.record
        since, progress = self.now - HORIZON_MS, record.last_progress
        return Situation(
            facts=record.facts,
            provider=record.provider,
            checkpoint_format=record.checkpoint_format,
            partitions=partitions,
            slots=self.slots,
            reach=min(self.share.reach, record.facts.session_partitions),
            shortage=self.share.shortage,
            requirements=record.requirements,
            model=fit(record.measurements, record.provider),
            seen_slots=record.measurements.slots,
            settings=self.settings,
            rescale_cost_ms=RESCALE_COST_MS if record.rescale_cost_ms is None else record.rescale_cost_ms,
            rescales=sum(at > since for at in record.rescales) if record.rescales else 0,
            pending=record.facts.pending and record.run_state == "held",
            recovering=record.recovering,
            failed_target=record.failed_move.to_avoid(self.now),
            overdue=overdue,
            expects_slots=record.lacks_since is not None and record.lacks_since > since,
            behind=progress is not None and (progress.records_behind or 0) > progress.input_rows,
            reading=record.reading(self.settings),
        )

    def submission_resources(self) -> Resources:
        """Answer for a query that waits to be started."""
        return _Submission(self.share, self.settings.hands_off)

    def resource_deadline(self, since: int) -> int | None:
        """Return when a query fails that has waited for its slots since then; None if it never does."""
        wait_ms = self.settings.resource_wait_ms
        return None if wait_ms < 0 else since + wait_ms

    def new_submission_manager(self) -> TransitionManager:
        """Begin the wait for more slots than a start needs."""
        stabilization_ms = self.settings.submission_stabilization_ms
        return TransitionManager(
            created=self.now,
            cooldown_ms=0,
            # Who only advises delays no start.
            stabilization_ms=0 if self.settings.hands_off else stabilization_ms,
            max_delay_ms=0,
        )

    def new_executing_manager(self) -> TransitionManager:
        """Begin a new cooldown."""
        settings = self.settings
        delay_ms = settings.max_delay_ms
        if delay_ms is None:
            # So many micro-batches may fail, the next one is waited for.
            delay_ms = (settings.max_checkpoint_failures + 1) * self.record.facts.trigger_ms
        return TransitionManager(
            created=self.now,
            cooldown_ms=settings.cooldown_ms,
            stabilization_ms=settings.executing_stabilization_ms,
            max_delay_ms=delay_ms,
        )

    def change_settings(self, settings: CoreSettings | None) -> None:
        """Take over the settings that the query has from now on; what it has counted under others is gone."""
        before = self.settings
        self.record.settings = settings
        if self.settings.restart != before.restart:
            self.record.strategy = strategy_of(self.record.facts, self.settings)
        if self.record.manager is not None:
            self.record.manager.retime(self.new_executing_manager())

    @property
    def _store_of(self) -> StoreOf:
        record = self.record
        movable = repartition_obstacle(record.facts, record.provider, record.checkpoint_format) is None
        if not record.facts.stateful or record.facts.provider_chosen or not movable:
            return "user"
        first = record.facts.checkpoint_partitions is None and record.last_progress is None
        return "new" if first else "ours"

    def judge(self, failure: Failure) -> Judgement:
        """Note the failure of a run, say what is to become of the query, and publish that."""
        record = self.record
        judgement = judge(
            failure, at=self.now, strategy=record.strategy, poison=record.poison, store=self._store_of
        )
        if judgement.reason == "failure_new_store":
            keep_text(record, "store", "unchanged", self.turn)
        record.run_state = "failed"
        record.recovering = True
        record.target = None
        self.give_up("start", "rescale", "end")  # a copy continues beside the failed run
        entry = RunFailure(at=self.now, failure=failure, reason=judgement.reason)
        record.exceptions = (entry, *record.exceptions)[:EXCEPTIONS_KEPT]
        if judgement.backoff_ms is not None:
            self.open_rescale("recoverable_failover")
        self.report(
            judgement.reason,
            before=record.partitions,
            numbers={
                "error": summary(failure.error),
                "offsets": failure.offsets,
                "tries": record.poison.times,
                "backoff_ms": judgement.backoff_ms or 0,
            },
        )
        return judgement
