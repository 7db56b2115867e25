"""What an agent says of a walk that stands still."""

from __future__ import annotations

from pathlib import Path

import pytest

from cascade_runtime.agent.leading import Leading
from cascade_runtime.agent.patience import FIRST_S
from cascade_runtime.agent.protocol import Ballot, Propose, Query
from cascade_runtime.progress import FORWARD, ProgressWord
from tests.agent.facts import at, view
from tests.runtime.lone_agent import ME, LoneAgent

BALLOT = Ballot(1, 1)


def said_of(agent: LoneAgent, capsys: pytest.CaptureFixture[str]) -> str:
    """What it says once it has waited for long enough."""
    leading = Leading(agent.host, agent.newcomers)
    capsys.readouterr()

    async def wait(path: Path) -> None:
        leading.tell_wait(0.0)
        leading.tell_wait(2 * FIRST_S)

    agent.run(wait)
    return capsys.readouterr().err


def test_a_rank_that_halted_and_does_not_agree_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It answered while its script slept, and a walk that needs more of it waits for its script."""
    agent = LoneAgent(tmp_path)
    walker = agent.host.walker
    ProgressWord(agent.config.progress_path(ME)).write(4, 0, FORWARD)
    walker.on_message(1, Query(BALLOT, 1, graceful=True))
    walker.on_facts(ME, at(4))
    walker.on_message(1, Propose(BALLOT, view(0, 1, 2, epoch=1)))
    assert walker.not_halted == [] and walker.not_acknowledged == [ME]
    told = said_of(agent, capsys)
    assert "rank 0 has been in the forward of step 5 for " in told
    assert f"has not agreed to epoch 1 (it lives, pid {agent.host.ranks[0].pid})" in told


def test_who_has_agreed_is_not_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = LoneAgent(tmp_path)
    agent.host.walker.on_message(1, Propose(BALLOT, view(0, 1, 2, epoch=1)))
    agent.host.walker.on_ack(ME, 1, BALLOT)
    assert agent.host.walker.not_acknowledged == []
    assert "rank 0" not in said_of(agent, capsys)


def test_a_rank_that_has_not_halted_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = LoneAgent(tmp_path)
    ProgressWord(agent.config.progress_path(ME)).write(4, 0, FORWARD)
    agent.host.walker.on_message(1, Query(BALLOT, 1, graceful=True))
    told = said_of(agent, capsys)
    assert "rank 0 has been in the forward of step 5" in told and "the walk to epoch 1" in told
