"""The journal: what comes back after the agent's own death, whatever the last write looked like."""

from __future__ import annotations

import pytest

from cascade_runtime.agent.journal import Journal, Memory
from cascade_runtime.agent.protocol import Ballot, DebtInfo
from cascade_runtime.vocabulary.identity import Actor, EventRef
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.spool_format import HEADER
from tests.agent.facts import dead, view

DEBT = DebtInfo(debt_id="1/strong", relaxed=Regime.STRONG, new_epoch=1, object=None)
FACTS = [
    ("promised", Ballot(1, 0)),
    ("accepted", (Ballot(1, 0), view(0, 1, epoch=1))),
    ("committed", view(0, 1)),
    ("spawned", (Actor(0), 41)),
    ("spawned", (Actor(0, 1), 42)),
    ("exited", (Actor(0), -9)),
    ("dead", (Actor(0), dead(3, 4))),
    ("evidence", (Actor(0), EventRef(100, 0, 7))),
    ("evidence", (Actor(0), EventRef(100, 1, 2))),
    ("debt_opened", DEBT),
    ("promised", Ballot(2, 1)),
]
ALL = Memory(
    num_starts=1,
    promised=Ballot(2, 1),
    accepted=(Ballot(1, 0), view(0, 1, epoch=1)),
    walking=True,
    views=[view(0, 1)],
    spawned={0: (Actor(0, 1), 42)},
    dead=[(Actor(0), dead(3, 4))],
    evidence={Actor(0): EventRef(100, 0, 7)},
    exited=[(Actor(0), -9)],
    debts={DEBT.debt_id: DEBT},
)


def written(path, facts=FACTS):
    journal = Journal(path)
    for what, value in facts:
        journal.append(what, value)
    journal.close()
    return path


def test_all_comes_back(tmp_path):
    path = written(tmp_path / "journal")
    assert Journal.read(path) == ALL
    journal = Journal(path)
    assert journal.memory == ALL
    journal.close()


def test_a_closed_debt_and_a_finished_walk_are_over(tmp_path):
    more = [("debt_closed", DEBT.debt_id), ("debt_closed", "unknown"), ("committed", view(0))]
    memory = Journal.read(written(tmp_path / "journal", FACTS + more))
    assert (memory.debts, memory.walking) == ({}, False)
    assert memory.promised == Ballot(2, 1)  # holds over epochs


def test_starts_are_counted(tmp_path):
    path = tmp_path / "journal"
    for starts in range(3):
        journal = Journal(path)
        assert journal.memory.num_starts == starts
        journal.close()


def test_no_journal_is_an_empty_memory(tmp_path):
    assert Journal.read(tmp_path / "none") == Memory()


def test_a_tail_torn_at_any_byte_is_dropped_and_written_over(tmp_path):
    path = tmp_path / "journal"
    ends, before = [HEADER.size], []
    for count in range(len(FACTS) + 1):
        path.unlink(missing_ok=True)
        before.append(Journal.read(written(path, FACTS[:count])))
        ends.append(path.stat().st_size)
    whole = path.read_bytes()
    states = [Memory(), *before]
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        expected = states[max((i for i, end in enumerate(ends) if end <= size), default=0)]
        assert Journal.read(path) == expected, f"torn at byte {size}"
        journal = Journal(path)
        assert journal.memory == expected
        journal.append("promised", Ballot(9, 9))
        journal.close()
        after = Journal.read(path)
        assert (after.num_starts, after.promised) == (expected.num_starts + 1, Ballot(9, 9))


@pytest.mark.parametrize("flipped", [8, -1])
def test_a_record_with_a_wrong_checksum_ends_the_journal(tmp_path, flipped):
    path = written(tmp_path / "journal", FACTS[:1])
    first = path.stat().st_size
    path.unlink()
    data = bytearray(written(path, FACTS[:2]).read_bytes())
    data[first + flipped if flipped > 0 else flipped] ^= 1
    path.write_bytes(bytes(data))
    assert Journal.read(path) == Memory(num_starts=1, promised=Ballot(1, 0), walking=True)
