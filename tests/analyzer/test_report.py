"""The report: its form, its text, the command, the page of rules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from analyzer import analyze
from analyzer.codes import NAMES
from analyzer.render import render
from analyzer.rules_page import rules_page
from cascade_runtime.vocabulary.ports import SourceNote
from cascade_runtime.vocabulary.report import Report
from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES
from collector.trace.trace_writer import write_meta, write_tables, write_views
from dashboard.commands import main
from tests.analyzer.runs import kill_one_run
from tests.analyzer.stories.every import STORIES
from tests.story import Story

ROOT = Path(__file__).parents[2]
CHECKER = ROOT.parent / "shared" / "tools" / "check_trace.py"


def save(story: Story, folder: Path, **source) -> Path:
    told = story.source(**source)
    write_meta(folder, told.meta)
    write_tables(folder, {name: told.table(name) for name in EVENT_TABLES})
    write_views(folder)
    return folder


def tripped() -> Story:
    told, _ = next(tell for code, kind, tell in STORIES if (code, kind) == ("L3", "trips"))()
    return told


def test_every_result_table_has_the_contracts_columns():
    results = analyze(kill_one_run().source()).results
    assert set(results) == set(RESULT_TABLES)
    for name, table in results.items():
        assert table.column_names == [c.name for c in RESULT_TABLES[name].columns], name
    assert results["checks"].num_rows == len(NAMES)


def test_report_survives_json():
    report = analyze(kill_one_run().source()).report
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


def test_empty_trace_is_unknown_not_ok():
    report = analyze(Story(ranks=0, start=False).source(recorded=[])).report
    assert report.verdict == "unknown"
    assert "could be checked" in render(report)


def test_notes_of_the_reader_are_passed_on():
    notes = [SourceNote("events/reads", "12 rows of other runs than run-1 were left out")]
    report = analyze(Story().source(notes=notes)).report
    assert "events/reads: 12 rows of other runs than run-1 were left out" in report.not_supplied


def test_gaps_name_the_checks_that_lost_something():
    s = Story(ranks=2)
    s.ranks[0].gap(*s.ranks[0].lose(3), tables=["debt"])
    report = analyze(s.source()).report
    (gap,) = report.gaps
    assert (gap["rank"], gap["first_seq"], gap["last_seq"]) == (0, 2, 4)
    assert gap["checks"] == ["R3", "R4", "L3"]


@pytest.mark.parametrize("width", [60, 100])
def test_text_keeps_to_the_width_and_says_the_verdict_first(width):
    for story in (kill_one_run(), tripped()):
        report = analyze(story.source()).report
        text = render(report, width=width)
        assert "\033" not in text
        assert all(len(line) <= width for line in text.splitlines())
        assert text.startswith(report.verdict.upper())


def test_text_of_a_violation_has_sentence_and_numbered_steps():
    text = render(analyze(tripped().source()).report)
    assert "agent 3 committed the climb to STRONG" in text
    assert "1) rank 0 opened debt" in text
    assert "[message] agent 3 received from rank 0" in text


def test_text_names_what_is_missing():
    text = render(analyze(kill_one_run().source(without=[1])).report)
    assert text.startswith("UNKNOWN")
    assert "rank 1 has no events, so what it did is not known" in text
    assert "rank 1: no events" in text


def test_colour_only_when_asked():
    report = analyze(tripped().source()).report
    assert "\033[31m" in render(report, colour=True)


def test_command_says_the_verdict_by_its_exit(tmp_path, capsys):
    good = save(kill_one_run(), tmp_path / "good")
    assert main(["analyze", str(good)]) == 0
    assert capsys.readouterr().out.startswith("OK")
    assert main(["analyze", str(save(tripped(), tmp_path / "bad"))]) == 1
    assert main(["analyze", str(save(kill_one_run(), tmp_path / "part", without=[1]))]) == 3
    assert main(["analyze", str(tmp_path / "none")]) == 2


def test_command_writes_results_only_when_asked(tmp_path, capsys):
    folder = save(kill_one_run(), tmp_path / "run")
    before = sorted(p.name for p in folder.rglob("*"))
    assert main(["analyze", str(folder), "--json"]) == 0
    assert sorted(p.name for p in folder.rglob("*")) == before
    report = json.loads(capsys.readouterr().out)
    assert [c["code"] for c in report["checks"]] == list(NAMES)
    assert main(["analyze", str(folder), "--write"]) == 0
    assert (folder / "results" / "checks").is_dir()


@pytest.mark.skipif(not CHECKER.exists(), reason="the checker of form is not on this machine")
def test_report_has_the_contracts_form(tmp_path, capsys):
    folder = save(tripped(), tmp_path / "run")
    main(["analyze", str(folder), "--json"])
    report = tmp_path / "report.json"
    report.write_text(capsys.readouterr().out)
    done = subprocess.run(
        [sys.executable, str(CHECKER), str(folder), "--report", str(report)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_rules_page_is_up_to_date():
    page = ROOT / "docs" / "rules.md"
    assert page.read_text(encoding="utf-8") == rules_page(), (
        "run: python -m analyzer.rules_page docs/rules.md"
    )


def test_importing_the_analyzer_loads_nothing_heavy():
    code = (
        "import analyzer, sys; print(*{'numpy', 'numba', 'pyarrow', 'duckdb'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == ""
