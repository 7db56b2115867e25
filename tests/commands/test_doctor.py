"""The doctor finds what is wrong and says what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.commands import _doctor_checks as checks
from dashboard.commands import main

ROOT = Path(__file__).parents[2]


def test_it_says_what_it_found(capsys):
    code = main(["doctor", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == (0 if answer["fit"] else 2)
    found = {f["check"]: f for f in answer["findings"]}
    assert {"python", "msgspec", "duckdb", "torch", "nvml", "clock source", "/dev/shm"} <= set(
        found
    )
    assert found["packages"]["status"] == "ok"
    assert main(["doctor"]) == code
    assert "msgspec" in capsys.readouterr().out


def test_another_package_of_our_name_is_found(tmp_path):
    """As people meet it: some other project's ``collector`` lies first on the path."""
    (tmp_path / "collector").mkdir()
    (tmp_path / "collector" / "__init__.py").write_text("")
    code = "import sys; from dashboard.commands import main; sys.exit(main(['doctor', '--json']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    bad = [f for f in json.loads(done.stdout)["findings"] if f["status"] == "bad"]
    assert [f["check"] for f in bad] == ["package collector"]
    assert str(tmp_path) in bad[0]["found"]


def test_a_missing_extra_is_a_note_and_a_missing_need_is_bad(monkeypatch):
    def absent(name):
        raise checks.PackageNotFoundError(name)

    monkeypatch.setattr(checks, "version", absent)
    found = {f.check: f for f in checks.packages()}
    assert (found["duckdb"].status, found["msgspec"].status) == ("note", "bad")
    assert "cascade-timelines[server]" in found["duckdb"].fix


def test_a_full_disk_and_a_small_shm_are_bad(monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda path: usage)
    findings = [*checks.disk(), *checks.shared_memory()]
    assert [f.status for f in findings] == ["bad", "bad"]
    assert all(f.fix for f in findings)


@pytest.mark.parametrize(
    ("source", "status"), [("tsc\n", "ok"), ("hpet\n", "note"), (None, "note")]
)
def test_a_slow_clock_is_noted(tmp_path, monkeypatch, source, status):
    if source:
        (tmp_path / "clock").write_text(source)
    monkeypatch.setattr(checks, "_CLOCK", tmp_path / "clock")
    assert next(checks.clock()).status == status
