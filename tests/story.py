"""Traces told in a few lines: an in-memory TraceSource for tests.

::

    s = Story(ranks=2)
    a, b = s.ranks
    d = a.issue("params/0", version=1)
    a.tell(b)
    b.read("params/0", version=0)
    report = analyze(s.source()).report

Every row advances the clock by a millisecond; ``s.wait(ms)`` advances it further.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from analyzer.arrow_types import arrow_table
from cascade_runtime.vocabulary.policy import load_policy
from cascade_runtime.vocabulary.ports import SourceNote
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta

MS = 1_000_000
START = 1_700_000_000_000_000_000

Dot = tuple[int, int, int]
Ref = tuple[int, int, int]


def _dots(dots: Any) -> list[dict[str, int]] | None:
    if dots is None:
        return None
    return [{"rank": r, "incarnation": i, "counter": c} for r, i, c in dots]


class Teller:
    """One actor; each method adds a row of its own."""

    def __init__(self, story: Story, rank: int, incarnation: int = 0, kind: str = "rank") -> None:
        self.story = story
        self.rank = rank
        self.incarnation = incarnation
        self.kind = kind
        self.host = "host-a"
        self.seq = 0
        self.epoch: int | None = 0
        self.regime: str | None = story.regime
        self.step: int | None = 0
        self.counter = 0
        self.skew_ns = 0

    @property
    def me(self) -> dict[str, int]:
        return {"rank": self.rank, "incarnation": self.incarnation}

    def row(self, table: str, **columns: Any) -> dict[str, Any]:
        now = self.story.tick() + self.skew_ns
        leading = {
            "run_id": self.story.run_id,
            "rank": self.rank,
            "incarnation": self.incarnation,
            "seq": self.seq,
            "group_id": self.story.group,
            "epoch": self.epoch,
            "regime": self.regime,
            "step": self.step,
            "wall_ns": now,
            "mono_ns": now - START,
        }
        self.seq += 1
        row = leading | columns
        self.story.rows.append((table, row))
        return row

    def start(self, **columns: Any) -> dict[str, Any]:
        return self.row(
            "actors", name=f"{self.kind} {self.rank}", kind=self.kind, host=self.host, **columns
        )

    def begin(self, step: int) -> None:
        self.step = step
        self.row("steps", phase="begin")

    def end(self) -> None:
        self.row("steps", phase="end", num_samples=8)

    def enter(
        self, comm: str = "c0", cseq: int = 0, op: str = "all_reduce", **columns: Any
    ) -> dict[str, Any]:
        columns.setdefault("label", "bucket/0")
        columns.setdefault("dtype", "float32")
        columns.setdefault("num_bytes", 0 if op == "barrier" else 1024)
        row = self.row("collectives", comm_id=comm, cseq=cseq, op=op, completed=False, **columns)
        row.setdefault("enter_ns", row["wall_ns"])
        return row

    def done(self, row: dict[str, Any], done_seq: int | None = None) -> None:
        row["done_seq"] = self.seq if done_seq is None else done_seq
        row["complete_ns"] = self.story.tick() + self.skew_ns
        row["completed"] = True

    def send(self, to: Teller, comm: str = "control") -> dict[str, Any]:
        channel = (comm, self.rank, self.incarnation, to.rank, to.incarnation)
        number = self.story.channels.get(channel, 0)
        self.story.channels[channel] = number + 1
        return self.row(
            "messages", comm_id=comm, peer=to.rank, peer_incarnation=to.incarnation,
            channel_seq=number, direction="send", num_bytes=64,
        )  # fmt: skip

    def recv(self, sent: dict[str, Any]) -> dict[str, Any]:
        return self.row(
            "messages", comm_id=sent["comm_id"], peer=sent["rank"],
            peer_incarnation=sent["incarnation"], channel_seq=sent["channel_seq"],
            direction="recv", num_bytes=64,
        )  # fmt: skip

    def tell(self, *others: Teller) -> None:
        """A message to each, received at once."""
        for other in others:
            other.recv(self.send(other))

    def issue(
        self,
        obj: str = "params/0",
        version: int | None = None,
        dot: Dot | None = None,
        deps: Any = (),
        **columns: Any,
    ) -> Dot:
        if dot is None:
            self.counter += 1
            dot = (self.rank, self.incarnation, self.counter)
        self._update("issued", obj, dot, version, deps, columns)
        return dot

    def apply(
        self,
        dot: Dot,
        obj: str = "params/0",
        version: int | None = None,
        deps: Any = (),
        **columns: Any,
    ) -> dict[str, Any]:
        return self._update("applied", obj, dot, version, deps, columns)

    def discard(self, dot: Dot, obj: str = "params/0", **columns: Any) -> dict[str, Any]:
        return self._update("discarded", obj, dot, None, (), columns)

    def _update(
        self,
        action: str,
        obj: str,
        dot: Dot,
        version: int | None,
        deps: Any,
        columns: dict[str, Any],
    ) -> dict[str, Any]:
        return self.row(
            "updates", action=action, object=obj, origin_rank=dot[0], origin_incarnation=dot[1],
            counter=dot[2], version=version, deps=_dots(deps), **columns,
        )  # fmt: skip

    def read(
        self,
        obj: str = "params/0",
        version: int | None = None,
        dot: Dot | None = None,
        frontier: Any = None,
        use: str = "forward",
        **columns: Any,
    ) -> dict[str, Any]:
        rank, incarnation, counter = dot or (None, None, None)
        return self.row(
            "reads", object=obj, use=use, origin_rank=rank, origin_incarnation=incarnation,
            counter=counter, version=version, frontier=_dots(frontier), **columns,
        )  # fmt: skip

    def declare(
        self,
        obj: str = "params/0",
        update_kind: str = "assign",
        kind: str = "shard",
        **columns: Any,
    ) -> None:
        self.row("objects", object=obj, kind=kind, update_kind=update_kind, **columns)

    def join(self, comm: str, members: list[Teller], **columns: Any) -> None:
        self.row("groups", comm_id=comm, members=[m.me for m in members], ordinal=0, **columns)

    def digest(
        self, digest: str, obj: str = "params/0", version: int | None = None, frontier: Any = None
    ) -> dict[str, Any]:
        return self.row(
            "digests", object=obj, digest=digest, version=version, frontier=_dots(frontier)
        )

    def open_debt(self, debt_id: str, relaxed: str = "STRONG", **columns: Any) -> dict[str, Any]:
        columns.setdefault("new_epoch", self.epoch)
        columns["in_flight"] = _dots(columns.get("in_flight", ()))
        return self.row("debt", action="opened", debt_id=debt_id, relaxed=relaxed, **columns)

    def settle(
        self,
        debt_id: str,
        resolution: str | None = "applied",
        action: str = "settled",
        **columns: Any,
    ) -> dict[str, Any]:
        for lists in ("frontier", "resolved"):
            columns[lists] = _dots(columns.get(lists))
        return self.row("debt", action=action, debt_id=debt_id, resolution=resolution, **columns)

    def health(
        self, signal: str = "dead", subject: Teller | None = None, fault: str | None = None
    ) -> dict[str, Any]:
        whom = subject or self
        return self.row(
            "health", detector="test", signal=signal, subject_rank=whom.rank,
            subject_incarnation=whom.incarnation, fault=fault,
        )  # fmt: skip

    def decide(
        self, fault: str, from_regime: str, to_regime: str, evidence: Any = ()
    ) -> dict[str, Any]:
        return self.row(
            "decisions", fault=fault, from_regime=from_regime, to_regime=to_regime,
            changed=from_regime != to_regime, reason="by the table", evidence=refs(evidence),
        )  # fmt: skip

    def walk_row(
        self, phase: str, to: str, members: list[Teller], **columns: Any
    ) -> dict[str, Any]:
        columns.setdefault("from_regime", self.regime)
        columns.setdefault("new_epoch", (self.epoch or 0) + 1)
        columns["evidence"] = refs(columns.get("evidence", ()))
        listed = [m.me for m in members]
        columns.setdefault("cohorts", [listed])
        proposer = columns.pop("proposer", None)
        if phase == "committed":
            self.epoch, self.regime = columns["new_epoch"], to
        return self.row(
            "transitions", phase=phase, to_regime=to, members=listed,
            proposer=proposer.me if proposer else None, **columns,
        )  # fmt: skip

    def view(
        self, members: list[Teller], joined: Any = (), departed: Any = (), reason: str = "failed"
    ) -> dict[str, Any]:
        return self.row(
            "membership", members=[m.me for m in members], joined=[m.me for m in joined],
            departed=[m.me for m in departed], reason=reason,
        )  # fmt: skip

    def checkpoint(
        self,
        action: str,
        checkpoint_id: str = "k1",
        frontier: Any = (),
        scope: str = "group",
        durable: bool = True,
        **columns: Any,
    ) -> dict[str, Any]:
        return self.row(
            "checkpoints", action=action, checkpoint_id=checkpoint_id, durable=durable,
            scope=scope, frontier=_dots(frontier), **columns,
        )  # fmt: skip

    def gap(
        self,
        first: int | None,
        last: int | None,
        tables: list[str] | None = None,
        reason: str = "dropped",
    ) -> dict[str, Any]:
        return self.row("gaps", first_seq=first, last_seq=last, tables=tables, reason=reason)

    def lose(self, count: int = 1) -> tuple[int, int]:
        """Skip numbers, as if events were lost; (first, last)."""
        self.seq += count
        return self.seq - count, self.seq - 1


def refs(rows: Any) -> list[dict[str, int]]:
    """Rows (or (rank, incarnation, seq)) as event_refs."""
    found = []
    for row in rows:
        rank, inc, seq = (
            row if isinstance(row, tuple) else (row["rank"], row["incarnation"], row["seq"])
        )
        found.append({"rank": rank, "incarnation": inc, "seq": seq})
    return found


class Story:
    """Actors, a clock and the rows they left."""

    def __init__(
        self, ranks: int = 2, agents: int = 0, regime: str = "STRONG", start: bool = True
    ) -> None:
        self.run_id = "run-1"
        self.group = "world"
        self.regime = regime
        self.now = START
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.channels: dict[Any, int] = {}
        self.ranks = [Teller(self, rank) for rank in range(ranks)]
        self.agents = [Teller(self, ranks + i, kind="agent") for i in range(agents)]
        self.cseq: dict[str, int] = {}
        self.step_ns = MS
        if start:
            for teller in (*self.ranks, *self.agents):
                teller.start()
                teller.view(self.ranks, joined=self.ranks, reason="started")

    def tick(self) -> int:
        self.now += self.step_ns
        return self.now

    def wait(self, ms: float) -> None:
        self.now += int(ms * MS)

    def all_reduce(
        self, *members: Teller, comm: str = "c0", op: str = "all_reduce", **columns: Any
    ) -> list[dict[str, Any]]:
        """Everyone enters, then everyone completes."""
        cseq = self.cseq.get(comm, 0)
        self.cseq[comm] = cseq + 1
        whole = members or tuple(self.ranks)
        rows = [m.enter(comm, cseq, op, **columns) for m in whole]
        for member, row in zip(whole, rows, strict=True):
            member.done(row)
        return rows

    def walk(
        self,
        to: str,
        fault: str | None,
        members: list[Teller] | None = None,
        leader: Teller | None = None,
        evidence: Any = None,
        departed: Any = (),
        reason: str = "failed",
        debts: bool = True,
        cohorts: Any = None,
        leaving: Any = (),
        silent: Any = (),
    ) -> None:
        """A whole walk as the runtime records it: evidence, proposal, acks, commits, membership.

        ``silent`` members are in the view and write nothing of it.
        """
        boss = leader or (self.agents[0] if self.agents else self.ranks[0])
        view = self.ranks if members is None else members
        others = [m for m in (*view, *leaving, *self.agents) if m is not boss and m not in silent]
        came, epoch = boss.regime, (boss.epoch or 0) + 1
        assert came is not None
        if fault and evidence is None:
            signal = "calm" if fault == "STABLE_SYNC" else "dead"
            evidence = [boss.health(signal, (departed or [boss])[0], fault)]
        if fault:
            boss.decide(fault, came, to, evidence)
        common = {"fault": fault, "from_regime": came, "new_epoch": epoch, "proposer": boss}
        if cohorts is not None:
            common["cohorts"] = [[m.me for m in cohort] for cohort in cohorts]
        boss.walk_row("proposed", to, view, evidence=evidence or (), **common)
        for member in others:
            boss.tell(member)
            member.walk_row("acknowledged", to, view, **common)
            member.tell(boss)
        if boss in view:
            boss.walk_row("acknowledged", to, view, **common)
        levels = {"EVENTUAL": 1, "CAUSAL": 2, "STRONG": 3}
        boss.walk_row("committed", to, view, evidence=evidence or (), **common)
        if departed:
            boss.view(view, departed=departed, reason=reason)
        for member in others:
            boss.tell(member)
            member.walk_row("committed", to, view, **common)
            if departed:
                member.view(view, departed=departed, reason=reason)
        if debts and levels[to] < levels[came]:
            for level in ("STRONG", "CAUSAL"):
                if levels[to] < levels[level] <= levels[came]:
                    view[0].open_debt(f"{epoch}/{level}/{view[0].rank}", level, new_epoch=epoch)

    def settle_all(self) -> None:
        """The lowest rank settles every open debt and tells the agents."""
        closed = {r["debt_id"] for t, r in self.rows if t == "debt" and r["action"] != "opened"}
        for table, row in list(self.rows):
            if table == "debt" and row["action"] == "opened" and row["debt_id"] not in closed:
                owner = next(m for m in self.ranks if m.rank == row["rank"])
                owner.settle(row["debt_id"])
                owner.tell(*self.agents)

    def source(
        self,
        clean: bool = True,
        without: Any = (),
        recorded: Any = None,
        world_size: int | None = None,
        shuffle: int | None = None,
        notes: Any = (),
        mode: str = "enforce",
        policy: str | None = "default",
    ) -> MemorySource:
        """The told rows as a trace; ``without``: ranks whose file is missing."""
        rows = [(t, r) for t, r in self.rows if r["rank"] not in without]
        if shuffle is not None:
            random.Random(shuffle).shuffle(rows)
        meta = TraceMeta(
            schema_version=1, run_id=self.run_id, name="story",
            world_size=len(self.ranks) + len(self.agents) if world_size is None else world_size,
            mode=mode,  # type: ignore[arg-type]
            policy=load_policy(policy).table() if policy else None,
            created_ns=START, ended_ns=self.now if clean else None, clean_end=clean or None,
            recorded_tables=list(EVENT_TABLES) if recorded is None else list(recorded),
            tool_versions={},
        )  # fmt: skip
        return MemorySource(meta, rows, chunked=shuffle is not None, notes=list(notes))


class MemorySource:
    """A TraceSource over rows in memory."""

    def __init__(
        self,
        meta: TraceMeta,
        rows: list[tuple[str, dict[str, Any]]],
        chunked: bool = False,
        notes: list[SourceNote] | None = None,
    ) -> None:
        self.meta = meta
        self.inputs = ["story"]
        self.notes = notes or []
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._chunked = chunked
        for table, row in rows:
            self._rows.setdefault(table, []).append(row)

    def table(self, name: str) -> Any:
        rows = self._rows.get(name, [])
        if not self._chunked or len(rows) < 2:
            return arrow_table(name, rows)
        # As if the table came from three files.
        third = len(rows) // 3 + 1
        return pa.concat_tables(
            [arrow_table(name, rows[i : i + third]) for i in range(0, len(rows), third)]
        )
