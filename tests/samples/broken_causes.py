"""Cause and effect, bounds, loads, plans and leases that break a promise."""

from __future__ import annotations

from tests.samples.broken import Reports, breaks
from tests.samples.doctor import Doctored, Row, actor, dot

NEW_AUTHOR = "kill-rank0"
"""The sample in which another rank issues updates from a step on."""


def _mid(rows: list[Row]) -> Row:
    return rows[len(rows) // 2]


def _strong_step(d: Doctored, rank: int, later: int = 0) -> Row:
    """The beginning of a step in the middle of the STRONG stretch after the climb, or later."""
    rows = d.rows("steps", rank=rank, epoch=2, phase="begin")
    return rows[len(rows) // 2 + later]


@breaks("S3")
def one_authors_updates_the_wrong_way_round(d: Doctored) -> Reports:
    first = _mid(d.rows("updates", rank=1, epoch=2, action="applied", object="params/0"))
    second = d.row("updates", rank=1, action="applied", counter=first["counter"] + 1)
    d.move(first, after=second)
    return [("S3", second)]


def _first_of_new_author(d: Doctored, rank: int) -> list[Row]:
    """The rank's applied rows of the first step that rank 1 is the author of."""
    issued = [r for r in d.rows("updates", rank=1, action="issued") if r["deps"]]
    assert {r["counter"] for r in issued} == {1, 2, 3}
    return d.rows("updates", lambda r: r["counter"] < 4, rank=rank, action="applied", origin_rank=1)


def _last_of_old_author(d: Doctored, rank: int) -> list[Row]:
    return d.rows("updates", rank=rank, action="applied", origin_rank=0)[-3:]


@breaks("C1", NEW_AUTHOR)
def cause_that_was_not_applied(d: Doctored) -> Reports:
    d.remove(_last_of_old_author(d, 3)[-1])
    return [("C1", row) for row in _first_of_new_author(d, 3)]


@breaks("S4", NEW_AUTHOR)
def cause_that_was_read_and_not_listed(d: Doctored) -> Reports:
    early = _first_of_new_author(d, 3)[0]
    for row in d.rows("updates", rank=1, action="issued"):
        row["deps"] = []
    d.remove(*_last_of_old_author(d, 3)[1:])
    return [("S4", early)]


@breaks("C2", NEW_AUTHOR)
def effect_folded_without_its_cause(d: Doctored) -> Reports:
    row = d.row("reads", rank=3, epoch=1, object="params/0")
    row["frontier"] = [x for x in row["frontier"] if x["rank"] == 1]
    return [("C2", row)]


@breaks("C3")
def writes_seen_to_and_fro(d: Doctored) -> Reports:
    """Ranks 1 and 3 write at once; rank 1 sees the other's write after its own, and then its own."""
    begin = {rank: _strong_step(d, rank) for rank in (1, 3)}
    for rank, row in begin.items():
        d.insert(
            "updates", row, after=row,
            action="issued", object="x", origin_rank=rank, origin_incarnation=0, counter=1,
        )  # fmt: skip
    reads = []
    for number, rank in enumerate((3, 1)):
        row = d.insert(
            "reads", begin[1], after=begin[1],
            object="x", use="observe", origin_rank=rank, origin_incarnation=0, counter=1,
        )  # fmt: skip
        row["seq"] += (number + 1) / 10
        reads.append(row)
    return [("C3", reads[0])]


@breaks("B1")
def bound_that_nobody_keeps(d: Doctored) -> Reports:
    for row in d.rows("objects", object="optim"):
        row["staleness_bound"] = 0
    return [("B1", row) for row in d.rows("updates", epoch=1, action="issued", object="optim")]


@breaks("R1")
def settled_without_the_last_updates(d: Doctored) -> Reports:
    settled = d.row("debt", action="settled")
    settled["resolved"] = []
    settled["frontier"] = [dot(x["rank"], x["counter"] - 3) for x in settled["frontier"]]
    return [("R1", d.row("debt", action="opened", debt_id=settled["debt_id"]))]


def _checkpoint(d: Doctored, after: Row, action: str, name: str, upto: int) -> Row:
    """A checkpoints row that holds rank 0's updates up to a counter."""
    row = d.insert(
        "checkpoints", after, after=after, action=action, checkpoint_id=name, durable=True,
        scope="group", frontier=[dot(0, upto)],
    )  # fmt: skip
    return row


@breaks("A2")
def read_of_what_a_load_took_back(d: Doctored) -> Reports:
    """The author goes back by ten updates, and its next reads name one that is gone."""
    begin = _strong_step(d, 0)
    reads = d.rows("reads", rank=0, step=begin["step"])
    _checkpoint(d, d.rows("steps", rank=0)[1], "saved", "k", reads[0]["counter"] - 10)
    _checkpoint(d, begin, "loaded", "k", reads[0]["counter"] - 10)
    return [("A2", row) for row in reads]


@breaks("M1")
def resume_from_the_older_of_two(d: Doctored) -> Reports:
    for row in d.rows("membership", reason="started"):
        row["joined"] = [a for a in row["joined"] or () if a != actor(3)]
    last = d.last(3)
    for number, (action, name, upto) in enumerate(
        [("saved", "old", 3), ("saved", "new", 6), ("loaded", "old", 3)]
    ):
        row = _checkpoint(d, last, action, name, upto)
        row["seq"] = last["seq"] + 1 + number
    return [("M1", row)]


@breaks("M2")
def group_that_stands_in_for_one_of_other_members(d: Doctored) -> Reports:
    groups = d.rows("groups", epoch=2)
    d.insert(
        "groups", groups[0], after=d.rows("steps", rank=0)[0], comm_id="ghost", label="ghost",
        members=[*groups[0]["members"], actor(d.agent)], replaces=None,
    )  # fmt: skip
    for row in groups:
        row["replaces"] = "ghost"
    return [("M2", d.row("collectives", rank=0, comm_id=groups[0]["comm_id"]))]


@breaks("T1")
def act_on_a_plan_that_was_replaced(d: Doctored) -> Reports:
    begin = _strong_step(d, 3)
    d.insert("objects", begin, after=begin, object="plan", kind="plan", update_kind="assign")
    for number in (1, 2):
        row = d.insert(
            "updates", begin, after=begin, action="issued", object="plan",
            origin_rank=3, origin_incarnation=0, counter=number, version=number,
        )  # fmt: skip
        row["seq"] += number / 10
    later = _strong_step(d, 1, 2)
    act = d.insert(
        "reads", later, after=later, object="plan", use="act",
        origin_rank=3, origin_incarnation=0, counter=1, version=1,
    )  # fmt: skip
    return [("T1", act)]


@breaks("T2")
def lease_used_after_it_was_taken_back(d: Doctored) -> Reports:
    d.meta["recorded_tables"].append("leases")
    begin, later = _strong_step(d, 3), _strong_step(d, 1, 2)
    d.insert("leases", begin, after=begin, action="revoked", lease_id="L", object="kv/0")
    used = d.insert("leases", later, after=later, action="used", lease_id="L", object="kv/0")
    return [("T2", used)]
