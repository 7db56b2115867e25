"""What is known to be missing, turned into ``gaps`` rows.

A gaps row takes a seq of its own: the first missing one. So the hole that it stands in is accounted
for (design contract 4.4: a hole that a gaps row covers is not Q1), and the number is free, because
the row that had it is the one that is gone. What other rows or other gaps rows account for already
is not reported again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cascade_runtime.vocabulary.events import Gaps
from cascade_runtime.vocabulary.identity import Actor

Seqs = npt.NDArray[np.int64]
HIGHEST_SEQ = 2**63 - 1
Span = tuple[int, int | None]
"""First and last seq, both included; None = as far as the actor went, not known."""


class Moment(NamedTuple):
    """The last row of an actor that was read before something was lost."""

    run_id: str
    group_id: str
    wall_ns: int
    mono_ns: int | None


class Loss(NamedTuple):
    """A stretch of an actor's seqs that could not be read.

    ``tables`` None means any table; ``reason`` is a word of ``gaps.reason``; ``moment`` is None when
    nothing of the actor was read before it.
    """

    actor: Actor
    first_seq: int
    last_seq: int | None
    tables: tuple[str, ...] | None
    reason: str
    moment: Moment | None


class Accounted(NamedTuple):
    """The seqs of one actor that rows hold (sorted, unique), and the spans that gaps rows cover."""

    seqs: Seqs
    covered: list[Span]


def missing_spans(loss: Loss, accounted: Accounted) -> list[Span]:
    """The parts of a loss that nothing else accounts for, in order."""
    first, last = loss.first_seq, loss.last_seq
    if first > HIGHEST_SEQ:
        return []
    begin = int(np.searchsorted(accounted.seqs, first))
    end = len(accounted.seqs) if last is None else np.searchsorted(accounted.seqs, last, "right")
    seqs = accounted.seqs[begin : int(end)]
    starts = np.concatenate(([first], seqs + 1))  # past the highest number it wraps: no span
    ends = np.concatenate((seqs - 1, [-1 if last is None else last]))
    spans: list[Span] = [(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if a <= b]
    if last is None and starts[-1] >= first:
        spans.append((int(starts[-1]), None))
    for cover in accounted.covered:
        spans = [part for span in spans for part in _without(span, cover)]
    if loss.reason == "not_supplied":
        # Rows that exist but are of a table that this release does not know. Only where their seqs
        # would look like a hole do they need to be accounted for; at the tail nothing is missed.
        highest = int(accounted.seqs[-1]) if len(accounted.seqs) else -1
        spans = [span for span in spans if span[1] is not None and span[1] < highest]
    return spans


def _without(span: Span, cover: Span) -> list[Span]:
    (a, b), (c, d) = span, cover
    parts: list[Span] = []
    if a < c:
        parts.append((a, c - 1 if b is None else min(b, c - 1)))
    if d is not None and (b is None or b > d):
        parts.append((max(a, d + 1), b))
    return parts


def gaps_rows(
    losses: Iterable[Loss],
    accounted: Callable[[Actor], Accounted],
    run_id: str,
    wall_ns: int,
) -> list[Gaps]:
    """One gaps row for each stretch that nothing accounts for.

    Args:
        losses: what could not be read.
        accounted: what the trace holds of an actor.
        run_id: the run, and
        wall_ns: the time to give a row when nothing was read of its actor before it.
    """
    rows: list[Gaps] = []
    for actor, mine in _by_actor(losses).items():
        known = accounted(actor)
        taken: set[int] = set()
        for loss in mine:
            spans = [span for span in missing_spans(loss, known) if span[0] not in taken]
            rows += [_row(loss, span, run_id, wall_ns) for span in spans]
            taken.update(first for first, _ in spans)
    return rows


def _by_actor(losses: Iterable[Loss]) -> dict[Actor, list[Loss]]:
    found: dict[Actor, list[Loss]] = {}
    for loss in losses:
        found.setdefault(loss.actor, []).append(loss)
    return found


def _row(loss: Loss, span: Span, run_id: str, wall_ns: int) -> Gaps:
    # Epoch, regime and step are not known inside a gap, so they are null.
    moment = loss.moment or Moment(run_id, "world", wall_ns, None)
    first, last = span
    return Gaps(
        run_id=moment.run_id,
        rank=loss.actor.rank,
        incarnation=loss.actor.incarnation,
        seq=first,
        group_id=moment.group_id,
        epoch=None,
        regime=None,
        step=None,
        wall_ns=moment.wall_ns,
        mono_ns=moment.mono_ns,
        first_seq=first,
        last_seq=last,
        num_events=None if last is None else last - first + 1,
        tables=None if loss.tables is None else list(loss.tables),
        reason=loss.reason,  # type: ignore[arg-type]  # a word of gaps.reason
    )
