"""A whole run as the runtime records it: STRONG steps, a killed rank, CAUSAL, the climb, the end."""

from __future__ import annotations

from typing import Any

from tests.story import Dot, Story, Teller

OBJECTS = ("params/0", "params/1", "buffers", "optim")
NUM_BUCKETS = 2


class Job:
    """Members that step together, and what each of them holds of every object."""

    def __init__(self, ranks: int = 4, agents: int = 1) -> None:
        self.story = Story(ranks=ranks, agents=agents)
        self.members = list(self.story.ranks)
        self.version = dict.fromkeys(OBJECTS, 0)
        self.dot: dict[str, Dot | None] = dict.fromkeys(OBJECTS)
        self.comm = "cohort-0"
        self.step = 0
        for one in (*self.story.ranks, *self.story.agents):
            one.join("control", [*self.story.ranks, *self.story.agents], label="control")
        for one in self.members:
            one.join(self.comm, self.members, label="cohort/0/0")
            for obj in OBJECTS:
                one.declare(obj)

    def begin(self) -> None:
        for one in self.members:
            one.begin(self.step)
            for obj in OBJECTS:
                one.read(obj, self.version[obj], self.dot[obj])

    def launch(self, members: list[Teller], issue: bool = True) -> tuple[list[Any], dict[str, Dot]]:
        """Everyone launches its buckets; the author issues before its last."""
        s, rows, dots = self.story, [], {}
        first = s.cseq.get(self.comm, 0)
        s.cseq[self.comm] = first + NUM_BUCKETS
        for one in members:
            for bucket in range(NUM_BUCKETS):
                if bucket == NUM_BUCKETS - 1 and issue and one is self.members[0]:
                    for obj in OBJECTS:
                        dots[obj] = one.issue(obj, self.version[obj] + 1)
                label = f"bucket/{bucket}"
                rows.append((one, one.enter(self.comm, first + bucket, label=label, is_async=True)))
        return rows, dots

    def decide(self, rows: list[Any], dots: dict[str, Dot]) -> None:
        """All buckets complete; every member applies; one digest in rotation; the step ends."""
        for one, row in rows:
            one.done(row)
        for obj, dot in dots.items():
            self.version[obj] += 1
            self.dot[obj] = dot
        for one in self.members:
            for obj, dot in dots.items():
                one.apply(dot, obj, self.version[obj])
            obj = OBJECTS[self.step % len(OBJECTS)]
            one.digest(f"{obj}@{self.version[obj]}", obj, self.version[obj])
            one.end()
        self.step += 1

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.begin()
            rows, dots = self.launch(self.members)
            self.decide(rows, dots)

    def lose(self, dead: Teller) -> None:
        """SIGKILL in the middle of a step; the survivors walk and redo the step."""
        s = self.story
        self.begin()
        _, dots = self.launch([m for m in self.members if m is not dead])
        if dead is self.members[0]:
            for obj in OBJECTS:
                dots[obj] = dead.issue(obj, self.version[obj] + 1)
        self.members = [m for m in self.members if m is not dead]
        s.walk("CAUSAL", "GPU_FAIL_STOP", members=self.members, departed=[dead], debts=False)
        boss, epoch = self.members[0], self.members[0].epoch
        boss.open_debt("open-step", new_epoch=epoch, in_flight=list(dots.values()))
        boss.open_debt("data", new_epoch=epoch, object=f"data/{dead.rank}")
        old, self.comm = self.comm, f"cohort-{epoch}"
        for one in self.members:
            one.join(self.comm, self.members, label=f"cohort/{epoch}/0", replaces=old)
        relayed = dots[OBJECTS[0]][0] != dead.rank
        if not relayed:
            for one in self.members:
                for obj, dot in dots.items():
                    one.discard(dot, obj)
        rows, fresh = self.launch(self.members, issue=not relayed)
        self.decide(rows, dots if relayed else fresh)
        boss.settle("open-step", "applied" if relayed else "discarded", resolved=None)
        boss.settle("data", "discarded", action="written_off")
        boss.tell(*s.agents)

    def climb(self) -> None:
        s = self.story
        s.walk("STRONG", "STABLE_SYNC", members=self.members)
        epoch = self.members[0].epoch
        old, self.comm = self.comm, f"cohort-{epoch}"
        for one in self.members:
            one.join(self.comm, self.members, label=f"cohort/{epoch}/0", replaces=old)

    def finish(self) -> None:
        """LEAVE, by one membership walk for all."""
        leaving, self.members = self.members, []
        self.story.walk(
            "STRONG", None, members=[], departed=leaving, reason="finished", leaving=leaving
        )


def kill_one_run(dead: int = 2, agents: int = 1, ranks: int = 4) -> Story:
    """Four STRONG steps, a kill, five calm CAUSAL steps, the climb, three more, the end."""
    job = Job(ranks, agents)
    job.run(4)
    job.lose(job.story.ranks[dead])
    job.run(5)
    job.climb()
    job.run(3)
    job.finish()
    return job.story
