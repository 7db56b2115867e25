"""Who is started again, and when: also after the agent's own death, and where no process can be started."""

from __future__ import annotations

import asyncio
import errno
import signal
from pathlib import Path

import pytest

from cascade_runtime.agent import newcomers
from cascade_runtime.agent.protocol import Level
from cascade_runtime.agent.rank_process import RankProcess
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import view
from tests.runtime.lone_agent import ME, LoneAgent

BACK = Actor(0, 1)


class Starts:
    """Starts nobody, and remembers who was to be started."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked: list[Actor] = []

    def __call__(self, actor: Actor) -> RankProcess | None:
        self.asked.append(actor)
        if self.errors:
            raise self.errors.pop(0)
        return None


async def soon(_: object = None) -> None:
    """Timers of no delay have gone off."""
    for _ in range(4):
        await asyncio.sleep(0)


def ended(agent: LoneAgent, actor: Actor = ME, status: int = -signal.SIGKILL) -> None:
    process = agent.process(actor)
    process.status = status
    agent.deaths.on_exit(process)


def test_a_rank_that_died_is_started_again(tmp_path: Path) -> None:
    starts = Starts()
    agent = LoneAgent(tmp_path, start=starts)

    async def test(path: Path) -> None:
        ended(agent)
        await soon()

    agent.run(test)
    assert starts.asked == [BACK]
    assert agent.faults == []


@pytest.mark.parametrize(
    "error", [OSError(errno.EAGAIN, "too many processes"), EOFError("the zygote is gone")]
)
def test_where_no_process_can_be_started_the_agent_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """It ended, with its launcher's patience and at last all ranks of the host."""
    starts = Starts(error)
    agent = LoneAgent(tmp_path, start=starts)

    async def test(path: Path) -> None:
        ended(agent)
        await soon(await soon())

    agent.run(test)
    assert agent.faults == []
    assert starts.asked == [BACK, Actor(0, 2)], "it tries again, later"
    assert f"rank 0 could not be started ({error})" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("refused", "started"),
    [((0,), [1, 2, 3]), ((0, 1), [1]), ((0, 2), [1, 2, 3]), ((1, 2), [1, 2]), ((), [1, 2, 3])],
)
def test_who_was_refused_twice_in_a_row_is_not_started_again(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    refused: tuple[int, ...],
    started: list[int],
) -> None:
    """Once more is tried, and a life that ended otherwise in between begins the count anew."""
    starts = Starts()
    agent = LoneAgent(tmp_path, start=starts, respawn=3)

    async def test(path: Path) -> None:
        for incarnation in range(4):
            actor = Actor(0, incarnation)
            if incarnation and actor not in starts.asked:
                break
            if incarnation in refused:
                agent.config.refusal_path(actor).write_text("no such layer")
            if incarnation:
                agent.newcomers._local[actor] = agent.process(actor)
            ended(agent, actor, 2)
            await soon()

    agent.run(test)
    assert [actor.incarnation for actor in starts.asked] == started
    told = capsys.readouterr().err
    times = int(started != [1, 2, 3])
    assert told.count("rank 0 is not started again: it was refused 2 times in a row") == times
    assert told.count("rank 0 is not started again") == 1


def test_who_cannot_be_added_hears_why(tmp_path: Path) -> None:
    agent = LoneAgent(tmp_path, start=Starts(OSError(errno.EAGAIN, "too many processes")))

    async def test(path: Path) -> None:
        told = agent.newcomers.add(5)
        assert told == "its process could not be started ([Errno 11] too many processes)"
        assert agent.newcomers.add(5) == "the job is being stopped"

    agent.run(test)


@pytest.mark.parametrize("has_attached", [True, False])
def test_the_end_of_the_job_waits_for_no_newcomer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_attached: bool
) -> None:
    """A script may take SIGTERM and go on, or never come to attach."""
    monkeypatch.setattr(newcomers, "STOP_GRACE_S", 0.0)
    agent = LoneAgent(tmp_path)
    coming = agent.process(Actor(5))
    signals: list[int] = []
    monkeypatch.setattr(coming, "signal", signals.append)
    agent.newcomers._local[coming.actor] = coming
    if has_attached:
        agent.host.attached.add(coming.actor)

    async def test(path: Path) -> None:
        agent.newcomers.installed(view(epoch=1, departed=[ME], member_reason="finished"))
        assert signals == ([] if has_attached else [signal.SIGTERM])
        await soon()

    agent.run(test)
    assert signals[-1] == signal.SIGKILL


def test_a_newcomer_is_not_level_from_its_hello_until_it_says_that_it_is(tmp_path: Path) -> None:
    agent = LoneAgent(tmp_path)
    host, coming = agent.host, Actor(5)
    not_level = agent.newcomers.not_level
    agent.newcomers._local[coming] = agent.process(coming)
    assert not_level() == [], "its script may be loading data for minutes"
    host.attached.add(coming)
    assert not_level() == [coming]
    host.joins.on_level(Level(coming, Actor(1), 0, 12))
    assert not_level() == []
    host.joins.on_level(Level(coming, None, -1, -1))
    assert not_level() == [coming], "its source was lost"

    async def ends(path: Path) -> None:
        agent.newcomers.on_exit(coming, -signal.SIGKILL)

    agent.run(ends)
    assert not_level() == []


# ---- the agent's own death ------------------------------------------------------------------------


def test_a_death_that_was_certified_and_not_walked_for_is_answered_by_the_next_life(
    tmp_path: Path,
) -> None:
    first = LoneAgent(tmp_path)

    async def dies(path: Path) -> None:
        ended(first)

    first.run(dies)
    starts = Starts()
    second = LoneAgent(tmp_path, start=starts)
    assert ME in second.host.walker.view.members

    async def remembers(path: Path) -> None:
        second.host.ranks[0].status = -signal.SIGKILL
        second.deaths.remember()
        second.newcomers.remember()
        await soon()

    second.run(remembers)
    assert starts.asked == [BACK]
    assert second.host.judge.deaths


@pytest.mark.parametrize("told", [True, False])
def test_a_newcomer_that_ended_as_its_agent_did_is_known_to_be_dead(
    tmp_path: Path, told: bool
) -> None:
    """A view may let it in, and waits for its word or its end."""
    first = LoneAgent(tmp_path)

    async def ends(path: Path) -> None:
        if told:
            first.newcomers._local[BACK] = first.process(BACK)
            ended(first, BACK)
        else:  # killed between the two lines in its journal
            first.host.journal.append("exited", (BACK, 1))

    first.run(ends)
    second = LoneAgent(tmp_path)

    async def remembers(path: Path) -> None:
        second.deaths.remember()

    second.run(remembers)
    assert second.host.walker.dead[BACK].dead


def test_a_member_that_left_is_not_dead_afterwards(tmp_path: Path) -> None:
    first = LoneAgent(tmp_path)
    first.host.journal.append(
        "committed", view(1, 2, epoch=1, departed=[ME], member_reason="finished")
    )

    async def leaves(path: Path) -> None:
        first.host.journal.append("exited", (ME, 0))

    first.run(leaves)
    second = LoneAgent(tmp_path)

    async def remembers(path: Path) -> None:
        second.deaths.remember()

    second.run(remembers)
    assert second.host.walker.dead == {}


def test_who_is_on_the_way_in_causal_is_put_on_record_by_a_walk(tmp_path: Path) -> None:
    agent = LoneAgent(tmp_path, has_begun=False)
    host, now = agent.host, view(0, 1, 2, regime=Regime.CAUSAL)
    wanted: list[bool] = []

    async def test(path: Path) -> None:
        host.walker.install_first(now)
        host.walker.take()
        time_s = asyncio.get_running_loop().time()
        host.coming.look([Actor(5)], time_s)
        interval_s = host.judge.policy.walk.min_interval_ms / 1000
        for stood_s in (0.0, interval_s):
            host.judge.install(now, [now], time_s - stood_s)
            wanted.append(agent.newcomers.wants_walk())
        host.judge.leaving.add(ME)
        wanted.append(agent.newcomers.wants_walk())

    agent.run(test)
    assert wanted == [False, True, False], (
        "not at once after another walk, nor while somebody leaves"
    )
