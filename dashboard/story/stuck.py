"""Who holds up a job that hangs: ranks that wait for one which the evidence convicts."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.story.facts import Facts
from dashboard.story.words import S, duration, listed, number_spans, sentence

LEAST_NS = 3 * S
"""A wait that is shorter, and goes on, is no hang yet."""


@dataclass(frozen=True)
class Stuck:
    """A wait that nobody has ended.

    Attributes:
        held: ranks that wait.
        by: ranks that never came, as far as that is certain.
        step: in which; None when the rows do not say.
        at_ns, end_ns: since t0.
        is_live: the run goes on.
    """

    held: list[int]
    by: list[int]
    step: int | None
    at_ns: int
    end_ns: int
    is_live: bool

    def words(self) -> str:
        """For the headline: ``Stuck for 46 s: ranks 0 and 2 wait in step 41 for rank 1.``."""
        at_end = "" if self.is_live else " at its end"
        return f"Stuck for {duration(self.end_ns - self.at_ns)}{at_end}: {self.said()}"

    def said(self) -> str:
        """The same without how long."""
        one = len(self.held) == 1
        verb = ("waits" if one else "wait") if self.is_live else "waited"
        where = "" if self.step is None else f" in step {self.step:,}"
        return f"{_ranks(self.held)} {verb}{where} for {_ranks(self.by)}."

    def title(self) -> str:
        """For the incident."""
        verb = ("holds" if len(self.by) == 1 else "hold") if self.is_live else "held"
        return f"{sentence(_ranks(self.by))[:-1]} {verb} up the others"


def stuck_of(facts: Facts) -> Stuck | None:
    """As judged; None where nobody waits for long, or nobody is convicted of it."""
    judged = facts.judged
    if judged is None:
        return None
    certain = {s.rank for s in judged.report.suspects if s.certain}
    waits = [w for w in judged.held if w["absent"] in certain and w["waited"] not in certain]
    if not waits:
        return None
    length = max(w["wait_ns"] for w in waits)
    if length < LEAST_NS:
        return None
    end = facts.since(facts.t1_ns if judged.upto_ns is None else judged.upto_ns)
    held = sorted({w["waited"] for w in waits})
    step = min((w["step"] for w in waits if w["step"] is not None), default=None)
    until = _until(facts, held, step, end)
    if until is None:
        return None
    return Stuck(
        held=held,
        by=sorted({w["absent"] for w in waits}),
        step=step,
        at_ns=end - length,
        end_ns=until,
        is_live=facts.state == "live",
    )


def _until(facts: Facts, held: list[int], step: int | None, judged_ns: int) -> int | None:
    """Since t0, by rows that nobody judged yet; None where a rank that waited has gone on."""
    if facts.is_whole or facts.activity is None or step is None:
        return judged_ns
    spans = [span for key, span in facts.activity.spans.items() if key[0] in held]
    if any(span.highest_step > step for span in spans):
        return None
    return max(judged_ns, min((facts.since(s.latest_ns) for s in spans), default=judged_ns))


def _ranks(ranks: list[int]) -> str:
    if len(ranks) <= 3:
        return f"rank{'' if len(ranks) == 1 else 's'} {listed([str(r) for r in ranks])}"
    return f"ranks {number_spans(ranks)}"
