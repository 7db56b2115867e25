"""Temporary folders of jobs and zygotes: gone at the end, and those of killed ones at the next start."""

from __future__ import annotations

import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cascade_runtime.agent import run_folder
from cascade_runtime.agent.run_folder import (
    CONFIG,
    LONGEST_NAME,
    SOCKET_PATH_BYTES,
    ZYGOTE,
    held,
    make_run_folder,
    own_run_folders,
)
from cascade_runtime.vocabulary.errors import BadUsage

HOLDER = """
import sys
from pathlib import Path
from cascade_runtime.agent.run_folder import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
QUICK_ZYGOTE = "from cascade_runtime import zygote; zygote._preload = lambda: None; zygote.main()"


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not tmp_path: where that is long, run folders lie elsewhere.
    monkeypatch.setattr(tempfile, "tempdir", tempfile.mkdtemp())


def start(program: str, argument: Path) -> subprocess.Popen[bytes]:
    """A process that has said its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(argument)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdout.readline()
    return process


def end(process: subprocess.Popen[bytes], number: int | None = None) -> int:
    """Kill it, or close its stdin as the end of its parent would; its exit status."""
    if number is not None:
        process.send_signal(number)
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
    return process.wait(timeout=60)


@pytest.mark.chaos
@pytest.mark.parametrize("mark", [CONFIG, ZYGOTE])
def test_what_a_killed_process_left_goes_at_the_next_start(mark: str) -> None:
    folder = make_run_folder()
    holder = start(HOLDER, folder)
    (folder / mark).touch()
    another = make_run_folder()
    assert folder.exists()  # in use
    assert end(holder, signal.SIGKILL) == -signal.SIGKILL
    make_run_folder()
    assert not folder.exists()
    assert another.exists()  # being made


def test_several_may_hold_one(tmp_path: Path) -> None:
    folder = make_run_folder()
    (folder / CONFIG).touch()
    with held(folder):
        with held(folder):
            make_run_folder()
        make_run_folder()
        assert folder.exists()
    make_run_folder()
    assert not folder.exists()


def test_folders_and_links_of_others_stay(tmp_path: Path) -> None:
    temporary = Path(tempfile.gettempdir())
    other = tmp_path / "cascade-traces"
    other.mkdir()
    (other / CONFIG).touch()
    (temporary / "cascade-run-link").symlink_to(other)
    make_run_folder()
    assert (other / CONFIG).exists()


@pytest.mark.parametrize("name", ["a" * 60, "é" * 60])
def test_where_the_temporary_folder_s_path_is_long_sockets_lie_elsewhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / name
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    monkeypatch.setattr(run_folder, "SHORT_PLACE", short := tempfile.mkdtemp(dir="/tmp"))
    try:
        made = make_run_folder()
        assert made.parent == Path(short)
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(made / LONGEST_NAME))
        (made / CONFIG).touch()
        assert list(own_run_folders()) == [made], "cascade join finds its job there"
        make_run_folder()
        assert not made.exists(), "what is left there goes as well"
    finally:
        shutil.rmtree(short)


def test_a_path_as_long_as_a_socket_s_can_be_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "SHORT_PLACE", tempfile.gettempdir())
    room = SOCKET_PATH_BYTES - len(f"/cascade-run-12345678/{LONGEST_NAME}")
    base = tempfile.gettempdir()
    for more, stays in ((0, True), (1, False)):
        place = Path(base) / ("a" * (room - len(base) - 1 + more))
        place.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        assert (make_run_folder().parent == place) is stays


def test_where_no_folder_can_be_made_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tempfile.mkdtemp()
    Path(gone).rmdir()
    monkeypatch.setattr(tempfile, "tempdir", gone)
    with pytest.raises(BadUsage, match="TMPDIR"):
        make_run_folder()


@pytest.mark.parametrize("number", [None, signal.SIGINT])
def test_a_zygote_takes_its_folder_with_it(number: int | None) -> None:
    """Its parent's end closes its stdin, whatever the parent died of; Ctrl-C reaches it directly."""
    folder = make_run_folder()
    zygote = start(QUICK_ZYGOTE, folder / ZYGOTE)
    assert (folder / ZYGOTE).is_socket()
    end(zygote, number)
    assert not folder.exists()


def test_a_zygote_removes_nothing_but_its_socket(tmp_path: Path) -> None:
    zygote = start(QUICK_ZYGOTE, tmp_path / "z.sock")
    (tmp_path / "mine").touch()
    assert end(zygote) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_rank_that_ends_after_its_zygote_has_left_is_not_heard(tmp_path: Path) -> None:
    """The socket that wakes it up is closed by then: Python would complain once a signal."""
    program = (
        "import os, signal, sys; from pathlib import Path; from cascade_runtime import zygote; "
        "zygote._preload = lambda: None; zygote._listen(Path(sys.argv[1])); "
        "os.kill(os.getpid(), signal.SIGCHLD)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "z.sock")]
    ended = subprocess.run(command, input=b"", capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")
