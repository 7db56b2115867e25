"""Evidence that is taken away: never ok, never an accusation, and the reason says whose it was."""

from __future__ import annotations

import pytest

ABSENCE = {
    "A1", "A2", "A4", "S3", "C1", "R2", "R3", "R4", "L3", "L5", "L7", "L8", "M1", "M2", "G3", "G4",
}  # fmt: skip
"""Checks that accuse by what is absent."""


def _of(d, rank):
    return [row for _, row in d.every(rank=rank)]


def _unknown(ask, path, reason, also=()):
    answer = ask("analyze", path, "--json")
    assert answer.json["violations"] == []
    assert (answer.code, answer.json["verdict"]) == (3, "unknown")
    assert answer.codes("unknown") == ABSENCE | set(also)
    assert reason in answer.check("L5")["reason"]
    told = ask("analyze", path)
    assert told.code == 3
    assert told.words.startswith("UNKNOWN: ")
    assert reason in told.words
    return answer, told


@pytest.mark.parametrize("sample", ["clean", "kill-one"])
@pytest.mark.parametrize("rank", range(5))
def test_a_rank_without_rows_is_named(doctored, ask, sample, rank):
    d = doctored(sample)
    is_agent = rank == d.agent
    d.remove(*_of(d, rank))
    reason = f"rank {rank} has no events" + " (a host agent)" * is_agent
    answer, told = _unknown(ask, d.save(), reason)
    assert answer.json["not_supplied"] == [f"rank {rank}: no events"]
    assert f"Not supplied - rank {rank}: no events" in told.words


def test_an_introduction_alone_is_no_evidence(doctored, ask):
    d = doctored()
    d.remove(*(row for row in _of(d, 1) if row["seq"] > 0))
    _unknown(ask, d.save(), "rank 1 has no events")


def test_a_hole_is_unknown_with_its_numbers(doctored, ask):
    d = doctored()
    d.remove(*(row for row in _of(d, 1) if 700 < row["seq"] < 710))
    _unknown(ask, d.save(renumber=False), "rank 1 lacks events 701 to 709 (missing)", also=["Q1"])


def test_a_beginning_that_is_cut_off_is_unknown(doctored, ask):
    d = doctored()
    d.remove(*(row for row in _of(d, 1) if row["seq"] < 300))
    _unknown(ask, d.save(renumber=False), "rank 1 lacks events 0 to 299 (missing)", also=["Q5"])


@pytest.mark.parametrize("rank", [0, 1, 3, 4])
def test_an_end_that_is_cut_off_is_unknown(doctored, ask, rank):
    """No hole shows it; that others heard more of the actor than it has rows does."""
    d = doctored()
    mine = d.rows("messages", rank=rank, direction="send")
    cut = mine[len(mine) // 2]["seq"]
    d.remove(*(row for row in _of(d, rank) if row["seq"] >= cut))
    name = "agent 4" if rank == 4 else f"rank {rank}"
    _unknown(ask, d.save(), f"{name} lacks some events")


def test_a_gap_that_is_written_down_is_unknown_but_no_hole(doctored, ask):
    d = doctored()
    lost = [row for row in _of(d, 1) if 700 < row["seq"] < 710]
    d.remove(*lost)
    _add_gap(d, lost, tables=None)
    reason = "rank 1 lacks events 701 to 709 (dropped)"
    answer, told = _unknown(ask, d.save(renumber=False), reason)
    assert answer.json["gaps"][0]["reason"] == "dropped"
    assert "gap at rank 1: events 701 to 709 (any table)" in told.words


def test_a_gap_touches_only_what_its_tables_decide(doctored, ask):
    d = doctored()
    lost = d.rows("reads", lambda r: 700 < r["seq"] < 740, rank=1)
    d.remove(*lost)
    for row in lost:
        _add_gap(d, [row], tables=["reads"])
    answer = ask("analyze", d.save(renumber=False), "--json")
    assert (answer.code, answer.broken) == (3, [])
    assert answer.codes("unknown") == {"A1", "A4", "L5"}


def test_a_gap_of_samples_of_the_device_changes_nothing(doctored, ask):
    """Rows of health, gpu, compute or raw that were dropped touch no promise."""
    d = doctored()
    _add_gap(d, [{"rank": 1, "seq": d.last(1)["seq"] + 1}], tables=["gpu"])
    answer = ask("analyze", d.save(renumber=False), "--json")
    assert (answer.code, answer.broken, answer.codes("unknown")) == (0, [], set())


def test_without_the_agents_messages_nobody_is_accused(doctored, ask):
    """Taken out with their numbers closed up, so that only the other ends show that they were."""
    d = doctored()
    d.remove(*d.rows("messages", rank=d.agent))
    reason = "received a message from it whose sending is not recorded"
    _unknown(ask, d.save(), reason)


def test_messages_not_recorded_is_said(doctored, ask):
    d = doctored()
    d.remove(*d.rows("messages"))
    d.meta["recorded_tables"].remove("messages")
    answer = ask("analyze", d.save(), "--json")
    assert (answer.code, answer.broken) == (3, [])
    assert "messages was not recorded" in answer.check("L5")["reason"]


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        ("debt", {"L3", "R1", "R3", "R4"}),
        ("transitions", {"L1", "L2", "L3", "L5", "L6", "L7", "L8", "R4"}),
        ("collectives", {"G2", "G3", "G4", "M2", "Q4"}),
        (
            "updates",
            {
                "A1",
                "A2",
                "A3",
                "A4",
                "A5",
                "B1",
                "C1",
                "C2",
                "C3",
                "R2",
                "S1",
                "S2",
                "S3",
                "S4",
                "T1",
            },
        ),
        ("checkpoints", {"A2", "M1"}),
        ("membership", {"M2", "M3"}),
    ],
)
def test_a_table_that_was_not_recorded_is_not_checked(doctored, ask, table, codes):
    before = ask("analyze", "kill-one", "--json").codes("not_checked")
    d = doctored()
    d.tables[table] = []
    d.meta["recorded_tables"].remove(table)
    answer = ask("analyze", d.save(), "--json")
    assert answer.codes("not_checked") - before == codes
    assert {answer.check(code)["reason"] for code in codes} == {f"{table} was not recorded"}
    assert answer.broken == []


@pytest.mark.parametrize("ended", [None, 1_795_977_003_778_910_641])
def test_an_unclean_end_with_a_debt_open_is_unknown(doctored, ask, ended):
    """Nobody climbed yet: the debt may still have been settled."""
    d = doctored()
    d.meta.update(clean_end=False, ended_ns=ended)
    opened = d.rows("debt", action="opened")
    end = opened[-1]["wall_ns"]
    d.remove(*(row for _, row in d.every() if row["wall_ns"] > end))
    answer = ask("analyze", d.save(), "--json")
    assert (answer.code, answer.broken) == (3, [])
    reason = answer.check("R3")["reason"]
    assert reason == f"the run did not end cleanly, and debt {opened[0]['debt_id']} stood open"
    assert answer.json["debt"]["open"] == len(opened)


def _add_gap(d, lost, tables):
    """A gaps row as the recorder writes it: after all else, naming what is not there."""
    last = d.last(lost[0]["rank"])
    numbers = [row["seq"] for row in lost]
    gap = d.insert("gaps", last, after=last, tables=tables, num_events=len(lost), reason="dropped")
    gap.update(first_seq=min(numbers), last_seq=max(numbers))
    gap["seq"] = max(last["seq"], *numbers) + 1
