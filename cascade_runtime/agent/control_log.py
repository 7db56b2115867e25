"""Numbers and records the messages of the walk: one ``messages`` row at each end."""

from __future__ import annotations

import hashlib
from collections import defaultdict

from cascade_runtime.agent.protocol import RECORDED, Message, pack_frame
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Messages
from cascade_runtime.vocabulary.identity import Actor


def comm_id_of(members: list[Actor], ordinal: int) -> str:
    """Identity of a communicator: hash of its ordered actors and an ordinal."""
    text = ",".join(f"{a.rank}.{a.incarnation}" for a in members) + f"#{ordinal}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def control_comm_id(run_id: str) -> str:
    """The control plane is one group of the whole run, its members come and go."""
    return hashlib.blake2b(f"control:{run_id}".encode(), digest_size=8).hexdigest()


class ControlLog:
    """Channel numbers per peer actor, and the rows."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._comm_id = control_comm_id(recorder.run_id)
        self._sent: defaultdict[Actor, int] = defaultdict(int)

    def outgoing(self, peer: Actor | None, message: Message) -> bytes:
        """The message as a frame; recorded when it belongs to the walk and the peer is known."""
        if peer is None or not isinstance(message, RECORDED):
            return pack_frame(message)
        number = self._sent[peer]
        self._sent[peer] += 1
        frame = pack_frame(message, number)
        self._row(peer, number, "send", len(frame))
        return frame

    def incoming(self, peer: Actor | None, channel_seq: int | None, num_bytes: int) -> None:
        """A frame arrived; recorded when it is numbered."""
        if channel_seq is not None and peer is not None:
            self._row(peer, channel_seq, "recv", num_bytes)

    def _row(self, peer: Actor, number: int, direction: str, num_bytes: int) -> None:
        self._recorder.row(
            Messages,
            comm_id=self._comm_id,
            peer=peer.rank,
            peer_incarnation=peer.incarnation,
            channel_seq=number,
            direction=direction,
            num_bytes=num_bytes,
        )
