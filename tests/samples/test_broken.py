"""Doctored copies of the samples: one promise broken, one report, at the row that the contract says."""

from __future__ import annotations

import pytest

from analyzer.codes import NEVER_VIOLATED
from analyzer.judge import rules
from tests.samples import broken_causes, broken_state, broken_walks
from tests.samples.broken import BROKEN

REGISTERS = (broken_causes, broken_state, broken_walks)
NO_WAY_LEFT = {
    "writes_seen_to_and_fro",
    "two_views_of_one_epoch",
    "rank_is_stuck_where_others_went_on",
}
"""They also take the way by which a rank knew of an update, or add one that is seen without."""

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
    assert answer.codes("unknown") == ({"A4"} if change.__name__ in NO_WAY_LEFT else set())
    check = answer.check(code)
    assert check["num_violations"] == sum(c == code for c, _ in reports)
    assert check["reason"] in sentences


@pytest.mark.parametrize(
    ("sample", "change"),
    [pytest.param(*case[1:], id=case[0]) for case in {c: (c, s, f) for c, s, f in BROKEN}.values()],
)
def test_the_text_says_the_same(doctored, ask, sample, change):
    d = doctored(sample)
    change(d)
    path = d.save()
    violations = ask("analyze", path, "--json").json["violations"]
    told = ask("analyze", path)
    assert (told.code, told.err) == (1, "")
    several = "s" if len(violations) > 1 else ""
    assert told.words.startswith(f"VIOLATED: {len(violations):,} broken promise{several} found")
    for v in violations[:10]:
        assert f"{v['code']} {v['name']}: {v['sentence']}" in told.words
        assert f"at rank {v['rank']}, event {v['seq']}, group world" in told.words


def test_circles_of_causes_are_reported_at_one_of_their_events(doctored, ask):
    """An update is issued a step after everyone applied it: one circle alone, one with the others."""
    d = doctored()
    heard = [row["seq"] for row in d.rows("messages", rank=0)]
    late, place = next(  # a place up to which no message comes that would close a circle of its own
        (row, place)
        for row in d.rows("updates", rank=0, epoch=1, action="issued", object="optim")[:-1]
        for place in [d.row("updates", rank=0, action="applied", counter=row["counter"] + 3)]
        if not any(row["seq"] < seq < place["seq"] for seq in heard)
    )
    d.move(late, after=place)
    answer = ask("analyze", d.save(), "--json")
    assert answer.code == 1
    assert answer.codes("violated") == {"A3"}
    assert answer.check("A3")["num_violations"] == 2
    for found in answer.json["violations"]:
        circle = [(step["rank"], step["seq"]) for step in found["witness"]]
        assert circle[0] == circle[-1] == (found["rank"], found["seq"])
        assert (late["rank"], late["seq"]) in circle


def test_every_rule_that_can_accuse_has_a_copy_that_trips_it():
    accusing = set(rules()) - NEVER_VIOLATED - {SAID_OF_A_CIRCLE}
    assert {code for code, _, _ in BROKEN} == accusing
