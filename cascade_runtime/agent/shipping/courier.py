"""When what is sent. No thread and no clock of its own: each ``turn`` does a little and says when next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cascade_runtime.agent.shipping.backoff import Backoff
from cascade_runtime.agent.shipping.delivery import Delivery
from cascade_runtime.agent.shipping.link import TIMEOUT_S, Answer, Later, Link, Refused
from cascade_runtime.agent.shipping.spool import HostSpool
from cascade_runtime.vocabulary.identity import Actor

INTERVAL_S = 0.5
_LAST_CALL = 0.2
"""Share of the time at the end that is kept for trace.json, whatever becomes of the rows."""


class Courier:
    """Carries one host's spool to the collector.

    Args:
        link: the connection.
        spool: what to carry.
        run_id: the job's run.
        trace_json: the file that tells what the run is.
        say: prints a line.
        now: a clock in seconds.
        chance: gives a number from 0 up to 1.
    """

    def __init__(
        self,
        link: Link,
        spool: HostSpool,
        run_id: str,
        trace_json: Path,
        say: Callable[[str], None],
        now: Callable[[], float],
        chance: Callable[[], float],
    ) -> None:
        self._link = link
        self._spool = spool
        self._run_id = run_id
        self._trace_json = trace_json
        self._say = say
        self._now = now
        self._backoff = Backoff(chance)
        self._delivery = Delivery(link, run_id, self._on_answer, say)
        self._waiting: list[bytes] = []
        """The batch that is under way; kept until it has been answered."""
        self._more = False
        self._troubled = False
        self._wanted_end: tuple[float, float] | None = None
        self._end_by: float | None = None
        self._last_call = 0.0
        self.tell_start = False
        """Send trace.json as soon as possible."""
        self.tell_end = False
        """Send trace.json once the rows are out."""

    def finish_by(self, end_by: float) -> None:
        """All writers have ended: carry what is left, and give up at ``end_by`` (the clock's time).

        May be called from another thread; the next turn begins with it.
        """
        left = max(end_by - self._now(), 0.0)
        self._wanted_end = (end_by, end_by - _LAST_CALL * left)

    def turn(self) -> float | None:
        """Do what is due; seconds until the next turn, None when there is nothing left to do.

        Raises:
            Stopped: the collector wants nothing from us.
        """
        if self._wanted_end is not None and self._end_by is None:
            self._end_by, self._last_call = self._wanted_end
            self._spool.all_ended = True
            self._backoff.worked()  # what little time is left is for trying
        try:
            self._carry()
        except Later as later:
            self._more = True
            if not self._troubled:
                self._troubled = True
                self._say(f"rows wait in the spool for the collector: {later}")
            return self._until_next_try(self._backoff.failed(later.retry_after_s))
        self._backoff.worked()
        if self._troubled:
            self._say("the collector takes rows again")
            self._troubled = False
        if self._more:
            return None if self._is_late() else 0.0
        if self._end_by is None:
            return INTERVAL_S
        if not self._spool.is_empty:
            self._say("all rows were sent, but the collector does not say that it has them all")
        if self._delivery.num_refused > 1:  # the first one was told when it was met
            self._say(f"{self._delivery.num_refused} records were refused and left out in all")
        return None

    def close(self) -> None:
        """Close connection and files; spool folders in which nothing is left are removed."""
        self._link.close()
        self._spool.close()

    def _carry(self) -> None:
        if self._end_by is not None:
            if self.tell_end and self._now() >= self._last_call:
                self._tell_end()
            limit = self._last_call if self.tell_end else self._end_by
            self._link.set_timeout(min(TIMEOUT_S, max(limit - self._now(), 0.05)))
        if not self._waiting:
            self._waiting, self._more = self._collect()
        if self._waiting:
            self._delivery.deliver(self._waiting)
            self._waiting = []
        self._release()
        if self.tell_start:  # after the rows, so that they never wait for it
            self._tell()
            self.tell_start = False
        if self.tell_end and self._end_by is not None and not self._more:
            self._tell_end()

    def _collect(self) -> tuple[list[bytes], bool]:
        try:
            return self._spool.collect()
        except OSError as error:
            raise Later(f"the spool cannot be read: {error.strerror}") from error

    def _release(self) -> None:
        try:
            self._spool.release()
        except OSError as error:
            raise Later(f"the spool cannot be cleared: {error.strerror}") from error

    def _tell_end(self) -> None:
        assert self._end_by is not None
        self._link.set_timeout(min(TIMEOUT_S, max(self._end_by - self._now(), 0.05)))
        self._tell()
        self.tell_end = False

    def _tell(self) -> None:
        try:
            text = self._trace_json.read_bytes()
        except OSError as error:
            self._say(f"the collector was not told what the run is: {error.strerror}")
            return
        try:
            self._link.put_run(self._run_id, text)
        except Refused as refusal:  # asking again would not help; the rows stand without it
            self._say(f"the collector does not take the run's trace.json: {refusal}")

    def _until_next_try(self, delay: float) -> float | None:
        if self._end_by is None:
            return delay
        if self._is_late():
            return None
        left = self._end_by - self._now()
        if self.tell_end and self._now() < self._last_call:
            return min(delay, self._last_call - self._now())
        return delay if delay < left else None

    def _is_late(self) -> bool:
        return self._end_by is not None and self._now() >= self._end_by

    def _on_answer(self, answer: Answer) -> None:
        for mark in answer.marks:
            if mark.run_id == self._run_id:
                self._spool.note_mark(Actor(mark.rank, mark.incarnation), mark.seq)
