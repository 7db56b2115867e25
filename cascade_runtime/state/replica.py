"""One process's copy of all keys: what is applied, what waits for its causes, what others may lack.

No sockets, no rows, no waiting here. In ``causal`` form an update is applied once everything that
its author had applied before it is applied here (Birman, Schiper and Stephenson 1991); otherwise as it
arrives. Of two updates of one key the one with the greater (version, author) stands, whatever order
they come in: a version is one more than the greatest that its author had seen, so it grows along
happens-before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.scalars import Counter

TAIL = 1024
"""Updates kept for those who lack some; who lacks more gets a stand."""

TAIL_BYTES = 8 << 20
MOST_WAITING = 4096
"""Updates held until their causes come; what comes beyond is let go, and asked for again."""


class Update(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One put.

    Attributes:
        author: who put it.
        counter: its dot's; an author's count from 1 over all keys, without holes.
        state: name of the State.
        key: what was put.
        version: of the key, from 1.
        deps: nearest updates of other authors that had been applied where it was put.
        value: MessagePack of the value.
    """

    author: Actor
    counter: Counter
    state: str
    key: str
    version: Counter
    deps: list[Dot]
    value: bytes

    @property
    def dot(self) -> Dot:
        """Its name."""
        return Dot(self.author.rank, self.author.incarnation, self.counter)

    @property
    def rank_among(self) -> tuple[int, Actor]:
        """By this the greatest of a key's updates stands."""
        return self.version, self.author


class Stand(msgspec.Struct, frozen=True, array_like=True):
    """All keys at one moment: what a newcomer takes over instead of updates that nobody keeps.

    Attributes:
        checkpoint_id: its name in the trace.
        clock: every update that it covers.
        entries: of each key the update that stands.
    """

    checkpoint_id: str
    clock: list[Dot]
    entries: list[Update]


class Replica:
    """All keys of a job, as one process knows them.

    Args:
        causal: hold an update back until its causes are applied.
    """

    def __init__(self, *, causal: bool) -> None:
        self.causal = causal
        self._entries: dict[tuple[str, str], Update] = {}
        self._upto: dict[Actor, int] = {}
        """Of each author all up to here are applied."""
        self._beyond: set[Dot] = set()
        """Applied out of turn (never in causal form)."""
        self._waiting: dict[Dot, Update] = {}
        self._held_by: dict[Dot, list[Dot]] = {}
        """Of what waits: under one of the updates that it waits for."""
        self._fresh: dict[Actor, tuple[int, list[Dot]]] = {}
        """Last applied of each other author since the own last put: its counter and its deps."""
        self._tail: deque[Update] = deque()
        self._tail_bytes = 0
        self._gone: dict[Actor, int] = {}
        """Of each author: updates up to here are not in the tail."""
        self.num_bytes = 0
        """Of all values that stand."""

    # ---- looking ---------------------------------------------------------------------------------

    def entry(self, state: str, key: str) -> Update | None:
        """The update that stands; None before the first put is applied here."""
        return self._entries.get((state, key))

    def entries(self, state: str) -> dict[str, Update]:
        """The updates that stand of one State, by key."""
        return {key: u for (name, key), u in sorted(self._entries.items()) if name == state}

    @property
    def num_keys(self) -> int:
        """How many keys have been put, over all States."""
        return len(self._entries)

    def clock(self) -> list[Dot]:
        """Of each author the last update up to which all are applied."""
        return [Dot(a.rank, a.incarnation, n) for a, n in sorted(self._upto.items())]

    @property
    def has_waiting(self) -> bool:
        """Something is held back."""
        return bool(self._waiting)

    def waiting(self) -> list[tuple[Update, list[Dot]]]:
        """What is held back, each with the updates that it waits for."""
        return [(u, self._missing(u)) for _, u in sorted(self._waiting.items())]

    # ---- putting and receiving -------------------------------------------------------------------

    def put(self, author: Actor, state: str, key: str, value: bytes) -> Update:
        """Make the author's next update and apply it."""
        stands = self.entry(state, key)
        version = stands.version + 1 if stands is not None else 1
        update = Update(
            author, self._upto.get(author, 0) + 1, state, key, version, self._nearest(), value
        )
        self._apply(update)
        self._fresh.clear()
        return update

    def receive(self, update: Update) -> list[Update]:
        """Take in an update; returns what is applied now, in order, itself perhaps among it."""
        if self._has(update.dot) or update.dot in self._waiting:
            return []
        if not self.causal:
            self._apply(update)
            return [update]
        if missing := self._missing(update):
            if len(self._waiting) < MOST_WAITING:
                self._waiting[update.dot] = update
                self._held_by.setdefault(missing[0], []).append(update.dot)
            return []
        return self._apply_all([update])

    # ---- those who lack something ----------------------------------------------------------------

    def since(self, clock: Iterable[Dot]) -> list[Update] | None:
        """What somebody with this clock lacks, causes first; None when it is not kept any more."""
        has = {d.actor: d.counter for d in clock}
        if any(has.get(author, 0) < gone for author, gone in self._gone.items()):
            return None
        return [u for u in self._tail if u.counter > has.get(u.author, 0)]

    def stand(self, checkpoint_id: str) -> Stand:
        """All of it."""
        return Stand(checkpoint_id, self.clock(), [u for _, u in sorted(self._entries.items())])

    def take(self, stand: Stand) -> list[Update] | None:
        """Take over what another one holds beyond this; None when that is nothing.

        Returns:
            What had waited for it and is applied now, in order.
        """
        news = [d for d in stand.clock if d.counter > self._upto.get(d.actor, 0)]
        if not news:
            return None
        for dot in news:
            self._upto[dot.actor] = dot.counter
            self._gone[dot.actor] = dot.counter
            self._fresh[dot.actor] = dot.counter, []
        for update in stand.entries:
            self._merge(update)
        self._beyond = {d for d in self._beyond if not self._has_in_turn(d)}
        left = [u for d, u in sorted(self._waiting.items()) if not self._has_in_turn(d)]
        self._waiting, self._held_by = {}, {}
        return [applied for update in left for applied in self.receive(update)]

    # ---- inside ----------------------------------------------------------------------------------

    def _has_in_turn(self, dot: Dot) -> bool:
        return dot.counter <= self._upto.get(dot.actor, 0)

    def _has(self, dot: Dot) -> bool:
        return self._has_in_turn(dot) or dot in self._beyond

    def _missing(self, update: Update) -> list[Dot]:
        """The updates that it waits for: its author's one before it, and its deps."""
        needs = list(update.deps)
        if update.counter > 1:
            needs.append(Dot(update.author.rank, update.author.incarnation, update.counter - 1))
        return [d for d in needs if not self._has(d)]

    def _apply_all(self, ready: list[Update]) -> list[Update]:
        """Apply these, and what had waited for them alone."""
        applied = []
        queue = deque(ready)
        while queue:
            update = queue.popleft()
            self._apply(update)
            applied.append(update)
            for dot in self._held_by.pop(update.dot, []):
                if missing := self._missing(self._waiting[dot]):
                    self._held_by.setdefault(missing[0], []).append(dot)
                else:
                    queue.append(self._waiting.pop(dot))
        return applied

    def _apply(self, update: Update) -> None:
        author = update.author
        self._beyond.add(update.dot)
        following = Dot(author.rank, author.incarnation, self._upto.get(author, 0) + 1)
        while following in self._beyond:
            self._beyond.remove(following)
            self._upto[author] = following.counter
            following = Dot(author.rank, author.incarnation, following.counter + 1)
        self._merge(update)
        self._note_fresh(update)
        self._tail.append(update)
        self._tail_bytes += len(update.value)
        while len(self._tail) > TAIL or self._tail_bytes > TAIL_BYTES:
            old = self._tail.popleft()
            self._tail_bytes -= len(old.value)
            self._gone[old.author] = max(self._gone.get(old.author, 0), old.counter)

    def _merge(self, update: Update) -> None:
        place = (update.state, update.key)
        stands = self._entries.get(place)
        if stands is None or stands.rank_among < update.rank_among:
            self.num_bytes += len(update.value) - (len(stands.value) if stands is not None else 0)
            self._entries[place] = update

    def _note_fresh(self, update: Update) -> None:
        if self._fresh.get(update.author, (0, []))[0] < update.counter:
            self._fresh[update.author] = update.counter, update.deps

    def _nearest(self) -> list[Dot]:
        """Last updates of others since the own last put, without those that another one names."""
        named: dict[Actor, int] = {}
        for _, deps in self._fresh.values():
            for dot in deps:
                named[dot.actor] = max(named.get(dot.actor, 0), dot.counter)
        return sorted(
            Dot(author.rank, author.incarnation, counter)
            for author, (counter, _) in self._fresh.items()
            if named.get(author, 0) < counter
        )
