"""Brings one batch over, whatever is wrong with single records of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from cascade_runtime.agent.shipping.head import Head, read_head
from cascade_runtime.agent.shipping.link import Answer, Later, Link, Refused
from cascade_runtime.agent.shipping.stand_in import gap_row
from cascade_runtime.vocabulary.events import EVENT_TYPES
from cascade_runtime.vocabulary.identity import Actor

_TOO_LARGE = 413
_KNOWN = frozenset(str(kind.__struct_config__.tag) for kind in EVENT_TYPES)


class _LeftOut(NamedTuple):
    table: str
    why: Refused


class Delivery:
    """Sends batches; a record that is refused alone is left out, counted and told once.

    Args:
        link: the connection.
        run_id: the job's run.
        on_answer: told of every answer.
        say: prints a line.

    Attributes:
        num_refused: records that were left out.
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
        self.num_refused = 0

    def deliver(self, payloads: list[bytes]) -> None:
        """Returns when each record is stored, or left out. Sent twice, nothing breaks.

        Raises:
            Later: send the whole batch again later.
            Stopped: the collector wants no more.
        """
        left_out: list[_LeftOut] = []
        self._deliver(payloads, left_out)
        # Counted when the batch is done: until then it may come again, and they with it.
        if left_out and not self.num_refused:
            table, why = left_out[0]
            self._say(f"the collector refuses a {table} record, which is left out: {why}")
        self.num_refused += len(left_out)

    def _deliver(self, payloads: list[bytes], left_out: list[_LeftOut]) -> None:
        try:
            self._post(payloads)
        except Refused as refusal:
            if len(payloads) == 1:
                left_out.append(self._stand_in(payloads[0], refusal))
                return
            middle = len(payloads) // 2
            self._deliver(payloads[:middle], left_out)
            self._deliver(payloads[middle:], left_out)

    def _post(self, payloads: list[bytes]) -> None:
        self._on_answer(self._link.post(payloads))

    def _stand_in(self, payload: bytes, refusal: Refused) -> _LeftOut:
        head = read_head(payload)
        if head is None:
            # A completion has no number that a gaps row could take.
            self._believe(refusal)
            return _LeftOut("collective_done", refusal)
        try:
            self._post([self._gap(head, refusal.status)])
        except Refused as again:
            self._believe(again)
        return _LeftOut(head.table, refusal)

    def _believe(self, refusal: Refused) -> None:
        """The record is at fault only if a batch without any is taken.

        Raises:
            Later: even that is refused, so it is somebody who refuses everything.
        """
        try:
            self._post([])
        except Refused:
            raise Later(f"{refusal}, whatever is sent") from refusal

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
