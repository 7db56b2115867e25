"""State that breaks a promise: sources, sessions, replicas and collectives that do not agree."""

from __future__ import annotations

from tests.samples.broken import Reports, breaks
from tests.samples.doctor import Doctored, Row, dot


def _mid(rows: list[Row]) -> Row:
    return rows[len(rows) // 2]


def _strong(d: Doctored, table: str, rank: int, **is_: object) -> Row:
    """A row in the middle of the STRONG stretch after the climb."""
    return _mid(d.rows(table, rank=rank, epoch=2, **is_))


@breaks("A1")
def applied_dot_that_its_author_never_issued(d: Doctored) -> Reports:
    row = _strong(d, "updates", 1, action="applied")
    after = d.row("updates", rank=1, action="applied", counter=row["counter"] + 1)
    row["counter"] = 900_000
    return [("A1", row), ("S3", after)]


@breaks("A1", "clean")
def read_of_a_dot_that_nobody_issued(d: Doctored) -> Reports:
    row = _mid(d.rows("reads", rank=3))
    row.update(origin_rank=1, counter=5)
    return [("A1", row)]


@breaks("A1")
def applied_dot_of_a_stranger(d: Doctored) -> Reports:
    row = _strong(d, "updates", 1, action="applied")
    after = d.row("updates", rank=1, action="applied", counter=row["counter"] + 1)
    row["origin_rank"] = 9
    return [("A1", row), ("S3", after)]


@breaks("A1")
def frontier_that_covers_an_unissued_dot(d: Doctored) -> Reports:
    row = d.rows("reads", epoch=1, rank=3)[-1]
    row["frontier"] = [*row["frontier"], dot(1, 7)]
    return [("A1", row)]


@breaks("A5")
def dot_issued_twice(d: Doctored) -> Reports:
    row = _strong(d, "updates", 0, action="issued")
    return [("A5", d.insert("updates", row, after=row))]


@breaks("A5")
def dot_with_two_contents(d: Doctored) -> Reports:
    first = _strong(d, "updates", 1, action="applied")
    second = d.row("updates", rank=3, action="applied", counter=first["counter"])
    first["digest"], second["digest"] = "aa", "bb"
    return [("A5", second)]


def _causal_reads(d: Doctored, rank: int) -> list[Row]:
    return d.rows("reads", epoch=1, rank=rank, object="params/0")


@breaks("S1")
def author_reads_without_its_own_update(d: Doctored) -> Reports:
    """Not before the earlier read either, so that it does not go back as well."""
    *_, earlier, row = _causal_reads(d, 0)
    row["frontier"] = earlier["frontier"]
    return [("S1", row)]


@breaks("S2")
def reader_goes_back(d: Doctored) -> Reports:
    *_, before, _, row = _causal_reads(d, 1)
    row["frontier"] = before["frontier"]
    return [("S2", row)]


@breaks("S2")
def reader_goes_back_under_strong(d: Doctored) -> Reports:
    """The other ranks read the newer version in that step, so the replicas part as well."""
    row = _strong(d, "reads", 1, object="params/0")
    row["version"] -= 2
    return [("G1", row), ("S2", row)]


@breaks("R2")
def update_applied_twice(d: Doctored) -> Reports:
    row = _strong(d, "updates", 1, action="applied")
    return [("R2", d.insert("updates", row, after=row))]


@breaks("G1")
def one_digest_of_three_differs(d: Doctored) -> Reports:
    row = _strong(d, "digests", 3)
    row["digest"] = "0" * 32
    return [("G1", row)]


@breaks("G1", "clean")
def digests_are_two_against_two(d: Doctored) -> Reports:
    first = _mid(d.rows("digests", rank=0))
    rows = [
        d.row("digests", rank=rank, object=first["object"], version=first["version"])
        for rank in range(4)
    ]
    assert len({row["digest"] for row in rows}) == 1
    for row in rows[2:]:
        row["digest"] = "0" * 32
    return [("G1", row) for row in rows]


@breaks("G1")
def equal_frontiers_with_different_bytes(d: Doctored) -> Reports:
    row = d.row("digests", lambda r: r["frontier"] is not None, rank=1)
    row["digest"] = "0" * 32
    return [("G1", row)]


@breaks("G1")
def one_reader_is_a_version_behind(d: Doctored) -> Reports:
    row = _strong(d, "reads", 1, object="params/0")
    row["version"] -= 1
    return [("G1", row)]


def _odd_collective(column: str, value: object):
    def change(d: Doctored) -> Reports:
        row = _strong(d, "collectives", 3, label="bucket/0")
        row[column] = value
        return [("G2", row)]

    change.__name__ = f"one_member_has_another_{column}"
    return change


for _column, _value in (
    ("op", "all_gather"), ("dtype", "float16"), ("label", "bucket/1"), ("num_bytes", 8),
):  # fmt: skip
    breaks("G2")(_odd_collective(_column, _value))
