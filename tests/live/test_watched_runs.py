"""Which runs are judged, in which order, and what a run that cannot be judged does to the others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from collector.data_folder import run_folder
from collector.trace.samples import resolve_trace
from collector.trace.segment_cache import CacheBudget, SegmentCache
from dashboard.live import judged, run_watch, watched_runs
from dashboard.live.run_watch import RunWatch
from dashboard.live.watched_runs import WatchedRuns


class OnlyVerdict(msgspec.Struct):
    verdict: str


class Referee:
    """Stands in for the analyzer: keeps the order, and does not take runs of some names."""

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.refused: set[str] = set()
        self.before: Callable[[str], None] = lambda run_id: None

    def __call__(self, source: Any) -> Any:
        run_id = source.meta.run_id
        self.before(run_id)
        self.judged.append(run_id)
        if run_id in self.refused:
            raise RuntimeError("a rule\nfell over")
        return SimpleNamespace(results={}, report=OnlyVerdict(verdict="ok"))


@pytest.fixture
def referee(monkeypatch: pytest.MonkeyPatch) -> Referee:
    referee = Referee()
    monkeypatch.setattr(run_watch, "analyze", referee)
    return referee


def add_run(data: Path, name: str, *, ended: bool = True) -> Path:
    """A run of one table."""
    folder = run_folder(data, name)
    sample = resolve_trace("clean")
    meta = msgspec.json.decode((sample / "trace.json").read_bytes())
    meta |= {"run_id": name} | ({} if ended else {"ended_ns": None, "clean_end": None})
    (folder / "events" / "steps").mkdir(parents=True)
    for file in (sample / "events" / "steps").glob("*.parquet"):
        shutil.copy(file, folder / "events" / "steps")
    (folder / "trace.json").write_bytes(msgspec.json.encode(meta))
    return folder


def touch(folder: Path) -> None:
    """As if the collector had written the run's description again."""
    file = folder / "trace.json"
    stat = file.stat()
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def test_a_judged_run_is_not_judged_again_after_a_restart(
    tmp_path: Path, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = add_run(tmp_path, "a")
    assert RunWatch(folder).judge()
    again = RunWatch(folder)
    assert not again.judge()
    touch(folder)
    assert again.judge()  # something came for it after all
    assert not RunWatch(folder).judge()
    (folder / "results" / "report.json").unlink()
    assert RunWatch(folder).judge()
    with monkeypatch.context() as newer:
        newer.setattr(judged, "_release", lambda: "99.0")
        assert RunWatch(folder).judge()  # its rules may say something else
        assert not RunWatch(folder).judge()
    assert len(referee.judged) == 4


def test_a_growing_run_is_judged_again_after_a_restart(tmp_path: Path, referee: Referee) -> None:
    """Its report rests on rows that were yet to come, and by now they are missing."""
    folder = add_run(tmp_path, "a", ended=False)
    now = 0.0
    assert RunWatch(folder).judge()
    watch = RunWatch(folder, quiet_s=30, mono_s=lambda: now)
    assert watch.judge()
    now = 31.0
    assert watch.judge()
    assert not RunWatch(folder).judge()


def test_live_runs_are_judged_between_the_others(tmp_path: Path, referee: Referee) -> None:
    ended = [add_run(tmp_path, name) for name in ("a", "b", "c")]
    add_run(tmp_path, "z", ended=False)

    def start_another(run_id: str) -> None:
        if run_id in ("a", "b", "c") and not run_folder(tmp_path, "y").exists():
            add_run(tmp_path, "y", ended=False)

    referee.before = start_another
    WatchedRuns(tmp_path, lambda line: None).look()
    assert referee.judged[0] == "z"
    assert referee.judged[2] == "y"
    assert sorted(referee.judged) == ["a", "b", "c", "y", "z"]
    assert all((folder / "results" / "report.json").exists() for folder in ended)


def test_one_that_did_not_end_long_ago_waits_behind_live_ones(
    tmp_path: Path, referee: Referee
) -> None:
    lost = add_run(tmp_path, "a", ended=False)
    os.utime(lost / "trace.json", (1e9, 1e9))
    add_run(tmp_path, "b", ended=False)
    WatchedRuns(tmp_path, lambda line: None).look()
    assert referee.judged == ["b", "a"]


def test_a_run_that_cannot_be_judged_stops_no_other_and_is_told_once(
    tmp_path: Path, referee: Referee
) -> None:
    for name in ("a", "c"):
        add_run(tmp_path, name)
    add_run(tmp_path, "b", ended=False)
    referee.refused = {"b"}
    told: list[str] = []
    runs = WatchedRuns(tmp_path, told.append)
    runs.look()
    runs._watches[run_folder(tmp_path, "b").resolve()]._not_before_s = 0.0
    runs.look()
    assert sorted(referee.judged) == ["a", "b", "b", "c"]
    assert sorted(told) == [
        "run a: ok",
        "run b cannot be judged: RuntimeError: a rule fell over",
        "run c: ok",
    ]
    runs.look()  # its pause is not over
    assert referee.judged.count("b") == 2


def test_the_pause_after_a_failure_doubles_up_to_five_minutes(
    tmp_path: Path, referee: Referee
) -> None:
    now = 0.0
    watch = RunWatch(add_run(tmp_path, "a"), mono_s=lambda: now)
    referee.refused = {"a"}
    pauses = []
    for _ in range(11):
        with pytest.raises(RuntimeError):
            watch.judge()
        pauses.append(watch.due_s(now))
        now += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    referee.refused = set()
    assert watch.judge()
    referee.refused = {"a"}
    touch(watch.root)
    with pytest.raises(RuntimeError):
        watch.judge()
    assert watch.due_s(now) == 1


def test_nobody_to_judge_for_ends_a_look(tmp_path: Path, referee: Referee) -> None:
    for name in ("a", "b", "c"):
        add_run(tmp_path, name)
    WatchedRuns(tmp_path, lambda line: None, goes_on=lambda: not referee.judged).look()
    assert len(referee.judged) == 1


def test_views_that_were_not_written_are_tried_again(
    tmp_path: Path, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_run(tmp_path, "a")
    told: list[str] = []
    answers: list[Exception | None] = [TimeoutError("held"), TimeoutError("held"), None]

    def write(data: Path) -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    monkeypatch.setattr(watched_runs, "write_views_file", write)
    runs = WatchedRuns(tmp_path, told.append)
    for _ in range(3):
        runs.look()
    assert answers == []
    assert referee.judged == ["a"]
    assert told == ["views.duckdb was not renewed: held", "run a: ok"]


def read_steps(source: Any) -> Any:
    source.table("steps", ["rank", "seq"])
    return SimpleNamespace(results={}, report=OnlyVerdict(verdict="ok"))


def test_columns_are_kept_while_a_run_grows_and_until_it_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_watch, "analyze", read_steps)
    monkeypatch.chdir(tmp_path)  # a relative folder names the same files
    growing = add_run(Path("data"), "growing", ended=False)
    add_run(Path("data"), "ended")
    runs = WatchedRuns(Path("data"), lambda line: None)
    runs.look()
    held = {watch.root.name: watch._cache.num_bytes for watch in runs._watches.values()}
    assert held["growing"] > 0
    assert held["ended"] == 0
    touch(growing)
    (watch,) = [watch for watch in runs._watches.values() if watch.root.name == "growing"]
    num_read = watch._cache.num_read
    assert watch.judge()
    assert watch._cache.num_read == num_read
    assert runs._budget.num_bytes == held["growing"]
    shutil.rmtree(growing)
    runs.look()
    assert runs._budget.num_bytes == 0


def column(num_bytes: int) -> Callable[[], pa.Table]:
    return lambda: pa.table({"x": pa.array(range(num_bytes // 8), pa.int64())})


def test_the_cache_of_the_run_that_was_not_used_for_longest_goes() -> None:
    budget = CacheBudget(1000)
    first, second, third = (SegmentCache(budget) for _ in range(3))
    for cache in (first, second):
        cache.get(Path("1"), ("x",), column(400))
    first.get(Path("1"), ("x",), column(400))
    assert (first.num_read, second.num_read) == (1, 1)
    third.get(Path("1"), ("x",), column(400))
    assert (first.num_bytes, second.num_bytes, third.num_bytes) == (400, 0, 400)
    assert third.get(Path("2"), ("x",), column(1600)).num_rows == 200  # read, but not kept
    assert budget.num_bytes == 800
    third.get(Path("3"), ("x",), column(600))
    assert (first.num_bytes, third.num_bytes) == (0, 1000)
    third.get(Path("tail.parquet"), ("x",), column(80))
    third.keep_only({Path("3")})
    assert budget.num_bytes == third.num_bytes == 600
