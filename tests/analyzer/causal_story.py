"""Random traces of updates, reads, loads and debts: mostly as a run would be, and often not."""

from __future__ import annotations

import random
from typing import Any

from tests.story import Dot, Story, Teller

ASSIGNED = ("a0", "a1", "plan")
DELTA = ("d0", "d1")
KEPT = "d1"
"""Not held by the last rank."""


class CausalStory:
    """Ranks that act at random; nothing is read or applied before it is issued."""

    def __init__(self, seed: int, ranks: int = 3, actions: int = 55) -> None:
        self.rng = random.Random(seed)
        self.story = Story(ranks=ranks, regime="CAUSAL")
        self.tidy = self.rng.choice([0.3, 0.75])
        """How often the oldest comes first, and a cause is listed."""
        self.live = list(self.story.ranks)
        self.seen: dict[Teller, dict[Dot, str]] = {t: {} for t in self.live}
        """What each has applied or issued, and of which object."""
        self.issued: list[tuple[Dot, str, int | None]] = []
        self.versions = dict.fromkeys(ASSIGNED, 0)
        self.flying: list[dict[str, Any]] = []
        self.saved: list[tuple[str, list[Dot], str]] = []
        self.debts: list[str] = []
        self._declare(ranks)
        for _ in range(actions):
            one = self.rng.choice(self.live)
            one.regime = self.rng.choice(["CAUSAL"] * 6 + ["STRONG", "EVENTUAL", None])
            self._act(one)

    def _declare(self, ranks: int) -> None:
        rng, boss = self.rng, self.story.ranks[0]
        for obj in ASSIGNED:
            bound = rng.choice([None, 0, 1, 2])
            boss.declare(obj, kind="plan" if obj == "plan" else "state", staleness_bound=bound)
        for obj in DELTA:
            holders = list(range(ranks - 1)) if obj == KEPT else None
            bound = rng.choice([None, 1, 2])
            boss.declare(obj, "delta", holders=holders, staleness_bound=bound)

    def _act(self, one: Teller) -> None:
        rng = self.rng
        what = rng.choices(
            [self._issue, self._apply, self._read, self._fold, self._discard, self._send,
             self._receive, self._save, self._load, self._debt, self._restart],
            [9, 14, 10, 7, 1, 6, 7, 2, 2, 3, 0.7],
        )[0]  # fmt: skip
        what(one)

    def _clock(self, one: Teller) -> dict[tuple[int, int], int]:
        clock: dict[tuple[int, int], int] = {}
        for rank, incarnation, counter in self.seen[one]:
            place = (rank, incarnation)
            clock[place] = max(clock.get(place, 0), counter)
        return clock

    def _issue(self, one: Teller) -> None:
        rng = self.rng
        obj = rng.choice([*ASSIGNED, "plan", *DELTA, *DELTA])
        version = None
        if obj in ASSIGNED and rng.random() < 0.6:
            self.versions[obj] += 1
            version = self.versions[obj]
        others = [
            (r, i, c)
            for (r, i), c in self._clock(one).items()
            if (r, i) != (one.rank, one.incarnation)
        ]
        deps = [d for d in others if rng.random() < self.tidy]
        if self.issued and rng.random() < 0.1:
            deps.append(rng.choice(self.issued)[0])
        if rng.random() < 0.05:
            deps.append((7, 0, 1))  # nobody's
        dot = one.issue(obj, version, deps=deps)
        self.seen[one][dot] = obj
        self.issued.append((dot, obj, version))

    def _apply(self, one: Teller) -> None:
        missing = [(d, o) for d, o, _ in self.issued if d not in self.seen[one]]
        if not missing:
            return
        # Mostly the oldest that is missing: so causes tend to come first.
        at = 0 if self.rng.random() < self.tidy else self.rng.randrange(len(missing))
        dot, obj = missing[at]
        one.apply(dot, obj)
        self.seen[one][dot] = obj

    def _read(self, one: Teller) -> None:
        rng = self.rng
        obj = rng.choice([*ASSIGNED, "plan"])
        use = rng.choice(["forward", "act", "act"])
        of = [(d, v) for d, o, v in self.issued if o == obj]
        if not of or rng.random() < 0.1:
            one.read(obj, use=use, version=rng.choice([None, 0]))
            return
        dot, version = of[-1] if rng.random() < 0.5 else rng.choice(of)
        kind = rng.random()
        if version is not None and kind < 0.3:
            one.read(obj, version, use=use)
        else:
            one.read(obj, version if kind < 0.7 else None, dot, use=use)

    def _fold(self, one: Teller) -> None:
        clock = self._clock(one)
        frontier = []
        for (rank, incarnation), counter in clock.items():
            less = self.rng.choice([0, 0, 0, 1, 2])
            if counter > less:
                frontier.append((rank, incarnation, counter - less))
        one.read(self.rng.choice(DELTA), frontier=frontier)

    def _discard(self, one: Teller) -> None:
        if self.issued:
            dot, obj, _ = self.rng.choice(self.issued)
            one.discard(dot, obj)
            self.seen[one][dot] = obj

    def _send(self, one: Teller) -> None:
        peer = self.rng.choice([t for t in self.live if t is not one])
        self.flying.append(one.send(peer))

    def _receive(self, one: Teller) -> None:
        mine = [
            m
            for m in self.flying
            if (m["peer"], m["peer_incarnation"]) == (one.rank, one.incarnation)
        ]
        if mine:
            sent = self.rng.choice(mine)
            self.flying.remove(sent)
            one.recv(sent)

    def _save(self, one: Teller) -> None:
        name, scope = f"k{len(self.saved)}", self.rng.choice(["self", "group"])
        frontier = [(r, i, c) for (r, i), c in self._clock(one).items()]
        one.checkpoint("saved", name, frontier, scope)
        self.saved.append((name, frontier, scope))

    def _load(self, one: Teller) -> None:
        if self.saved:
            name, frontier, scope = self.rng.choice(self.saved)
            action = self.rng.choice(["loaded", "loaded", "received"])
            one.checkpoint(action, name, frontier, scope)

    def _restart(self, one: Teller) -> None:
        """It is lost, and its successor begins from a checkpoint."""
        if not self.saved or one.incarnation:
            return
        again = Teller(self.story, one.rank, incarnation=1)
        again.start()
        self.live[self.live.index(one)] = again
        name, frontier, scope = self.rng.choice(self.saved)
        again.checkpoint("loaded", name, frontier, scope)
        self.seen[again] = {
            dot: obj
            for dot, obj, _ in self.issued
            if any(dot[:2] == d[:2] and dot[2] <= d[2] for d in frontier)
        }

    def _debt(self, one: Teller) -> None:
        rng = self.rng
        if not self.debts or rng.random() < 0.4:
            name = f"debt{len(self.debts)}"
            flying = [d for d, _, _ in rng.sample(self.issued, min(2, len(self.issued)))]
            one.open_debt(name, in_flight=flying, object=rng.choice([None, "d0", "a0"]))
            self.debts.append(name)
            return
        frontier = [(r, i, c - rng.choice([0, 0, 1])) for (r, i), c in self._clock(one).items()]
        resolved = [d for d, _, _ in rng.sample(self.issued, min(3, len(self.issued)))]
        action = rng.choice(["settled"] * 4 + ["written_off"])
        one.settle(
            rng.choice(self.debts), action=action, frontier=frontier,
            resolved=rng.choice([resolved, [], None]),
        )  # fmt: skip


def causal_story(seed: int, ranks: int = 3, actions: int = 55) -> Story:
    """One of them."""
    return CausalStory(seed, ranks, actions).story
