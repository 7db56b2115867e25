"""One author in a process of its own: folds what arrives, steps when told to.

Lines in: ``connect RANK ADDRESS``, ``step``, ``quit``. Lines out: the address, then one a fold
(``folded RANK UPTO DIGEST``).
"""

from __future__ import annotations

import os
import select
import sys

import xxhash

from cascade_runtime.delivery import Step
from cascade_runtime.rank.deltas import Deltas
from cascade_runtime.vocabulary.identity import Actor


def main() -> None:
    me, num_bytes, token = Actor(int(sys.argv[1])), int(sys.argv[2]), sys.argv[3].encode()
    own, upto = bytearray(num_bytes), 0
    deltas = Deltas(me, 1, token, num_bytes, lambda: memoryview(own))
    peers: dict[Actor, str] = {}
    print(deltas.address, flush=True)
    rest = b""
    while True:
        deltas.pump()
        for snapshot in deltas.newest:
            _, data = deltas.take(snapshot.origin)
            digest = xxhash.xxh3_64_hexdigest(data)
            deltas.folded(snapshot.origin, snapshot.upto, data)
            print("folded", snapshot.origin.rank, snapshot.upto, digest, flush=True)
        ready, _, _ = select.select([0, *deltas.fds], [], [], 0.02)
        if 0 not in ready:
            continue
        *lines, rest = (rest + os.read(0, 1 << 16)).split(b"\n")
        for line in lines:
            match line.decode().split():
                case ["connect", rank, address]:
                    peers[Actor(int(rank))] = address
                    deltas.connect(peers)
                case ["step"]:
                    upto += 1
                    own[:8] = upto.to_bytes(8, "little")
                    deltas.stepped(Step(upto, []), [])
                case ["quit"]:
                    deltas.close()
                    return


main()
