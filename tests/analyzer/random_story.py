"""Random traces: sound executions (each thing is seen after it happened) and wild ones."""

from __future__ import annotations

import random
from typing import Any

from tests.story import Story

_OPS = ["all_reduce", "barrier", "broadcast", "reduce", "all_gather", "gather"]


def sound_story(seed: int, ranks: int = 4, actions: int = 40) -> Story:
    """An execution that could have happened: messages in flight, async collectives, reads, loads."""
    rng = random.Random(seed)
    story = Story(ranks=ranks, start=False)
    tellers = story.ranks
    flying: list[dict[str, Any]] = []
    issued: list[tuple[Any, str]] = []
    saved: list[str] = []
    open_rows: list[tuple[Any, dict[str, Any]]] = []
    number = 0
    for _ in range(actions):
        one = rng.choice(tellers)
        what = rng.random()
        if what < 0.25:
            flying.append(one.send(rng.choice([t for t in tellers if t is not one])))
        elif what < 0.45 and flying:
            sent = flying.pop(rng.randrange(len(flying)))
            tellers[sent["peer"]].recv(sent)
        elif what < 0.6:
            obj = rng.choice(["params/0", "params/1"])
            issued.append((one.issue(obj), obj))
        elif what < 0.7 and issued:
            dot, obj = rng.choice(issued)
            one.apply(dot, obj)
        elif what < 0.78 and issued:
            dot, obj = rng.choice(issued)
            if rng.random() < 0.5:
                one.read(obj, dot=dot)
            else:
                one.read(obj, frontier=[dot])
        elif what < 0.83:
            name = f"k{len(saved)}"
            saved.append(name)
            one.checkpoint("saved", name)
        elif what < 0.87 and saved:
            one.checkpoint("loaded", rng.choice(saved))
        elif what < 0.92 and open_rows:
            teller, row = open_rows.pop(rng.randrange(len(open_rows)))
            teller.row("steps", phase="end")
            teller.done(row, teller.seq)
        else:
            members = rng.sample(tellers, rng.randint(2, ranks))
            op = rng.choice(_OPS)
            root = members[0].rank if op in ("broadcast", "reduce", "gather") else None
            rows = [m.enter("c" + str(len(members)), number, op, root=root) for m in members]
            number += 1
            for member, row in zip(members, rows, strict=True):
                if rng.random() < 0.8:
                    member.done(row)
                else:
                    open_rows.append((member, row))
    for teller in tellers:
        teller.row("steps", phase="end")
    return story


def wild_story(seed: int, ranks: int = 3, actions: int = 25) -> Story:
    """Rows in any order: receipts before sends, reads of later updates, collectives across."""
    rng = random.Random(seed)
    story = Story(ranks=ranks, start=False)
    for _ in range(actions):
        one = rng.choice(story.ranks)
        peer = rng.choice([t for t in story.ranks if t is not one])
        what = rng.random()
        if what < 0.4:
            one.row(
                "messages", comm_id="m", peer=peer.rank, peer_incarnation=0,
                channel_seq=rng.randrange(3), direction=rng.choice(["send", "recv"]),
            )  # fmt: skip
        elif what < 0.7:
            row = one.enter("c", rng.randrange(3), rng.choice(_OPS), root=0)
            if rng.random() < 0.8:
                one.done(row)
        elif what < 0.85:
            one.issue(dot=(rng.randrange(ranks), 0, rng.randrange(1, 4)))
        else:
            one.read(dot=(rng.randrange(ranks), 0, rng.randrange(1, 4)))
    return story
