"""What the kernel takes away, tried in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from collector.sql import landlock

ROOT = Path(__file__).parents[3]

CODE = """
import os, socket, sys, threading
sys.path.insert(0, sys.argv[3])
from collector.sql import landlock
allowed, other = sys.argv[1:3]
assert landlock.read_only_below([allowed])
def attempt(name, does):
    try:
        does()
    except OSError as error:
        print(name, type(error).__name__)
    else:
        print(name, "done")
def connect():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
def everything():
    attempt("read", lambda: open(allowed + "/a").read())
    attempt("list", lambda: os.listdir(allowed))
    attempt("link", lambda: open(allowed + "/link").read())
    attempt("write", lambda: open(allowed + "/a", "w"))
    attempt("truncate", lambda: os.truncate(allowed + "/a", 0))
    attempt("make", lambda: open(allowed + "/b", "x"))
    attempt("remove", lambda: os.unlink(allowed + "/a"))
    attempt("folder", lambda: os.mkdir(allowed + "/c"))
    attempt("symlink", lambda: os.symlink("a", allowed + "/d"))
    attempt("other", lambda: open(other + "/a").read())
    attempt("listing", lambda: os.listdir("/"))
    attempt("environ", lambda: open("/proc/self/environ").read())
    attempt("execute", lambda: os.execv(sys.executable, [sys.executable]))
    attempt("bind", connect)
    attempt("signal", lambda: os.kill(os.getppid(), 0))
thread = threading.Thread(target=everything)  # as DuckDB's threads: started after it
thread.start()
thread.join()
"""


@pytest.mark.skipif(landlock.abi() < 6, reason="this kernel has no Landlock, or an older one")
def test_reading_below_the_folder_is_all_that_is_left(tmp_path):
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    for folder in (allowed, other):
        folder.mkdir()
        (folder / "a").write_text("content")
    (allowed / "link").symlink_to(other / "a")
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(allowed), str(other), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=60,
        # Coverage could not write its file any more, and would say so.
        env={k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")},
    )
    assert done.stderr == ""
    told = dict(line.split() for line in done.stdout.splitlines())
    assert {name for name, how in told.items() if how == "done"} == {"read", "list"}
    assert set(told.values()) <= {"done", "PermissionError"}
    assert len(told) == 15
    assert (allowed / "a").read_text() == "content"
    assert sorted(p.name for p in allowed.iterdir()) == ["a", "link"]


def test_a_kernel_without_it_is_told_and_not_an_error(monkeypatch):
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    assert landlock.read_only_below(["/"]) is False
