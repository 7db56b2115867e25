"""What the floors expect of each other can be met by plain classes."""

from __future__ import annotations

from cascade_runtime.vocabulary import ports


class Empty:
    """The least that can be analyzed."""

    meta = None
    inputs: tuple[str, ...] = ()
    notes: tuple[ports.SourceNote, ...] = ()

    def table(self, name):
        return name


def test_a_trace_source_is_known_by_what_it_has():
    assert isinstance(Empty(), ports.TraceSource)
    assert not isinstance(object(), ports.TraceSource)


def test_a_source_note_says_where_and_what():
    note = ports.SourceNote("spool/2-0/7.seg", "a torn record at byte 96")
    assert (note.where, note.what) == ("spool/2-0/7.seg", "a torn record at byte 96")
