"""Traces on disk from told stories, and what is told of them."""

from __future__ import annotations

import msgspec

from analyzer import analyze
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.trace.trace_writer import write_meta, write_results, write_tables
from dashboard.story.model import Story as Told
from dashboard.story.teller import Teller as Speaker
from dashboard.story.trace_source import TraceRun
from tests.story import Story

DEADLINE_S = 120.0


def trace_of(told, folder, *, judged=False, name=None, **how):
    """A trace folder with the rows of a told story (or of a source of one)."""
    source = told.source(**how) if isinstance(told, Story) else told
    meta = source.meta
    if name is not None:
        meta = msgspec.structs.replace(meta, name=name)
    write_tables(folder, {table: source.table(table) for table in EVENT_TABLES})
    write_meta(folder, meta)
    if judged:
        analysis = analyze(source)
        write_results(folder, analysis.results, msgspec.json.encode(analysis.report))
    return folder


def story_of(path) -> Told:
    """The story of a trace once it is judged; it keeps what every story must keep."""
    run = TraceRun(path)
    try:
        assert run.wait_until_judged(DEADLINE_S), run.problem()
        story = Speaker(run).story().story
    finally:
        run.close()
    check(story)
    return story


def check(story: Told) -> None:
    """What holds of every story."""
    assert msgspec.json.decode(msgspec.json.encode(story))
    columns = [getattr(story.regimes, name) for name in story.regimes.__struct_fields__]
    assert len({len(column) for column in columns}) == 1
    regimes = story.regimes
    order = list(zip(regimes.group, regimes.rank, regimes.start_ns, strict=True))
    assert order == sorted(order)
    assert all(s <= e for s, e in zip(regimes.start_ns, regimes.end_ns, strict=True))
    assert set(regimes.group) <= set(story.groups)
    assert len({v.id for v in story.violations}) == len(story.violations) <= 500
    assert all(len(v.steps) <= 5 for v in story.violations)
    assert len({i.id for i in story.incidents}) == len(story.incidents)
    selectable = {f"violation:{v.id}" for v in story.violations}
    for incident in story.incidents:
        assert incident.a_ns < incident.b_ns
        assert incident.a_ns <= incident.at_ns <= incident.end_ns <= incident.b_ns
        assert incident.sentence[-1] in ".!?…", incident.sentence
        if incident.sel and incident.sel.startswith("violation:"):
            assert incident.sel in selectable
    severities = [("error", "warning", "info").index(i.severity) for i in story.incidents]
    assert severities == sorted(severities)
    assert len(story.marks) <= 2000 and len(story.marks) <= story.num_marks
    assert story.verdict.sentence.strip() == story.verdict.sentence != ""
    for text in (story.verdict.sentence, *(m.sentence for m in story.marks)):
        assert not any(ord(c) < 32 for c in text)
