"""The recorded samples: found by name, ok, and the report says what it proved."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from analyzer.codes import NAMES
from analyzer.judge import rules
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
from tests.samples.doctor import Doctored

SAMPLES = ["clean", "kill-one"]
PROVED = ("A1", "S1", "S2", "G1", "G2", "G3", "L4", "L1")
AFTER_A_FALL = ("L6", "L5", "L3", "R3")


def sample_meta(sample: str) -> dict[str, Any]:
    """What the sample says of itself."""
    return json.loads((sample_traces()[sample] / "trace.json").read_text())


def _numbers_before(words: str, code: str) -> int:
    return int(re.search(rf"each of ([\d,]+) [^\[\]]* \[{code}\]", words)[1].replace(",", ""))


@pytest.mark.parametrize("sample", SAMPLES)
def test_it_is_ok_and_every_rule_was_asked(ask, sample):
    answer = ask("analyze", sample, "--json")
    assert (answer.code, answer.err, answer.json["verdict"]) == (0, "", "ok")
    recorded = frozenset(sample_meta(sample)["recorded_tables"])
    assert answer.codes("ok") == {c for c, r in rules().items() if not r.lacks(recorded)}
    assert answer.codes("not_checked") == set(NAMES) - answer.codes("ok") <= {"T2"}
    assert answer.codes("unknown") == answer.codes("violated") == set()
    assert answer.json["violations"] == answer.json["suspects"] == answer.json["gaps"] == []
    assert answer.json["not_supplied"] == []
    assert answer.json["first_divergence"] is None
    assert {c["reason"] for c in answer.json["checks"] if c["verdict"] == "ok"} == {None}


def _counts(sample: str) -> dict[str, int]:
    """What there was to prove, counted from the rows."""
    with open_trace(sample_traces()[sample]) as source:
        reads = source.table("reads").to_pylist()
        updates = source.table("updates").to_pylist()
        collectives = source.table("collectives").to_pylist()
    applied = sum(u["action"] == "applied" for u in updates)
    named = sum(r["counter"] is not None or bool(r["frontier"]) for r in reads)
    return {
        "A1": applied + named,
        "S1": sum(r["use"] == "forward" for r in reads),
        "S2": len(reads),
        "G2": len({(c["comm_id"], c["cseq"]) for c in collectives}),
    }


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_text_says_what_was_proved_and_how_much(ask, sample):
    told = ask("analyze", sample)
    assert told.code == 0
    assert told.words.startswith("OK: no promise was broken")
    for code, count in _counts(sample).items():
        assert _numbers_before(told.words, code) == count, code
    for code in PROVED + (AFTER_A_FALL if sample == "kill-one" else ()):
        assert f"[{code}]" in told.words
    assert "None" not in told.out


def test_the_text_of_kill_one_tells_its_story(ask):
    told = ask("analyze", "kill-one").words
    for part in (
        "epoch 1: STRONG to CAUSAL on GPU_FAIL_STOP: members {0, 1, 3}, missing {2}",
        "epoch 2: CAUSAL to STRONG on STABLE_SYNC: members {0, 1, 3}",
        "2 debts opened, 1 settled, 1 written off",
    ):
        assert part in told


def test_the_walks_of_kill_one(ask):
    report = ask("analyze", "kill-one", "--json").json
    walks = [(w["from_regime"], w["to_regime"], w["fault"]) for w in report["transitions"]]
    assert walks == [
        ("STRONG", "CAUSAL", "GPU_FAIL_STOP"),
        ("CAUSAL", "STRONG", "STABLE_SYNC"),
        ("STRONG", "STRONG", None),
    ]
    assert report["debt"] == {"opened": 2, "settled": 2, "open": 0, "written_off": 1}
    assert [w["missing"] for w in report["transitions"]] == [[2], [], []]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_copy_with_nothing_changed_is_the_same(ask, tmp_path, sample):
    """The doctor itself does no harm."""
    before = ask("analyze", sample, "--json").json
    after = ask("analyze", Doctored(sample, tmp_path).save(), "--json").json
    before.pop("inputs"), after.pop("inputs")
    assert after == before


def test_a_sample_packed_into_a_zip_is_the_same(ask, tmp_path):
    import shutil

    path = shutil.make_archive(str(tmp_path / "k.cascade"), "zip", sample_traces()["kill-one"])
    before = ask("analyze", "kill-one", "--json").json
    after = ask("analyze", path, "--json").json
    assert after.pop("inputs") == [path]
    before.pop("inputs")
    assert after == before
