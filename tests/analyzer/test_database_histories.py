"""Histories of databases: read in both text forms, and judged for causal consistency."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from analyzer.database.causal import judge_history
from analyzer.database.text_forms import looks_like_history, read_history
from cascade_runtime.vocabulary.errors import BadTrace
from dashboard.commands import main
from tests.analyzer.brute_history import (
    as_blocks,
    as_lines,
    is_causal,
    is_doubtful,
    random_history,
)

SEEDS = int(os.environ.get("CASCADE_SEEDS", "100"))

CASES = next(
    (cases for folder in Path(__file__).parents if (cases := folder / "shared" / "cases").is_dir()),
    Path("there are none"),
)

REAL = sorted((*CASES.glob("histories/**/*.txt"), *CASES.glob("histories_register/*.txt")))


def judged(tmp_path, text):
    file = tmp_path / "history.txt"
    file.write_text(text)
    return judge_history(read_history(file))


def test_as_by_its_definition_in_both_forms(tmp_path):
    sound = 0
    doubtful: Counter[str] = Counter()
    for seed in range(SEEDS):
        told = random_history(seed)
        for text in (as_blocks(told), as_lines(told)):
            in_blocks = "(" not in text
            want = is_causal(told, in_blocks)
            verdict = judged(tmp_path, text).verdict
            if not is_doubtful(told, in_blocks):
                assert verdict == ("ok" if want else "violated"), (seed, text)
                sound += want
            else:
                # Nothing that another choice of what was seen would explain; and never for certain.
                assert verdict == "unknown" or (verdict == "violated" and not want), (seed, text)
                doubtful[verdict] += 1
    assert SEEDS // 3 < sound < SEEDS * 4 // 3
    assert min(doubtful["unknown"], doubtful["violated"]) >= SEEDS // 20


ANOMALIES = {
    "thin air": "r 1 7\n",
    "own write not seen": "w 1 1\nr 1 0\n",
    "future read": "r 1 1\nw 1 1\n",
    "intermediate read": "w 1 1\nw 1 2\n=====\nr 1 1\n",
    "stale read": "w 1 1\n-----\nw 1 2\n-----\nw 2 1\n=====\nr 2 1\n-----\nr 1 1\n",
    "cyclic causes": "r 1 1\n-----\nw 2 1\n=====\nr 2 1\n-----\nw 1 1\n",
    "conflicting orders": "w 1 1\n=====\nw 1 2\n=====\nr 1 1\n-----\nr 1 2\n=====\nr 1 2\n-----\nr 1 1\n",
}


@pytest.mark.parametrize("name", ANOMALIES)
def test_each_anomaly_by_its_name(tmp_path, name):
    answer = judged(tmp_path, ANOMALIES[name])
    assert answer.verdict == "violated"
    assert {one.name for one in answer.anomalies} == {name}
    assert all("line " in one.sentence for one in answer.anomalies)


ALMOST = {
    "lost update": "r 1 0\nw 1 1\n=====\nr 1 0\nw 1 2\n",
    "long fork": "w 1 1\n=====\nw 2 1\n=====\nr 1 1\nr 2 0\n=====\nr 2 1\nr 1 0\n",
    "own last write": "w 1 1\nw 1 2\nr 1 2\n",
    "initial value before anything": "r 1 0\n-----\nw 1 1\n=====\nr 1 0\n",
}


@pytest.mark.parametrize("name", ALMOST)
def test_what_causal_consistency_allows(tmp_path, name):
    assert judged(tmp_path, ALMOST[name]).verdict == "ok"


def test_a_value_written_twice_is_unknown(tmp_path):
    answer = judged(tmp_path, "w 1 1\n=====\nw 1 1\n=====\nr 1 1\n")
    assert answer.verdict == "unknown"
    assert "line 3" in answer.reason and "line 5" in answer.reason


REPEATED = "w 1 1\n=====\nw 1 1\n=====\nr 1 1\n=====\n"


@pytest.mark.parametrize("name", ANOMALIES)
def test_what_is_wrong_whichever_write_was_seen_stays(tmp_path, name):
    text = REPEATED.replace(" 1 1", " 9 1") + ANOMALIES[name]
    assert {one.name for one in judged(tmp_path, text).anomalies} == {name}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("r 1 1\nw 1 1\nw 1 1\n", "future read"),
        ("w 1 1\nw 1 2\n=====\nw 1 1\nw 1 3\n=====\nr 1 1\n", "intermediate read"),
    ],
)
def test_neither_write_could_be_seen(tmp_path, text, name):
    assert [one.name for one in judged(tmp_path, text).anomalies] == [name]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("w(1,1,1,1)\nr(1,0,1,2)\nw(1,0,2,3)\n", "line 3"),  # stale, were it the initial one
        ("w(1,0,1,1)\nw(1,2,1,1)\nr(1,0,2,2)\n", "line 1"),  # overwritten, were it that write
        ("r(1,0,1,1)\nw(1,0,1,1)\n", "line 2"),
        ("r(1,0,1,1)\nw(2,1,1,1)\nr(2,1,2,2)\nw(1,0,2,3)\n", "line 4"),  # a circle, were it that
    ],
)
def test_a_written_0_may_be_the_initial_one(tmp_path, text, line):
    answer = judged(tmp_path, text)
    assert (answer.verdict, answer.anomalies) == ("unknown", [])
    assert line in answer.reason and "initial value" in answer.reason


def test_in_blocks_a_written_0_is_the_initial_value_written_out(tmp_path):
    assert judged(tmp_path, "w 1 0\n=====\nr 1 0\n").verdict == "ok"
    answer = judged(tmp_path, "r 1 0\nw 2 1\n=====\nr 2 1\n-----\nw 1 0\n")
    assert [one.name for one in answer.anomalies] == ["cyclic causes"]
    assert judged(tmp_path, "w 1 0\n=====\nw 1 0\n=====\nr 1 0\n").verdict == "unknown"


def test_a_repeated_value_that_no_read_depends_on(tmp_path):
    text = "w 1 1\nr 1 1\n=====\nw 1 1\n=====\nw 2 0\nr 2 0\n"
    assert judged(tmp_path, text).verdict == "ok"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("r 1 1\nr(1,1,1,1)\n", "line 2"),
        ("r 1\n", "line 1"),
        ("w 1 1\nread 2 2\n", "line 2"),
        ("w 1 99999999999999999999999\n", "line 1"),
        ("-----\n", "no operation"),
        ("", "no operation"),
    ],
)
def test_what_is_no_history_is_refused_with_its_line(tmp_path, text, said):
    with pytest.raises(BadTrace, match=said):
        judged(tmp_path, text)


def test_cascade_analyze_takes_a_history(tmp_path, capsys):
    file = tmp_path / "history.txt"
    file.write_text(ANOMALIES["stale read"])
    assert looks_like_history(file)
    assert main(["analyze", str(file)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("VIOLATED: 1 read") and "stale read" in said
    assert main(["analyze", str(file), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["verdict"], data["num_sessions"], data["num_operations"]) == ("violated", 2, 5)
    assert (data["schema_version"], data["kind"]) == (1, "history")
    file.write_text(ALMOST["long fork"])
    assert main(["analyze", str(file)]) == 0
    assert capsys.readouterr().out.startswith("OK: ")
    assert main(["analyze", str(file), "--write"]) == 2
    assert "--write" in capsys.readouterr().err
    file.write_text("hello\n")
    assert not looks_like_history(file)
    assert main(["analyze", str(file)]) == 2


@pytest.mark.parametrize("text", ["r 1 0", "r(1,0,1,1)", "w 1 1\nr 1 1", "-----\nr 1 0"])
def test_a_history_without_a_final_newline_is_one(tmp_path, text):
    file = tmp_path / "history.txt"
    file.write_text(text)
    assert looks_like_history(file)
    assert main(["analyze", str(file)]) == 0


def test_a_long_history_is_told_by_its_whole_lines(tmp_path):
    file = tmp_path / "history.txt"
    for pad in range(8):  # the head ends inside, before and after a line
        file.write_text("w 1 1" + " " * pad + "\n" + "r 1 1\n" * 2000)
        assert looks_like_history(file)


@pytest.mark.skipif(not REAL, reason="the folder of real cases is not here")
@pytest.mark.parametrize(
    "file", REAL, ids=["-".join(f.with_suffix("").relative_to(CASES).parts[-3:]) for f in REAL]
)
def test_real_histories(file):
    good = "causal" in file.parts or file.stem == "galera"
    assert judge_history(read_history(file)).verdict == ("ok" if good else "violated")


@pytest.mark.long
def test_a_million_operations_of_512_sessions(tmp_path):
    from tests.analyzer.serial_history import serial_history

    file = tmp_path / "large.txt"
    serial_history(file, num_operations=1_000_000, num_sessions=512)
    judged(tmp_path, ANOMALIES["stale read"])  # compiled
    began = time.monotonic()
    answer = judge_history(read_history(file))
    assert answer.verdict == "ok"
    assert time.monotonic() - began < 5.0


def many_sessions(num, every):
    """Sessions of one transaction each; every so many read what the one before wrote."""
    return "\n=====\n".join(
        f"w {i} 1" + (f"\nr {i - 1} 1" if i and i % every == 0 else "") for i in range(num)
    )


def test_sessions_of_one_transaction_give_their_clocks_back(tmp_path, monkeypatch):
    judged(tmp_path, ANOMALIES["stale read"])  # compiled
    monkeypatch.setattr("analyzer.database.causal.MAX_CLOCK_BYTES", 32 << 20)
    began = time.process_time()
    assert judged(tmp_path, many_sessions(100_000, every=10)).verdict == "ok"
    assert time.process_time() - began < 10.0


def test_a_history_too_large_for_its_memory_is_refused(tmp_path, monkeypatch):
    # All see the first one's write, and are seen by the last, so none of their clocks is free.
    monkeypatch.setattr("analyzer.database.causal.MAX_CLOCK_BYTES", 1 << 20)
    num = 1000
    told = ["w 0 1", *(f"r 0 1\nw {i} 1" for i in range(1, num))]
    told.append("\n".join(f"r {i} 1" for i in range(num)))
    with pytest.raises(BadTrace, match="1,001 sessions"):
        judged(tmp_path, "\n=====\n".join(told))
    monkeypatch.setattr("analyzer.database.causal.MAX_CLOCK_BYTES", 16 << 20)
    assert judged(tmp_path, "\n=====\n".join(told)).verdict == "ok"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("r 1 0\nx y\n", "line 2 is no operation of a history"),
        ("a note to myself\n", "line 1 is no operation of a history"),
        ("", "the file holds no operation"),
    ],
)
def test_a_text_file_that_is_no_history_says_where(tmp_path, capsys, text, said):
    file = tmp_path / "notes.txt"
    file.write_text(text)
    assert main(["analyze", str(file)]) == 2
    assert said in capsys.readouterr().err
