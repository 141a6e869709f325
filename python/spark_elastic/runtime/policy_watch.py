"""Watch the policy file: read it when the process starts and whenever it changes.

There is no thread. The loop polls, the file's status is checked at most once a second, and the file is read
only if that status has changed.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from spark_elastic.core.events import PolicyFileChanged, PolicyFileRefused
from spark_elastic.policy_file import MAX_SIZE, PolicyFile, PolicyFileError, load_policy

LOOK_EVERY_MS = 1_000
_MOST_READS = 3

_Look = tuple[int, int, int]


class _Unreadable(Exception):
    """The file cannot be read; the text says why and what to do."""


class PolicyWatch:
    """Watches the file at `path`; `next_id` creates the ids of the runtime's events.

    `policy` is the last valid content of the file, None before that. `known` is the content that a previous
    policy process was last notified of; it is not reported again.
    """

    def __init__(
        self, path: Path, next_id: Callable[[], str], known: PolicyFileChanged | None = None
    ) -> None:
        self._path = path
        self._next_id = next_id
        self._looked_at: int | None = None
        self._seen: _Look | None = None
        # What was refused last: the file's content, or why it could not be read. None after a valid file.
        self._refused: bytes | str | None = None
        self.policy: PolicyFile | None = None
        if known is not None and known.path == str(path):
            self.policy = PolicyFile.of(known)

    def poll(self, now_ms: int) -> PolicyFileChanged | PolicyFileRefused | None:
        """Return an event if the file has changed at `now_ms` (epoch ms), else None."""
        # A clock that was set back must not stop the watch.
        if self._looked_at is not None and 0 <= now_ms - self._looked_at < LOOK_EVERY_MS:
            return None
        self._looked_at = now_ms
        try:
            content = self._read_if_new()
        except _Unreadable as error:
            self._seen = None
            return self._refuse(now_ms, str(error), (str(error),))
        if content is None or content == self._refused:
            return None
        try:
            policy = load_policy(content)
        except PolicyFileError as error:
            return self._refuse(now_ms, content, error.errors)
        # After a refusal, a valid file is reported even if its content is the same as before the refusal.
        if policy == self.policy and self._refused is None:
            return None
        self.policy = policy
        self._refused = None
        return policy.event(self._next_id(), now_ms, str(self._path))

    def _refuse(self, now_ms: int, refused: bytes | str, errors: tuple[str, ...]) -> PolicyFileRefused | None:
        if refused == self._refused:
            return None
        self._refused = refused
        return PolicyFileRefused(id=self._next_id(), at=now_ms, path=str(self._path), errors=errors)

    def _read_if_new(self) -> bytes | None:
        """Return the content of the file if the file has changed, else None. Raises _Unreadable.

        A file that changes during the read is read again, a few times, and then once more at the next check.
        """
        try:
            look = self._look()
            if look == self._seen:
                return None
            for _ in range(_MOST_READS):
                with self._path.open("rb") as file:
                    content = file.read(MAX_SIZE + 1)
                before, look = look, self._look()
                if look == before:
                    self._seen = look
                    return content
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _Unreadable(self._missing()) from error
        except OSError as error:
            message = f"{self._path} cannot be read: {error.strerror}: let the driver's user read it"
            raise _Unreadable(message) from error
        return None

    def _look(self) -> _Look:
        found = self._path.stat()
        # Opening a pipe would wait for a process that writes to it.
        if not stat.S_ISREG(found.st_mode):
            raise _Unreadable(f"{self._path} is no file: name a file in spark.elastic.policyFile")
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _missing(self) -> str:
        if self.policy is None:
            return f"{self._path} is not there: create it, or remove spark.elastic.policyFile"
        return f"{self._path} is gone, what it said last stays in force: put it back to change that"
