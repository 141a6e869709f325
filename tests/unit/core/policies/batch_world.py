"""A cluster in simulated time that runs batch stages, alone or next to queries."""

from __future__ import annotations

from attrs import define, field

from spark_elastic.core.events import BatchStage, BatchStages
from tests.unit.core.policies.world import World


@define
class Work:
    """A stage of `tasks` that take `task_ms` each; `done_ms` of slot time are done, since second `began`."""

    tasks: int
    task_ms: float
    began: int = 0
    done_ms: float = 0.0
    launched: bool = False

    @property
    def done(self) -> int:
        return min(self.tasks, int(self.done_ms / self.task_ms + 1e-9))


@define
class BatchWorld(World):
    """Runs the stages of jobs one after another, on all slots; `ended` has the end of each job (s)."""

    jobs: dict[int, list[Work]] = field(factory=dict)
    ended: list[int] = field(factory=list)
    numbers: int = 0
    shown: bool = False

    def job(self, second: int, *stages: tuple[int, float]) -> None:
        """Start a job at a second, given each stage's number of tasks and the duration of a task (ms)."""
        self.jobs[second] = [Work(tasks, task_ms) for tasks, task_ms in stages]

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            super().run(1)
            self._work((self.scene.now - self.began) // 1_000)

    def _work(self, now: int) -> None:
        slots = self.executors * self.cores
        shown, over = [], 0
        for second, stages in [(at, stages) for at, stages in self.jobs.items() if at <= now]:
            spent = 0.0
            while stages and spent < 1_000:
                work, spent = stages[0], self._step(stages[0], slots, spent)
                if work.done < work.tasks:
                    break
                stages.pop(0)
                self.numbers += 1
                over += 1
            if stages:
                shown.append(self._shown(stages[0], slots))
            else:
                del self.jobs[second]
                self.ended.append(now)
        if shown or self.shown or over:
            self.take(self.scene.send(BatchStages, stages=tuple(shown), over=over))
        self.shown = bool(shown)

    def _step(self, work: Work, slots: int, spent: float) -> float:
        """Work on a stage for the rest of a second; return how much of the second is used up by then (ms)."""
        if slots == 0:
            return 1_000.0
        if not work.launched:
            work.launched, work.began = True, self.scene.now
        each = min(slots, work.tasks)
        rest = (work.tasks * work.task_ms - work.done_ms) / each
        took = min(1_000 - spent, rest)
        work.done_ms += took * each
        return spent + took

    def _shown(self, work: Work, slots: int) -> BatchStage:
        return BatchStage(
            stage=self.numbers,
            tasks=work.tasks,
            done=work.done,
            running=min(slots, work.tasks - work.done),
            run_ms=round(work.done * work.task_ms),
            launched=work.began if work.launched else None,
        )
