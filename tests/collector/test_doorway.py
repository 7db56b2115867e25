"""Two records become the one row of a collective."""

from __future__ import annotations

import msgspec

from collector.doorway import Doorway
from collector.schema.rows import table_to_events
from collector.trace.trace_writer import write_tables
from tests.collector.traces import done, entered, notes_of, rows_of, segment, step, write_spool


def rows(door: Doorway, table: str = "collectives") -> list:
    tables = door.drain()
    return table_to_events(table, tables[table]) if table in tables else []


def test_entered_without_done_never_completed():
    door = Doorway()
    door.take(entered(0))
    (row,) = rows(door)
    assert (row.completed, row.done_seq) == (False, None)


def test_done_that_comes_first_is_joined_too():
    door = Doorway()
    door.take(done(0, payload_digest="ab"))
    door.take(entered(0))
    (row,) = rows(door)
    assert (row.completed, row.done_seq, row.payload_digest) == (True, 1, "ab")
    assert door.orphans() == []


def test_done_joins_by_run_rank_incarnation_and_seq():
    door = Doorway()
    door.take(entered(0, rank=0))
    for wrong in (done(1), done(0, rank=1), msgspec.structs.replace(done(0), incarnation=1)):
        door.take(wrong)
    door.take(msgspec.structs.replace(done(0), run_id="other"))
    assert len(door.orphans()) == 4
    assert rows(door)[0].completed is False


def test_a_row_that_is_whole_already_is_left_as_it_is():
    whole = entered(0, done_seq=4, completed=True)
    door = Doorway()
    door.take(whole)
    assert rows(door) == [whole]


def test_rows_come_out_in_batches_and_only_once():
    door = Doorway(batch_rows=2)
    for seq in range(5):
        door.take(step(seq))
    assert [row.seq for row in rows(door, "steps")] == [0, 1, 2, 3, 4]
    assert door.drain() == {}


def test_done_without_entered_is_a_note(trace):
    write_spool(trace, "0-0", segment([step(0), done(7)]))
    assert "collectives" not in rows_of(trace)
    assert any("1 completions of collectives" in note for note in notes_of(trace))


def test_done_in_the_spool_completes_a_row_that_is_stored_open(trace):
    write_tables(trace, {"collectives": [entered(0, completed=False), entered(1, completed=False)]})
    write_spool(trace, "0-0", segment([done(0)], first_seq=2))
    first, second = rows_of(trace)["collectives"]
    assert (first.completed, first.done_seq) == (True, 1)
    assert (second.completed, second.done_seq) == (False, None)
    assert notes_of(trace) == []


def test_done_in_the_spool_of_a_row_that_is_stored_complete_changes_nothing(trace):
    write_tables(trace, {"collectives": [entered(0, completed=True, done_seq=1)]})
    write_spool(trace, "0-0", segment([done(0)], first_seq=2))
    assert rows_of(trace)["collectives"] == [entered(0, completed=True, done_seq=1)]
    assert notes_of(trace) == []
