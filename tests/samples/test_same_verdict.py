"""Changes that mean nothing: the report is the same report."""

from __future__ import annotations

import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.samples import broken_state, broken_walks
from tests.samples.doctor import Doctored

RANK_COLUMNS = {"rank", "peer", "origin_rank", "subject_rank", "root"}
BROKEN_ONES = (
    broken_walks.debt_never_settled,
    broken_walks.one_rank_under_another_regime,
    broken_state.applied_dot_that_its_author_never_issued,
)


@pytest.fixture(params=["clean", "kill-one", *BROKEN_ONES], ids=lambda p: getattr(p, "__name__", p))
def copy(request, doctored) -> Doctored:
    """A sample, or a broken copy of one."""
    if isinstance(request.param, str):
        d = doctored(request.param)
    else:
        request.param(d := doctored())
    d.save()
    return d


def _report(ask, path):
    answer = ask("analyze", path, "--json")
    report = answer.json
    assert report.pop("inputs") == [str(path)]
    return answer.code, report


def _files(d: Doctored):
    return sorted((d.path / "events").rglob("*.parquet"))


def _rewrite(file, change) -> None:
    table = change(pq.read_table(file, partitioning=None))
    pq.write_table(table, file)


def test_rows_in_any_order_and_files(copy, ask):
    before = _report(ask, copy.path)
    for file in _files(copy):
        table = pq.read_table(file, partitioning=None)
        order = random.Random(7).sample(range(table.num_rows), table.num_rows)
        shuffled = table.take(pa.array(order))
        third = table.num_rows // 3
        for i, part in enumerate((shuffled[:third], shuffled[third:])):
            pq.write_table(part, file.with_name(f"part{i}.parquet"))
        file.unlink()
    assert _report(ask, copy.path) == before


def test_unknown_columns_and_tables(copy, ask):
    before = _report(ask, copy.path)
    for file in _files(copy):
        _rewrite(file, lambda t: t.append_column("mood", pa.array(["fine"] * t.num_rows)))
    other = copy.path / "events" / "moods"
    other.mkdir()
    pq.write_table(pa.table({"mood": ["fine"]}), other / "rows.parquet")
    code, report = _report(ask, copy.path)
    assert report.pop("not_supplied") == [
        *before[1].pop("not_supplied"),
        "events/moods: a table that this release does not know, ignored",
    ]
    assert (code, report) == before


def test_exact_copies_of_rows(copy, ask):
    code, before = _report(ask, copy.path)
    for file in _files(copy):
        shutil.copyfile(file, file.with_name("copy.parquet"))
    again, report = _report(ask, copy.path)
    assert again == code
    said = report.pop("not_supplied")
    assert said and all("are there twice; one copy each is read" in line for line in said)
    before.pop("not_supplied")
    assert report == before


HOURS = 5 * 3600 * 10**9


def test_another_time_of_day(copy, ask):
    code, before = _report(ask, copy.path)
    for _, row in copy.every():
        for column in [c for c in row if c.endswith("_ns") and c != "mono_ns"]:
            row[column] = row[column] and row[column] + HOURS
    for column in ("created_ns", "ended_ns"):
        copy.meta[column] += HOURS
    again, report = _report(ask, copy.save(renumber=False))
    assert again == code
    assert _earlier(report) == before


def _earlier(value, key=""):
    if isinstance(value, dict):
        return {k: _earlier(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_earlier(v) for v in value]
    return value - HOURS if key == "wall_ns" else value


TURNED = {0: 0, 1: 3, 2: 1, 3: 2, 4: 4}
"""Rank 0 stays: the author is the lowest rank, and the agents come last."""


def test_ranks_by_other_numbers(copy, ask):
    code, before = _report(ask, copy.path)
    for _, row in copy.every():
        row.update(_turned(row))
    again, report = _report(ask, copy.save(renumber=False))
    assert again == code
    same = ("code", "verdict", "num_checked", "num_violations")
    assert [[c[k] for k in same] for c in report["checks"]] == [
        [c[k] for k in same] for c in before["checks"]
    ]
    assert _named(report["violations"]) == _named(before["violations"], TURNED)
    waits = {r["rank"]: r for r in report["waits"]["by_rank"]}
    for row in before["waits"]["by_rank"]:
        turned = waits[TURNED[row["rank"]]]
        assert turned["waited_s"] == pytest.approx(row["waited_s"])
        assert turned["caused_s"] == pytest.approx(row["caused_s"])


def _named(violations, names=None):
    return sorted(
        (v["code"], names[v["rank"]] if names else v["rank"], v["incarnation"], v["seq"])
        for v in violations
    )


def _turned(value, key=""):
    if isinstance(value, dict):
        return {k: _turned(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_turned(v) for v in value]
    return TURNED.get(value, value) if key in RANK_COLUMNS else value
