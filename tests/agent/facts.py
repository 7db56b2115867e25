"""Short ways to say views, facts and triggers."""

from __future__ import annotations

from cascade_runtime.agent.protocol import Facts, Trigger, View
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot, EventRef
from cascade_runtime.vocabulary.regime import Regime

AGENT = Actor(100)


def actors(*ranks: int) -> list[Actor]:
    return [Actor(r) for r in ranks]


def view(*ranks: int, regime=Regime.STRONG, epoch=0, **fields) -> View:
    members = actors(*ranks)
    told = {
        "epoch": epoch,
        "regime": regime,
        "from_regime": regime,
        "members": members,
        "cohorts": [members] if members else [],
        "proposer": AGENT,
    }
    return View(**{**told, **fields})


def at(decided: int, issued: int = 0, author: int = 0, **fields) -> Facts:
    """Facts of a rank that applied all of the author's dots up to ``decided``."""
    return Facts(decided=decided, issued=issued, frontier=[Dot(author, 0, decided)], **fields)


def dead(decided: int = 0, issued: int = 0) -> Facts:
    return Facts(decided=decided, issued=issued, dead=True)


def told(fault: FaultEvent | None, subject: int | None = None, seq: int = 1) -> Trigger:
    about = None if subject is None else Actor(subject)
    return Trigger(fault, about, [EventRef(AGENT.rank, 0, seq)], f"{fault} of {subject}")


def death_of(subject: int, seq: int = 1) -> Trigger:
    return told(FaultEvent.GPU_FAIL_STOP, subject, seq)
