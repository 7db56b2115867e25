"""`python -m tests.runtime.random_faults`: what it keeps, goes on with, sums up and exits with; no job runs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import _harness
from tests.runtime import random_faults
from tests.runtime.random_faults import Verdict, main
from tests.runtime.schedules import Played, Schedule, draw


class Jobs:
    """Plays nothing; some numbers of the seed go wrong."""

    def __init__(self) -> None:
        self.played: list[str] = []
        self.wrong: dict[str, list[str]] = {}
        self.raises: dict[str, BaseException] = {}
        self.unformed: set[str] = set()

    def go_wrong(self, number: int, *why: str) -> None:
        self.wrong[str(draw(7, number))] = list(why)

    def play(self, runner: object, schedule: Schedule) -> Played:
        name = str(schedule)
        self.played.append(name)
        if name in self.raises:
            raise self.raises[name]
        job: Any = SimpleNamespace(
            outcome=SimpleNamespace(finished=[0, 1], formed=name not in self.unformed)
        )
        self.unformed.discard(name)
        return Played(self.wrong.get(name, []), job, 30)


class NoZygote:
    path = Path("/nowhere")

    def __enter__(self) -> NoZygote:
        return self

    def __exit__(self, *error: object) -> None:
        return


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Jobs:
    made = Jobs()
    kind = dataclasses.replace(random_faults.FAULTS, play=made.play)
    monkeypatch.setattr(random_faults, "FAULTS", kind)
    monkeypatch.setattr(random_faults, "Zygote", NoZygote)
    monkeypatch.setattr(_harness, "RESULTS", tmp_path / "kept")
    return made


def test_all_right_is_0_and_each_schedule_has_a_line(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--seed", "7", "--num", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "seed 7, 3 schedules, 0 known, 3 to play"
    for number, line in enumerate(lines[1:4]):
        assert line.startswith(f"[{number + 1}/3] #{number} 0 s, {draw(7, number)}: 2 finished")
        assert line.endswith("30 steps after the last fault, ok")
    assert lines[4] == "seed 7: 3 played, 0 wrong"
    told = json.loads(lines[-1])
    assert told["figure"] == {
        "played": 3, "forks": 0, "hangs": 0, "wrong in all": 0,
        "fewest steps after the last fault": 30,
    }  # fmt: skip
    assert told["holds"] and told["command"].endswith("random_faults --seed 7 --num 3")


def test_what_went_wrong_is_1_and_named(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.go_wrong(1, "forked: the survivors' parameters differ", "exit code 1")
    jobs.go_wrong(2, "hung for 150 s and was ended")
    jobs.raises[str(draw(7, 3))] = ValueError("no trace")
    assert main(["--seed", "7", "--num", "5"]) == 1
    out = capsys.readouterr().out
    assert "seed 7: 5 played, 3 wrong [1, 2, 3]" in out
    assert "WRONG: ValueError('no trace')" in out
    figure = json.loads(out.splitlines()[-1])["figure"]
    assert (figure["forks"], figure["hangs"], figure["wrong in all"]) == (1, 1, 3)


def test_the_same_command_goes_on_where_it_was_interrupted(
    jobs: Jobs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "of" / "seed7.jsonl"
    words = ["--seed", "7", "--num", "4", "--results", str(results), "--save"]
    jobs.raises[str(draw(7, 2))] = KeyboardInterrupt()
    assert main(words) == 130
    assert "the same command goes on" in capsys.readouterr().out
    assert not _harness.RESULTS.exists()
    with results.open("a") as file:
        file.write('{"seed": 7, "num')  # cut off
    jobs.raises.clear()
    jobs.played.clear()
    assert main(words) == 0
    assert jobs.played == [str(draw(7, 2)), str(draw(7, 3))]
    assert "4 schedules, 2 known, 2 to play" in capsys.readouterr().out
    jobs.played.clear()
    assert main(words) == 0
    assert jobs.played == [], "all four are known"
    page = (_harness.RESULTS / "random_faults.md").read_text()
    kept = json.loads((_harness.RESULTS / "random_faults.json").read_text())
    assert page.startswith("# random_faults: the target holds")
    assert "4 played" not in page and "played 4, forks 0, hangs 0, wrong in all 0" in page
    assert kept["versions"]["python"] and kept["target"]["played"] == 4


def test_a_verdict_on_another_schedule_or_seed_is_not_taken_over(
    jobs: Jobs, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    other = Verdict(7, 0, "2 ranks on 1 hosts: ", 2, 1, 0, 1.0, 2, [], 30)
    older = Verdict(6, 1, str(draw(7, 1)), 2, 1, 0, 1.0, 2, [], 30)
    lines = [json.dumps(vars(v)) for v in (other, older)]
    results.write_text("\n".join([*lines, "[]", "no json", ""]))
    assert main(["--seed", "7", "--num", "2", "--results", str(results)]) == 0
    assert len(jobs.played) == 2


def test_a_job_that_never_formed_is_played_once_more(jobs: Jobs) -> None:
    jobs.unformed.add(str(draw(7, 0)))
    assert main(["--seed", "7", "--num", "1"]) == 0
    assert jobs.played == [str(draw(7, 0))] * 2


def test_one_schedule_alone_is_not_kept(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "7", "--only", "3"]) == 0
    assert jobs.played == [str(draw(7, 3))]
    with pytest.raises(SystemExit):
        main(["--only", "3", "--save"])
    assert "leave out --only or --save" in capsys.readouterr().err
