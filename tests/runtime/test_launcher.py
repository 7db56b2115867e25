"""The launcher's rules: who runs where, what the job's exit code is, what its settings are."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.agent.config import JobConfig, read_config, save_config
from cascade_runtime.agent.journal import Journal
from cascade_runtime.agent.launcher import Launcher, make_config, rank_pids
from cascade_runtime.agent.outcome import exit_code_of
from cascade_runtime.agent.protocol import Facts
from cascade_runtime.agent.zygote_process import Zygote
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor
from tests.agent.facts import actors, view
from tests.vocabulary.strategies import LAWS


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not tmp_path: where that is long, run folders lie elsewhere.
    monkeypatch.setattr(tempfile, "tempdir", tempfile.mkdtemp())


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("")
    return path


@pytest.fixture
def config(script: Path, tmp_path: Path) -> JobConfig:
    return make_config([str(script)], num_ranks=4, num_hosts=2, trace_dir=tmp_path / "trace")


# ---- who runs where -------------------------------------------------------------------------------


def sized(num_ranks: int, num_hosts: int) -> JobConfig:
    words = ("run_id", "name", "mode", "policy", "trace_dir", "run_dir", "host")
    told: dict[str, Any] = dict.fromkeys(words, "x")
    return JobConfig(**told, num_ranks=num_ranks, num_hosts=num_hosts, command=["x"], master_port=1)


@given(num_ranks=st.integers(1, 300), share=st.floats(0, 1))
@LAWS
def test_every_rank_is_on_one_host_and_hosts_are_as_equal_as_can_be(num_ranks, share):
    num_hosts = 1 + int(share * (num_ranks - 1))
    config = sized(num_ranks, num_hosts)
    hosts = [config.ranks_of(index) for index in range(num_hosts)]
    assert [rank for ranks in hosts for rank in ranks] == list(range(num_ranks))
    sizes = [len(ranks) for ranks in hosts]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    for index in {0, num_hosts // 2, num_hosts - 1}:
        assert {config.host_of(rank) for rank in hosts[index]} == {index}
    agents = [config.agent_rank(index) for index in range(num_hosts)]
    assert agents == list(range(num_ranks, num_ranks + num_hosts))


def test_virtual_hosts_have_names_of_their_own():
    assert [sized(4, 2).host_name(i) for i in (0, 1)] == ["x/v0", "x/v1"]
    assert sized(4, 1).host_name(0) == "x"


# ---- settings -------------------------------------------------------------------------------------


def test_settings_come_back_as_they_were_saved(config: JobConfig, tmp_path: Path) -> None:
    full = msgspec.structs.replace(config, env={"A": "b"}).forking_from(Path("z"))
    save_config(full, tmp_path / "job.json")
    assert read_config(tmp_path / "job.json") == full
    assert full.zygote == "z"


def test_what_a_config_is_made_of(script: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CASCADE_HOST_NAME", "node-7")
    monkeypatch.chdir(tmp_path)
    config = make_config(
        ["train.py", "--steps", "3"], num_ranks=2, trace_dir=Path("trace"), env={"A": "b"}
    )
    assert config.command == [str(script), "--steps", "3"]
    assert (config.name, config.host, config.env) == ("train", "node-7", {"A": "b"})
    assert Path(config.trace_dir) == tmp_path / "trace"
    assert Path(config.trace_dir).is_dir()
    assert stat.S_IMODE(Path(config.run_dir).stat().st_mode) == 0o700
    assert config.master_port == 0, "the launcher reserves one when it runs"
    other = make_config(["train.py"], num_ranks=2, trace_dir=Path("other"), name="mine")
    assert other.name == "mine"
    assert (other.run_id, other.run_dir) != (config.run_id, config.run_dir)
    assert other.run_id != config.run_id


def test_a_socket_s_path_is_short_enough(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("TMPDIR", raising=False)
    config = make_config([str(script)], num_ranks=99, num_hosts=99, trace_dir=tmp_path / "t")
    Path(config.run_dir).rmdir()
    assert len(os.fsencode(config.socket_path(98))) <= 107


def test_an_empty_folder_may_become_a_trace(script: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make_config([str(script)], num_ranks=2, trace_dir=tmp_path / "empty")


def test_a_file_is_no_place_for_a_trace(script: Path) -> None:
    with pytest.raises(BadUsage, match="never written over"):
        make_config([str(script)], num_ranks=2, trace_dir=script)


@pytest.mark.parametrize("num_hosts", [0, -1, 3])
def test_a_number_of_hosts_that_cannot_be_is_refused(
    script: Path, tmp_path: Path, num_hosts: int
) -> None:
    with pytest.raises(BadUsage, match="hosts without a rank"):
        make_config([str(script)], num_ranks=2, num_hosts=num_hosts, trace_dir=tmp_path / "trace")


# ---- how it ended ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("finished", "statuses", "code"), [
    (set(), {}, 0),
    ({0, 1}, {0: 0, 1: 0}, 0),
    ({0, 2}, {0: 0, 1: -9, 2: 0}, 0),       # a rank was lost and the job went on
    ({0, 2}, {0: 0, 1: 7, 2: 0}, 0),        # or failed, and was lost to the others
    ({0, 1}, {0: 3, 1: 0}, 3),              # it left, and its script failed afterwards
    ({0, 1}, {0: -11, 1: 0}, 139),
    (set(), {0: -15, 1: 2, 2: -15}, 2),     # the reason, and not what we did to the rest
    (set(), {0: 4, 1: 2}, 4),
    (set(), {0: -9, 1: -9}, 137),
    (set(), {0: 0, 1: 0}, 0),               # a script without a model
])  # fmt: skip
def test_the_exit_code_is_the_script_s(finished, statuses, code):
    assert exit_code_of(finished, statuses) == code


def test_the_outcome_is_what_the_journals_say(config: JobConfig) -> None:
    first, second = (Journal(config.journal_path(index)) for index in (0, 1))
    first.append("committed", view(0, 1, 2, 3))
    first.append("committed", view(0, 1, 2, epoch=1, departed=actors(3), member_reason="failed"))
    last = view(epoch=2, departed=actors(0, 1, 2), member_reason="finished")
    second.append("committed", last)
    for rank in (0, 1):
        first.append("exited", (Actor(rank), 0))
    second.append("exited", (Actor(3), -9))
    second.append("exited", (Actor(2), 0))
    second.append("dead", (Actor(3), Facts(decided=1, dead=True)))
    for journal in (first, second):
        journal.close()
    outcome = Launcher(config)._outcome()
    assert outcome.formed
    assert outcome.finished == [0, 1, 2]
    assert outcome.statuses == {0: 0, 1: 0, 2: 0, 3: -9}
    assert outcome.exit_code == 0


def test_a_job_that_was_interrupted_before_it_finished_says_so(config: JobConfig) -> None:
    launcher = Launcher(config)
    assert launcher._outcome().exit_code == 0
    launcher._on_signal(2, None)
    outcome = launcher._outcome()
    assert (outcome.exit_code, outcome.formed) == (130, False)


def test_pids_are_those_of_the_newest_incarnation(config: JobConfig) -> None:
    assert rank_pids(config) == {}
    first, second = (Journal(config.journal_path(index)) for index in (0, 1))
    first.append("spawned", (Actor(0), 11))
    first.append("spawned", (Actor(0, 1), 12))
    second.append("spawned", (Actor(3), 13))
    first.close()
    second.close()
    assert rank_pids(config) == {Actor(0, 1): 12, Actor(3): 13}
    launcher = Launcher(config)
    assert launcher.rank_pids() == rank_pids(config)
    launcher._note_orphan(13, -15)
    launcher._note_orphan(99, 1)
    assert config.exit_path(Actor(3)).read_text() == "-15"
    assert not config.exit_path(Actor(0, 1)).exists()


def test_an_agent_is_started_again_only_when_it_failed(
    config: JobConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher = Launcher(config)
    started: list[int] = []
    monkeypatch.setattr(launcher, "_start", started.append)
    launcher._on_agent_end(0, 0)
    assert (started, launcher._done) == ([], {0})
    launcher._on_agent_end(1, -9)
    assert started == [1]
    assert "agent 1 ended with SIGKILL; starting it again" in capsys.readouterr().err
    launcher._starts[1] = 99
    launcher._on_agent_end(1, -9)
    assert (started, launcher._done) == ([1], {0, 1})


def test_an_agent_that_ends_while_we_stop_is_not_started_again(
    config: JobConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Launcher(config)
    monkeypatch.setattr(launcher, "_start", lambda index: pytest.fail("started"))
    launcher._on_signal(15, None)
    launcher._on_agent_end(0, 1)
    assert launcher._done == {0}


def test_a_zygote_without_torch_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    zygote = Zygote()
    with pytest.raises(BadUsage, match="torch could not be imported") as caught, zygote:
        pytest.fail("entered")
    assert "pip install" in caught.value.hint
    assert zygote._process is not None
    assert (zygote._process.stdin.closed, zygote._process.stdout.closed) == (True, True)
