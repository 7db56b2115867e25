"""What is kept on disk for all workers of a test run is found where it is kept."""

from __future__ import annotations

import os
import subprocess

import pytest

from dashboard import compiled
from tests import made_once


def test_what_was_made_is_not_made_again(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    source = tmp_path / "passes.py"
    source.touch()
    assert not compiled.is_compiled(source)
    kept = tmp_path / "__pycache__" / "passes.scan-12.py311.nbi"
    kept.parent.mkdir()
    kept.touch()
    assert compiled.is_compiled(source)
    os.utime(kept, (1, 1))
    assert not compiled.is_compiled(source)  # the source has changed since


def test_all_of_it_is_there_once_it_was_made():
    made_once.make()
    assert made_once.missing() == []


def test_who_waits_for_it_is_told_before(monkeypatch):
    done = []
    monkeypatch.setattr(compiled, "make", done.append)
    monkeypatch.setattr(compiled, "missing", lambda: [])
    compiled.make_once(done.append)
    assert done == []
    monkeypatch.setattr(compiled, "missing", lambda: ["pass"])
    compiled.make_once(done.append)
    assert done == ["compiling for this machine, once; it takes about half a minute ...", ["pass"]]


def test_where_nothing_can_be_kept_nobody_waits(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compiled.is_compiled(tmp_path / "passes.py")


def test_what_is_given_up_leaves_no_process(monkeypatch):
    started = []
    popen = subprocess.Popen

    def start(*words, **options):
        if started:
            raise KeyboardInterrupt
        started.append(popen(*words, **options))
        return started[0]

    monkeypatch.setattr(compiled.subprocess, "Popen", start)
    with pytest.raises(KeyboardInterrupt):
        compiled.make(["import time; time.sleep(600)", "pass"])
    assert started[0].poll() is not None
