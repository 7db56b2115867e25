"""Doctored copies of the samples: one promise broken, one report, at the row that the contract says."""

from __future__ import annotations

import pytest

from analyzer.codes import NEVER_VIOLATED
from analyzer.judge import rules
from tests.samples import broken_state, broken_walks
from tests.samples.broken import BROKEN

REGISTERS = (broken_state, broken_walks)
SAID_OF_A_CIRCLE = "A3"
"""Reported at any row of the circle; it has a test of its own."""


@pytest.mark.parametrize(
    ("code", "sample", "change"),
    [pytest.param(*case, id=f"{case[0]}-{case[2].__name__}") for case in BROKEN],
)
def test_it_is_found_and_named(doctored, ask, code, sample, change):
    d = doctored(sample)
    reports = change(d)
    path = d.save()
    want = sorted((c, row["rank"], row["incarnation"], row["seq"]) for c, row in reports)
    answer = ask("analyze", path, "--json")
    sentences = [v["sentence"] for v in answer.json["violations"]]
    assert answer.broken == want, sentences
    assert (answer.code, answer.json["verdict"]) == (1, "violated")
    assert answer.codes("violated") == {c for c, _ in reports}
    assert answer.codes("unknown") == set()
    check = answer.check(code)
    assert check["num_violations"] == sum(c == code for c, _ in reports)
    assert check["reason"] in sentences

    told = ask("analyze", path)
    assert (told.code, told.err) == (1, "")
    assert told.words.startswith("VIOLATED: ")
    for v in answer.json["violations"][:10]:
        assert f"{v['code']} {v['name']}: {v['sentence']}" in told.words
        assert f"at rank {v['rank']}, event {v['seq']}, group world" in told.words


def test_every_rule_that_can_accuse_has_a_copy_that_trips_it():
    accusing = set(rules()) - NEVER_VIOLATED - {SAID_OF_A_CIRCLE}
    assert {code for code, _, _ in BROKEN} == accusing
