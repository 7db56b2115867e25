"""``gaps`` rows in place of rows that cannot be shipped (numbered as in docs/spool.md)."""

from __future__ import annotations

from typing import Literal

import msgspec

from cascade_runtime.agent.shipping.head import Head
from cascade_runtime.vocabulary.events import Gaps
from cascade_runtime.vocabulary.identity import Actor

Reason = Literal["dropped", "corrupt", "not_supplied"]


def gap_row(
    run_id: str,
    actor: Actor,
    first_seq: int,
    last_seq: int | None,
    *,
    reason: Reason,
    tables: list[str] | None,
    before: Head | None,
    wall_ns: int,
) -> bytes:
    """A packed gaps row that takes the first missing seq.

    Args:
        run_id: of the job.
        actor: whose rows are missing.
        first_seq: the first missing seq.
        last_seq: the last one; None = not known.
        reason: why.
        tables: of the missing rows; None = any.
        before: the actor's last row before them, whose time the row takes.
        wall_ns: the time to give it when there is none.
    """
    return (
        msgspec.msgpack.encode(  # not the codec: its decoders would cost each agent 50 ms to make
            Gaps(
                run_id=run_id,
                rank=actor.rank,
                incarnation=actor.incarnation,
                seq=first_seq,
                group_id=before.group_id if before else "world",
                epoch=None,  # not known inside a gap
                regime=None,
                step=None,
                wall_ns=before.wall_ns if before else wall_ns,
                mono_ns=before.mono_ns if before else None,
                first_seq=first_seq,
                last_seq=last_seq,
                num_events=None if last_seq is None else last_seq - first_seq + 1,
                tables=tables,
                reason=reason,
            )
        )
    )
