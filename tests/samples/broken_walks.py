"""Walks that break a promise: the L rules, and the debt that goes with them."""

from __future__ import annotations

from copy import deepcopy

from tests.samples.broken import Reports, breaks, commit, nobody_leaves, operations
from tests.samples.doctor import Doctored, Row, actor


@breaks("L1")
def policy_without_the_climb(d: Doctored) -> Reports:
    d.meta["policy"]["rows"] = [r for r in d.meta["policy"]["rows"] if r["fault"] != "STABLE_SYNC"]
    return [("L1", commit(d, 2))]


@breaks("L2")
def strong_from_eventual(d: Doctored) -> Reports:
    """The fall is a legal one to EVENTUAL, with both debts; the climb skips CAUSAL."""
    for _, row in d.every(epoch=1):
        row["regime"] = "EVENTUAL"
    for row in (*d.rows("transitions", new_epoch=1), d.row("decisions", fault="GPU_FAIL_STOP")):
        row.update(to_regime="EVENTUAL", fault="STATE_CORRUPTION")
    d.row("health", signal="dead")["fault"] = "STATE_CORRUPTION"
    for row in (*d.rows("transitions", new_epoch=2), d.row("decisions", fault="STABLE_SYNC")):
        row["from_regime"] = "EVENTUAL"
    for row in d.rows("debt", object=None):
        d.insert("debt", row, after=row, debt_id="1/causal", relaxed="CAUSAL")
    return [("L1", commit(d, 2)), ("L2", commit(d, 2))]


def _settled(d: Doctored) -> Row:
    return d.row("debt", action="settled")


def _own_commit(d: Doctored, row: Row) -> Row:
    return d.row("transitions", phase="committed", new_epoch=2, rank=row["rank"])


@breaks("L3")
def debt_settled_after_the_climb(d: Doctored) -> Reports:
    d.move(_settled(d), after=_own_commit(d, _settled(d)))
    return [("L3", commit(d, 2))]


@breaks("L3")
def debt_written_off_after_the_climb(d: Doctored) -> Reports:
    row = d.row("debt", action="written_off")
    d.move(row, after=_own_commit(d, row))
    return [("L3", commit(d, 2))]


@breaks("L3")
def debt_never_settled(d: Doctored) -> Reports:
    d.remove(_settled(d))
    return [("L3", commit(d, 2)), ("R3", d.row("debt", action="opened", object=None))]


@breaks("L3")
def debt_settled_before_the_climb_by_the_clock_only(d: Doctored) -> Reports:
    """Another rank settles it early, and no message carries that to the proposer."""
    settled = _settled(d)
    d.remove(settled)
    last_word = d.rows(
        "messages", lambda r: r["seq"] < _own_commit(d, r)["seq"], rank=1, direction="send"
    )[-1]
    moved = d.insert("debt", settled, after=last_word)
    assert moved["wall_ns"] < commit(d, 2)["wall_ns"]
    return [("L3", commit(d, 2))]


@breaks("L4")
def one_read_under_another_regime(d: Doctored) -> Reports:
    row = d.rows("reads", epoch=1, rank=1)[-1]
    row["regime"] = "STRONG"
    return [("L4", row)]


@breaks("L4")
def one_rank_under_another_regime(d: Doctored) -> Reports:
    rows = operations(d, epoch=1, rank=3)
    for row in rows:
        row["regime"] = "STRONG"
    return [("L4", row) for row in rows]


@breaks("L4", "clean")
def two_regimes_where_nobody_committed_one(d: Doctored) -> Reports:
    d.rows("reads", epoch=0, rank=1)[-1]["regime"] = "CAUSAL"
    return [("L4", row) for row in operations(d, epoch=0)]


@breaks("L4")
def two_views_of_one_epoch(d: Doctored) -> Reports:
    own = d.row("transitions", phase="committed", new_epoch=2, rank=3)
    own.update(members=[actor(0), actor(3)], cohorts=[[actor(0), actor(3)]])
    return [("L4", row) for row in d.rows("transitions", phase="committed", new_epoch=2)]


@breaks("L4")
def strong_with_two_cohorts(d: Doctored) -> Reports:
    rows = d.rows("transitions", phase="committed", new_epoch=2)
    for row in rows:
        row["cohorts"] = [[actor(0), actor(1)], [actor(3)]]
    return [("L4", row) for row in rows]


@breaks("L5")
def read_of_the_old_epoch_after_the_commit(d: Doctored) -> Reports:
    row = d.row("reads", epoch=2, rank=1)
    row.update(epoch=1, regime="CAUSAL")
    return [("L5", row)]


@breaks("L5")
def read_of_the_new_epoch_before_the_acknowledgements(d: Doctored) -> Reports:
    last = d.rows("reads", epoch=1, rank=1)[-1]
    return [("L5", d.insert("reads", last, after=last, epoch=2, regime="STRONG"))]


def _proposed(d: Doctored) -> Row:
    return d.row("transitions", phase="proposed", new_epoch=1)


@breaks("L6")
def fall_without_evidence(d: Doctored) -> Reports:
    _proposed(d)["evidence"] = []
    return [("L6", _proposed(d))]


@breaks("L6")
def fall_on_evidence_of_another_fault(d: Doctored) -> Reports:
    d.row("health", signal="dead")["fault"] = "LINK_DELAY_HIGH"
    return [("L6", _proposed(d))]


@breaks("L6")
def fall_on_evidence_that_came_later(d: Doctored) -> Reports:
    seen = d.row("health", signal="dead")
    later = d.insert("health", seen, after=_proposed(d))
    _proposed(d)["evidence"] = [actor(later["rank"]) | {"seq": later["seq"]}]
    return [("L6", _proposed(d))]


@breaks("L6")
def fall_on_evidence_that_does_not_exist(d: Doctored) -> Reports:
    _proposed(d)["evidence"] = [actor(d.agent) | {"seq": 100_000}]
    return [("L6", _proposed(d))]


@breaks("L7")
def rank_stays_and_does_not_commit(d: Doctored) -> Reports:
    """Ranks 0 and 1 leave, rank 3 is to stay: it hears of that commit and writes none of its own."""
    epoch = d.row("membership", reason="finished")["epoch"]
    for row in d.rows("transitions", new_epoch=epoch):
        row.update(members=[actor(3)], cohorts=[[actor(3)]])
    for row in d.rows("membership", epoch=epoch):
        row.update(members=[actor(3)], departed=[actor(0), actor(1)])
    d.remove(
        d.row("transitions", phase="committed", new_epoch=epoch, rank=3),
        d.row("membership", epoch=epoch, rank=3),
    )
    return [("L7", d.last(3))]


@breaks("L8")
def climb_that_nobody_decided(d: Doctored) -> Reports:
    d.remove(d.row("decisions", to_regime="STRONG"))
    return [("L8", commit(d, 2))]


@breaks("L8")
def climb_against_the_decision(d: Doctored) -> Reports:
    d.row("decisions", to_regime="STRONG")["changed"] = False
    return [("L8", commit(d, 2))]


@breaks("L8")
def climb_decided_after_its_proposal(d: Doctored) -> Reports:
    proposal = d.row("transitions", phase="proposed", new_epoch=2)
    d.move(d.row("decisions", to_regime="STRONG"), after=proposal)
    return [("L8", commit(d, 2))]


@breaks("R3")
def debt_opened_after_the_last_climb(d: Doctored) -> Reports:
    opened = d.row("debt", action="opened", object=None)
    late = d.insert("debt", opened, d.rows("steps", epoch=2, rank=0)[-1], debt_id="late")
    return [("R3", late)]


@breaks("R4")
def fall_without_a_debt(d: Doctored) -> Reports:
    d.remove(*d.rows("debt"))
    return [("R4", commit(d, 1))]


@breaks("M3")
def dead_rank_acts_in_the_next_epoch(d: Doctored) -> Reports:
    """It even heard of the commit, so its read is on the right side of the cut."""
    word = d.row("messages", epoch=1, rank=d.agent, direction="send", peer=0)
    sent = d.insert("messages", word, after=word, peer=2, channel_seq=900)
    heard = deepcopy(sent) | {"direction": "recv", "peer": d.agent}
    got = d.insert("messages", heard, after=d.last(2))
    return [("M3", d.insert("reads", d.row("reads", epoch=1, rank=1), after=got))]


@breaks("G3")
def rank_skips_a_collective(d: Doctored) -> Reports:
    nobody_leaves(d)
    skipped = d.row("collectives", epoch=2, rank=3, label="bucket/1")
    d.remove(skipped)
    for row in d.rows("collectives", comm_id=skipped["comm_id"], cseq=skipped["cseq"]):
        row.update(done_seq=None, complete_ns=None, completed=False)
    return [("G3", d.last(3))]


@breaks("G4")
def rank_is_stuck_where_others_went_on(d: Doctored) -> Reports:
    nobody_leaves(d)
    step = d.last(3)["step"]
    stuck = d.rows("collectives", rank=3, step=step)
    for row in stuck:
        row.update(done_seq=None, complete_ns=None, completed=False)
    return [("G4", stuck[-1])]
