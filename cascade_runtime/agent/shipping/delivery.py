"""Brings one batch over, whatever is wrong with single records of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from cascade_runtime.agent.shipping.head import Head, read_head
from cascade_runtime.agent.shipping.link import Answer, Later, Link, Refused
from cascade_runtime.agent.shipping.stand_in import gap_row
from cascade_runtime.vocabulary.events import EVENT_TYPES
from cascade_runtime.vocabulary.identity import Actor

_TOO_LARGE = 413
_KNOWN = frozenset(str(kind.__struct_config__.tag) for kind in EVENT_TYPES)


class Delivery:
    """Sends batches; a record that is refused alone is left out, counted and told once.

    Args:
        link: the connection.
        run_id: the job's run.
        on_answer: told of every answer.
        say: prints a line.
    """

    def __init__(
        self,
        link: Link,
        run_id: str,
        on_answer: Callable[[Answer], None],
        say: Callable[[str], None],
    ) -> None:
        self._link = link
        self._run_id = run_id
        self._on_answer = on_answer
        self._say = say
        self._any_taken = False
        self._refused: set[int] = set()

    @property
    def num_refused(self) -> int:
        """Records that were left out."""
        return len(self._refused)

    def deliver(self, payloads: list[bytes]) -> None:
        """Returns when each record is stored, or stood in for. Sent twice, nothing breaks.

        Raises:
            Later: send the whole batch again later.
            Stopped: the collector wants no more.
        """
        try:
            answer = self._link.post(payloads)
        except Refused as refusal:
            if len(payloads) == 1:
                self._stand_in(payloads[0], refusal)
                return
            middle = len(payloads) // 2
            self.deliver(payloads[:middle])
            self.deliver(payloads[middle:])
        else:
            self._any_taken = True
            self._on_answer(answer)

    def _stand_in(self, payload: bytes, refusal: Refused) -> None:
        head = read_head(payload)
        if head is None:
            # A completion has no number that a gaps row could take.
            if not self._any_taken:
                raise Later(f"{refusal}, and has taken nothing yet") from refusal
        else:
            try:
                self._on_answer(self._link.post([self._gap(head, refusal.status)]))
                self._any_taken = True
            except Refused as again:
                # Even the plainest of rows: then it is not the record that is wrong.
                raise Later(f"{again}, whatever is sent") from again
        if not self._refused:
            what = head.table if head else "collective_done"
            self._say(f"the collector refuses a {what} record, which is left out: {refusal}")
        self._refused.add(hash(payload))  # it may be met again, when the batch is sent again

    def _gap(self, head: Head, status: int) -> bytes:
        reason: Literal["dropped", "corrupt", "not_supplied"] = "not_supplied"
        if status == _TOO_LARGE:
            reason = "dropped"
        elif head.table in _KNOWN:
            reason = "corrupt"  # as for any record that breaks the schema (docs/spool.md)
        return gap_row(
            self._run_id,
            Actor(head.rank, head.incarnation),
            head.seq,
            head.seq,
            reason=reason,
            tables=[head.table],
            before=head,
            wall_ns=head.wall_ns,
        )
