"""Running sums on their way between the authors of cohorts, over ZeroMQ, never waiting.

Each author listens at an address of its own and tells its own sum to every other author. A snapshot is
the newest sum there is; the next one goes out when the receiver has said that the last is folded, so at
most one is under way for each pair, and a receiver that stands still costs its sender one and no more.

Nothing here blocks and no thread is ours: ZeroMQ has one that moves bytes. ``pump`` is called wherever
the job is in our hands anyway. An object of this class lives as long as its epoch: a walk levels all
members, so nothing that was under way is missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import xxhash
import zmq

from cascade_runtime.delivery import Snapshot, Step
from cascade_runtime.rank.delta_frames import (
    DROPPED_A_PUMP,
    MESSAGES_A_PUMP,
    PIECE_BYTES,
    Again,
    AnyHead,
    Begin,
    Folded,
    NotBelieved,
    Piece,
    Traffic,
    encode,
    read_head,
)
from cascade_runtime.rank.inbound import Arrived, Inbound
from cascade_runtime.rank.outbound import Message, Outbound, new_socket
from cascade_runtime.vocabulary.identity import Actor, Dot


class _Peer(NamedTuple):
    """The author of another cohort."""

    inbound: Inbound
    outbound: Outbound


class Deltas:
    """One author's end of the channel, for one epoch.

    Args:
        me: this author.
        epoch: of the view; frames of others are dropped.
        token: of the run; frames with another are dropped.
        num_bytes: of a running sum, at least 1.
        payload: the own running sum as it is; stays as it is until ``stepped`` is called.
        host: name or address to listen at.
        stride: dots of one step, which is the number of objects.
        bound: steps that may be issued beyond what every other cohort has folded; None: any number.
        start: counter of the own last dot that all members have folded.
        on_message: told of every message sent and received.
    """

    def __init__(
        self,
        me: Actor,
        epoch: int,
        token: bytes,
        num_bytes: int,
        payload: Callable[[], memoryview],
        *,
        host: str = "127.0.0.1",
        stride: int = 1,
        bound: int | None = 16,
        start: int = 0,
        on_message: Callable[[Traffic], None] = lambda traffic: None,
    ) -> None:
        self.me = me
        self.dropped: Counter[str] = Counter()
        """Frames that were not believed, by what was wrong."""
        self._epoch, self._token = epoch, token
        self._num_bytes, self._payload = num_bytes, payload
        self._stride, self._bound = stride, bound
        self._start = self._issued = start
        self._on_message = on_message
        self._steps: list[Step] = []
        self._needs: list[Dot] = []
        self._digest = b""
        self._peers: dict[Actor, _Peer] = {}
        self._actors: frozenset[Actor] = frozenset()
        self._context = zmq.Context(io_threads=1)
        self._routes: dict[Actor, bytes] = {}
        self._ear = new_socket(self._context, zmq.ROUTER, num_bytes, PIECE_BYTES)
        self._ear.set(zmq.ROUTER_MANDATORY, 1)
        self._ear.bind(f"tcp://{host}:*")
        self.address = self._ear.get_string(zmq.LAST_ENDPOINT)
        """Where the others connect to."""

    # ---- peers -----------------------------------------------------------------------------------

    def connect(self, addresses: Mapping[Actor, str]) -> None:
        """The authors of the other cohorts and where they listen.

        One that is not named any more is forgotten; one with another address is told anew.
        """
        for actor in [a for a in self._peers if a not in addresses]:
            self._peers.pop(actor).outbound.close()
        for actor, address in addresses.items():
            if actor not in self._peers:
                outbound = Outbound(self._context, self._num_bytes, self._start)
                self._peers[actor] = _Peer(Inbound(self._num_bytes), outbound)
            if self._peers[actor].outbound.address != address:
                self._peers[actor].outbound.connect(address)
        self._actors = frozenset(self._peers)

    @property
    def fds(self) -> list[int]:
        """Readable when there may be something to pump (edges: pump first, then wait)."""
        return [int(socket.get(zmq.FD)) for socket in (self._ear, *self._sockets())]

    def _sockets(self) -> list[zmq.Socket[bytes]]:
        return [s for p in self._peers.values() if (s := p.outbound.socket) is not None]

    # ---- the own sum -----------------------------------------------------------------------------

    def issued(self, upto: int) -> None:
        """The own dots up to this one are issued: from now on they are in flight."""
        self._issued = max(self._issued, upto)

    def stepped(self, step: Step, needs: list[Dot]) -> None:
        """``payload`` now holds this step; ``needs`` is the clock of other origins when it was issued."""
        self.issued(step.upto)
        self._steps.append(step)
        self._needs = needs
        self._digest = b""
        self.pump()

    def may_issue(self, upto: int) -> bool:
        """Whether a step whose last dot is ``upto`` keeps within the staleness bound."""
        return not self.waits_for(upto)

    def waits_for(self, upto: int) -> list[Actor]:
        """Whose fold has to be heard of before a step that ends with ``upto`` is issued."""
        if self._bound is None:
            return []
        least = upto - self._bound * self._stride
        return sorted(a for a, p in self._peers.items() if p.outbound.acked < least)

    @property
    def acked(self) -> dict[Actor, int]:
        """Of each peer, the own counter up to which it has folded."""
        return {a: p.outbound.acked for a, p in self._peers.items()}

    @property
    def in_flight(self) -> list[Dot]:
        """Own dots that are issued and that some peer has not said to have folded."""
        least = min(self.acked.values(), default=self._issued)
        counters = range(least + 1, self._issued + 1)
        return [Dot(self.me.rank, self.me.incarnation, c) for c in counters]

    # ---- other origins' sums ---------------------------------------------------------------------

    @property
    def newest(self) -> list[Snapshot]:
        """What has arrived whole and was not taken yet; of each origin at most one."""
        waiting = [p.inbound.arrived for p in self._peers.values()]
        return [arrived[0] for arrived in waiting if arrived is not None]

    def take(self, origin: Actor) -> Arrived:
        """The newest snapshot of ``origin`` with its bytes, to be folded."""
        inbound = self._peers[origin].inbound
        assert inbound.arrived is not None
        arrived, inbound.arrived = inbound.arrived, None
        return arrived

    def folded(self, origin: Actor, upto: int, buffer: bytearray | None = None) -> None:
        """The parameters hold the origin's dots up to this one; the taken buffer may be given back."""
        peer = self._peers.get(origin)
        if peer is None:
            return
        inbound = peer.inbound
        inbound.folded = inbound.owed[Folded] = max(inbound.folded, upto)
        if buffer is not None:
            inbound.give_back(buffer)
        self.pump()

    # ---- moving ----------------------------------------------------------------------------------

    def pump(self) -> None:
        """Take what came, say what is owed, tell the newest; returns at once."""
        for peer in self._peers.values():
            peer.outbound.look()
        sockets, dropped = self._sockets(), self.dropped.total()
        for _ in range(MESSAGES_A_PUMP):
            heard = self._hear(self._ear, routed=True)
            for socket in sockets:
                heard |= self._hear(socket, routed=False)
            if not heard or self.dropped.total() - dropped >= DROPPED_A_PUMP:
                break
        for actor, peer in self._peers.items():
            self._say_owed(actor, peer)
            if self._steps and self._steps[-1].upto > peer.outbound.acked and peer.outbound.is_free:
                self._tell(actor, peer.outbound)

    def close(self) -> None:
        """Let go at once, whatever was under way."""
        for peer in self._peers.values():
            peer.outbound.close()
        self._peers.clear()
        self._context.destroy(linger=0)

    def _tell(self, actor: Actor, outbound: Outbound) -> None:
        """The newest own sum to one peer."""
        data = self._payload()
        if not self._digest:
            self._digest = xxhash.xxh3_128_digest(data)
        steps = [s for s in self._steps if s.upto > outbound.acked]
        snapshot = Snapshot(self.me, steps[-1].upto, self._needs, steps)
        number = outbound.next_number()
        common = (self._token, self._epoch, self.me, number)

        def messages() -> Iterator[Message]:
            yield (encode(Begin(*common, snapshot, self._num_bytes, self._digest)),)
            for offset in range(0, self._num_bytes, PIECE_BYTES):
                yield encode(Piece(*common, offset)), data[offset : offset + PIECE_BYTES]

        if outbound.tell(number, snapshot.upto, messages()):
            self._on_message(Traffic("send", actor, number, self._num_bytes))

    def _say_owed(self, actor: Actor, peer: _Peer) -> None:
        owed = peer.inbound.owed
        for kind, value in list(owed.items()):
            if actor not in self._routes:
                return
            number = peer.outbound.next_number()
            head = encode(kind(self._token, self._epoch, self.me, number, value))
            try:
                self._ear.send_multipart([self._routes[actor], head], zmq.NOBLOCK)
            except zmq.Again:
                return
            except zmq.ZMQError:  # its connection is gone: it begins anew, and is told then
                del self._routes[actor]
                return
            del owed[kind]
            self._on_message(Traffic("send", actor, number, len(head)))

    # ---- hearing ---------------------------------------------------------------------------------

    def _hear(self, socket: zmq.Socket[bytes], *, routed: bool) -> bool:
        """Take one message, if there is one."""
        try:
            route = socket.recv(zmq.NOBLOCK) if routed else b""
            data = socket.recv(zmq.NOBLOCK)
        except zmq.Again:
            return False
        try:
            head = read_head(memoryview(data), self._token, self._epoch, self._actors)
            if routed:
                self._heard_snapshot(head, route)
            else:
                self._heard_answer(head, len(data))
        except NotBelieved as error:
            self.dropped[str(error)] += 1
        while socket.get(zmq.RCVMORE):
            socket.recv_into(bytearray(), flags=zmq.NOBLOCK)
        return True

    def _heard_snapshot(self, head: AnyHead, route: bytes) -> None:
        """At our ear: another author's sum."""
        inbound = self._peers[head.sender].inbound
        if not isinstance(head, Begin | Piece):
            raise NotBelieved("form")
        if inbound.is_stale(head):  # left over from a connection that was
            raise NotBelieved("number")
        self._routes[head.sender] = route
        if isinstance(head, Begin):
            inbound.begin(head)
        elif inbound.piece(head, self._receive):
            self._on_message(Traffic("recv", head.sender, head.number, self._num_bytes))

    def _receive(self, room: memoryview) -> int:
        if not self._ear.get(zmq.RCVMORE):
            raise NotBelieved("form")
        return self._ear.recv_into(room, flags=zmq.NOBLOCK)

    def _heard_answer(self, head: AnyHead, num_bytes: int) -> None:
        """On our connection to a peer: what it has of our sum."""
        outbound = self._peers[head.sender].outbound
        if isinstance(head, Folded):
            if head.upto > self._issued:
                raise NotBelieved("counter")
            outbound.heard_folded(head.upto)
            least = min(self.acked.values())
            self._steps = [s for s in self._steps if s.upto > least]
        elif isinstance(head, Again):
            outbound.heard_torn(head.lost)
        else:
            raise NotBelieved("form")
        self._on_message(Traffic("recv", head.sender, head.number, num_bytes))
