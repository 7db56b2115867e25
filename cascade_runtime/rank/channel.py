"""The author's channel to other cohorts, opened with a view that has several, and what is folded when.

A cohort of one folds what its author has heard at the end of its step. In a larger one the choice is
decided with a step: a small part ``folds``, from the author, names what is to be folded at the end of
the next step, which carries it in parts ``sum/<origin>``. So all members fold the same, or none does.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import torch

from cascade_runtime.agent.control_log import comm_id_of
from cascade_runtime.agent.protocol import Get, Put, Value, View
from cascade_runtime.delivery import Snapshot, Step, foldable
from cascade_runtime.rank.apart import Apart, Came
from cascade_runtime.rank.groups import bury
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import raw_bytes
from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.part import Part
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Groups, Messages
from cascade_runtime.vocabulary.identity import Actor, Dot

MOST = 8
"""Sums that one step may carry."""

BOUND = 16
"""Steps that an author may issue beyond what every other cohort has folded."""

ASK_AGAIN_S = 0.2

_snapshot = msgspec.msgpack.Decoder(Snapshot)


class Channel:
    """One member's part in what goes between cohorts.

    Args:
        bound: steps that may be issued beyond what every other cohort has folded.
        token: a secret of the run, which every frame carries.
    """

    def __init__(
        self,
        member: Member,
        link: AgentLink,
        recorder: Recorder,
        apart: Apart,
        bound: int = BOUND,
        token: bytes = b"",
    ) -> None:
        self._member = member
        self._link = link
        self._recorder = recorder
        self._apart = apart
        self._bound, self._token = bound, token
        self._deltas: Any = None  # Deltas, whose import loads ZeroMQ
        self._comm_id, self._epoch, self._asked = "", -1, 0.0
        self._addresses: dict[Actor, str] = {}
        self._others: list[Actor] = []
        self._due: list[tuple[Actor, int, int]] = []
        """Origin, counter and size of what this step carries."""
        self._held: dict[Actor, tuple[Snapshot, bytearray]] = {}
        self._came: list[Came] = []
        self._acks: list[tuple[Actor, int, bytearray | None]] = []
        apart.on_folded, apart.on_stepped = self._on_folded, self._on_stepped

    # ---- opening ---------------------------------------------------------------------------------

    def close(self, step: OpenStep) -> None:
        """Another view: a walk levels all members, so nothing that was under way is missed."""
        if self._deltas is not None:
            with contextlib.suppress(Exception):
                self._deltas.close()
        self._deltas, self._addresses, self._others = None, {}, []
        self._due, self._held, self._came, self._acks = [], {}, [], []
        for part in step.parts:
            if part.is_fold and part.work is not None and not part.done:
                bury((part.work, part.scratch))
        step.parts = [p for p in step.parts if not p.is_fold]

    def open(self, view: View) -> None:
        """The author's end, where this view has several cohorts."""
        member = self._member
        sums = self._apart.sums
        if len(view.cohorts) < 2 or sums is None or self._epoch == view.epoch:
            return
        self._epoch = view.epoch
        if member.actor != member.author or sums.num_sum_bytes == 0:
            return
        me, authors = member.actor, sorted(min(c) for c in view.cohorts)
        own = max(member.frontier.upto(me), member.ahead.upto(me))
        start = min([level.least for level in view.levels if level.origin == me], default=own)
        with self._trying():
            from cascade_runtime.rank.deltas import Deltas  # noqa: PLC0415  # loads ZeroMQ

            self._deltas = Deltas(
                me,
                view.epoch,
                self._token,
                sums.num_sum_bytes,
                lambda: sums.payload(me),
                stride=len(member.objects.names),
                bound=self._bound,
                start=start,
                on_message=self._row,
            )
        if self._deltas is None:
            return
        self._deltas.issued(max(own, member.issued))
        self._comm_id = comm_id_of(authors, -2 - view.epoch)
        self._recorder.row(
            Groups, comm_id=self._comm_id, members=authors, ordinal=0, label=f"deltas/{view.epoch}"
        )
        self._others = [a for a in authors if a != me]
        address = self._deltas.address
        self._connect()
        self._link.send(Put(view.epoch, _key(me), address.encode()))
        self._asked = 0.0
        self._ask()

    def hear(self, message: Value) -> None:
        """Where another author listens."""
        for other in self._others:
            if message.key == _key(other) and message.value and self._deltas is not None:
                self._addresses[other] = message.value.decode()
                self._connect()

    def _connect(self) -> None:
        # Who cannot be reached yet may be heard already.
        with self._trying():
            self._deltas.connect({a: self._addresses.get(a, "") for a in self._others})

    @contextlib.contextmanager
    def _trying(self) -> Iterator[None]:
        """What ZeroMQ cannot do (no file or port left, not to be loaded) ends being apart, not the job."""
        try:
            yield
        except Exception as error:
            deltas, self._deltas = self._deltas, None
            with contextlib.suppress(Exception):
                if deltas is not None:
                    deltas.close()
            why = f"{type(error).__name__}: {error}"
            self._apart.keep_together(f"no updates can be exchanged between cohorts ({why})")

    def _row(self, traffic: Any) -> None:
        self._recorder.row(
            Messages,
            comm_id=self._comm_id,
            peer=traffic.peer.rank,
            peer_incarnation=traffic.peer.incarnation,
            channel_seq=traffic.number,
            direction=traffic.direction,
            num_bytes=traffic.num_bytes,
        )

    # ---- moving ----------------------------------------------------------------------------------

    @property
    def fds(self) -> list[int]:
        """To be polled beside others, after ``pump``."""
        return self._deltas.fds if self._deltas is not None else []

    @property
    def is_open(self) -> bool:
        """This member tells its cohort's updates to others."""
        return self._deltas is not None

    def pump(self) -> None:
        """Move what there is to move, without waiting."""
        if self._deltas is not None:
            with self._trying():
                self._deltas.pump()
            if self._deltas is not None and len(self._addresses) < len(self._others):
                self._ask()

    def _ask(self) -> None:
        # Again and again: an agent that has not taken in the view yet says that there is no answer.
        now = time.monotonic()
        if now - self._asked > ASK_AGAIN_S:
            self._asked = now
            for other in self._others:
                self._link.send(Get(self._member.view.epoch, _key(other)))

    @property
    def must_wait(self) -> bool:
        """The next step would be too far ahead of what another cohort has folded."""
        if self._deltas is None or self._member.has_issued:
            return False
        return not self._deltas.may_issue(self._member.open_dots()[-1].counter)

    def issued(self) -> None:
        """The open step's dots are issued."""
        if self._deltas is not None:
            self._deltas.issued(self._member.issued)

    def _on_stepped(self, step: Step, needs: list[Dot]) -> None:
        if self._deltas is not None:
            with self._trying():
                self._deltas.stepped(step, needs)

    def _on_folded(self, origin: Actor, upto: int, buffer: bytearray | None) -> None:
        if self._deltas is None:
            return
        if len(self._member.cohort) == 1:
            with self._trying():
                self._deltas.folded(origin, upto, buffer)
        else:  # once it is known to be on record on all members of the cohort
            held = self._held.pop(origin, None)
            self._acks.append((origin, upto, held[1] if held is not None else buffer))

    # ---- parts of a step -------------------------------------------------------------------------

    def parts(self, step: OpenStep) -> list[Part]:
        """What the open step carries of other cohorts, and what the next one will."""
        member = self._member
        if not member.is_apart or len(member.cohort) < 2 or self._apart.sums is None:
            return []
        parts = []
        for origin, _, size in self._due:
            data = torch.empty(size, dtype=torch.uint8)
            if origin in self._held:
                snapshot, buffer = self._held[origin]
                meta = msgspec.msgpack.encode(snapshot)
                data[: len(meta)] = torch.frombuffer(bytearray(meta), dtype=torch.uint8)
                data[len(meta) :] = torch.frombuffer(buffer, dtype=torch.uint8)
            parts.append(Part(f"sum/{origin}", data, data, "broadcast"))
        header = torch.zeros(1 + 4 * MOST, dtype=torch.int64)
        for i, (origin, upto, size) in enumerate(self._pick() if not self._due else []):
            header[0] = i + 1
            told = torch.tensor([origin.rank, origin.incarnation, upto, size])
            header[1 + 4 * i : 5 + 4 * i] = told
        parts.append(Part("folds", header, torch.empty_like(header), "broadcast"))
        return parts

    def _pick(self) -> list[tuple[Actor, int, int]]:
        """The author's choice for the next step."""
        if self._deltas is None:
            return []
        for snapshot in foldable(self._member.frontier, self._deltas.newest)[:MOST]:
            self._held[snapshot.origin] = self._deltas.take(snapshot.origin)
        return [
            (o, s.upto, len(msgspec.msgpack.encode(s)) + len(buffer))
            for o, (s, buffer) in sorted(self._held.items())
        ]

    def decided(self, parts: list[Part]) -> None:
        """The step is decided, with what it carries."""
        if self._deltas is not None:
            acks, self._acks = self._acks, []
            with self._trying():
                for origin, upto, buffer in acks:
                    self._deltas.folded(origin, upto, buffer)
        if not self._member.is_apart or self._apart.sums is None:
            return
        size = self._apart.sums.num_sum_bytes
        for part in parts:
            if part.label.startswith("sum/"):
                meta = bytes(raw_bytes(part.scratch[:-size]))
                self._came.append(Came(_snapshot.decode(meta), part.scratch[-size:]))
            elif part.label == "folds":
                told = part.scratch.tolist()
                self._due = [
                    (Actor(told[i], told[i + 1]), told[i + 2], told[i + 3])
                    for i in range(1, 1 + 4 * told[0], 4)
                ]

    def end_step(self) -> None:
        """After the optimizer's step: own delta, folds."""
        member = self._member
        if not member.is_apart:
            return
        came, self._came = self._came, []
        self._apart.end_step(came or self._heard())

    def fold_more(self) -> None:
        """At the same place, while this member waits there: what has come since."""
        if came := self._heard():
            self._apart.fold(came)

    def _heard(self) -> list[Came]:
        """What a cohort of one may fold now."""
        if self._deltas is None or len(self._member.cohort) > 1:
            return []
        chosen = foldable(self._member.frontier, self._deltas.newest)
        return [Came(*self._deltas.take(s.origin)) for s in chosen]


def _key(author: Actor) -> str:
    return f"deltas/{author.rank}"
