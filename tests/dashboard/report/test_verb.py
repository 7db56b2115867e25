"""``cascade report``: what it writes, what it refuses, what it says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from collector.trace.samples import sample_traces
from dashboard.commands import main
from dashboard.report.write import written
from tests.dashboard.report.kit import report_of

ROOT = Path(__file__).parents[3]


def test_it_writes_one_file_and_says_what_is_in_it(tmp_path, capsys):
    path = tmp_path / "r.html"
    assert main(["report", "kill-one", "-o", str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["report"] == str(path) and said["bytes"] == path.stat().st_size < 500_000
    assert (said["verdict"], said["num_violations"], said["num_ranks"]) == ("ok", 0, 4)
    assert said["columns"] == 8192 and 0 < said["column_s"] < 0.001
    assert [one.name for one in tmp_path.iterdir()] == ["r.html"]
    text = path.read_text()
    assert str(tmp_path) not in text and str(ROOT) not in text

    before = path.read_bytes()
    assert main(["report", "kill-one", "-o", str(path)]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main(["report", "kill-one", "-o", str(path), "--force"]) == 0
    out = capsys.readouterr().out
    assert "No promise was broken." in out and "without a network" in out
    assert path.read_bytes() == before  # the same run makes the same file


@pytest.mark.parametrize("form", ["read-only folder", "zip"])
def test_a_trace_is_never_written(tmp_path, form):
    trace = tmp_path / "trace"
    shutil.copytree(sample_traces()["clean"], trace)
    if form == "zip":
        trace = Path(shutil.make_archive(str(tmp_path / "saved.cascade"), "zip", trace))
    else:
        for path in (trace, *trace.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in (trace, *trace.rglob("*"))}
    try:
        assert main(["report", str(trace), "-o", str(tmp_path / "r.html")]) == 0
        assert {path: path.stat().st_mtime_ns for path in (trace, *trace.rglob("*"))} == before
    finally:
        for path in tmp_path.rglob("*"):
            if path.is_dir():
                path.chmod(0o755)


def test_what_it_refuses(tmp_path, capsys):
    for words, said in (
        (["no-such-trace", "-o", str(tmp_path / "r.html")], "samples: "),
        (["clean", "-o", str(tmp_path)], "this is a folder"),
        (["clean", "-o", str(tmp_path / "no" / "r.html")], "there is no such folder"),
    ):
        assert main(["report", *words]) == 2
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_came_in_between_stays(tmp_path):
    from cascade_runtime.vocabulary.errors import BadUsage

    path = tmp_path / "r.html"
    path.write_text("somebody else's")
    with pytest.raises(BadUsage, match="already"):
        written(path, b"ours", force=False)
    assert path.read_text() == "somebody else's"
    written(path, b"ours", force=True)
    assert path.read_text() == "ours" and list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    from cascade_runtime.vocabulary.errors import BadUsage

    def full(_number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(BadUsage, match="No space left"):
        written(tmp_path / "r.html", b"x", force=False)
    assert list(tmp_path.iterdir()) == []


def test_it_needs_no_torch(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from dashboard.commands import main\n"
        f"raise SystemExit(main(['report', 'clean', '-o', {str(tmp_path / 'r.html')!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_a_trace_that_has_no_rows(tmp_path):
    from tests.dashboard.story.kit import trace_of
    from tests.story import Story

    trace = trace_of(Story(ranks=0, start=False), tmp_path / "t")
    assert report_of(trace, tmp_path / "r.html").stat().st_size < 500_000
