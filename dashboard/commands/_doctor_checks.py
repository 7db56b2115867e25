"""What ``cascade doctor`` looks at. Each check answers what it found and what to do."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Literal, NamedTuple

from dashboard.commands._parser import DIST

Status = Literal["ok", "note", "bad"]
"""``note``: works, but worth knowing. ``bad``: something will not work."""

_OURS = ("cascade_runtime", "collector", "analyzer", "dashboard")
_PACKAGES = {
    "msgspec": None,
    "zstandard": None,
    "duckdb": "server",
    "fastapi": "server",
    "uvicorn": "server",
    "pyarrow": "server",
    "numpy": "server",
    "numba": "server",
    "torch": "demo",
}
"""Distributions that we use, and the extra that brings each."""

_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies"})
_SHM = Path("/dev/shm")  # noqa: S108  # the shared memory itself, no temporary file
_LOW_DISK = 1 << 30
_LOW_SHM = 64 << 20


class Finding(NamedTuple):
    """One line of the doctor's answer."""

    check: str
    status: Status
    found: str
    fix: str = ""


def python_version() -> Iterator[Finding]:
    """The interpreter."""
    status: Status = "ok" if sys.version_info >= (3, 11) else "bad"
    yield Finding("python", status, platform.python_version(), "" if status == "ok" else "use 3.11")


def packages() -> Iterator[Finding]:
    """Versions of what we use."""
    for name, extra in _PACKAGES.items():
        try:
            yield Finding(name, "ok", version(name))
        except PackageNotFoundError:
            brings = f"{DIST}[{extra}]" if extra else DIST
            status: Status = "note" if extra else "bad"
            yield Finding(name, status, "not installed", f"pip install '{brings}' brings it")


def names() -> Iterator[Finding]:
    """Whether our four package names are ours: others use names like ``collector`` too."""
    roots: dict[Path, list[str]] = {}
    for name in _OURS:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            yield Finding(f"package {name}", "bad", f"cannot be imported: {error}", "install again")
            continue
        place = Path(getattr(module, "__file__", None) or ".").resolve().parent
        if getattr(module, "__dist__", None) != DIST:
            fix = f"something else is called {name}: run in an environment without it"
            yield Finding(f"package {name}", "bad", f"another package, at {place}", fix)
        else:
            roots.setdefault(place.parent, []).append(name)
    if len(roots) > 1:
        found = "; ".join(f"{', '.join(who)} in {where}" for where, who in roots.items())
        yield Finding("packages", "bad", found, "two installations are mixed: remove one")
    elif roots:
        ((where, who),) = roots.items()
        yield Finding("packages", "ok", f"{', '.join(who)} in {where}")


def nvml() -> Iterator[Finding]:
    """Whether GPUs can be measured."""
    try:
        distribution("pynvml")
    except PackageNotFoundError:
        pass
    else:
        fix = "pip uninstall pynvml; pip install nvidia-ml-py"
        yield Finding("pynvml", "note", "the old shim, which makes torch warn", fix)
    try:
        library = importlib.import_module("pynvml")
    except ImportError:
        fix = f"where there are GPUs: pip install '{DIST}[gpu]'"
        yield Finding("nvml", "note", "not installed; GPUs are not measured", fix)
        return
    try:
        library.nvmlInit()
        count, driver = library.nvmlDeviceGetCount(), library.nvmlSystemGetDriverVersion()
        library.nvmlShutdown()
    except library.NVMLError as error:
        yield Finding("nvml", "note", f"no GPU can be measured: {error}")
    else:
        yield Finding("nvml", "ok", f"{count} GPUs, driver {driver}")


def clock() -> Iterator[Finding]:
    """The clock that rows are stamped with."""
    steps = f"steps of {time.get_clock_info('monotonic').resolution * 1e9:.0f} ns"
    try:
        source = _CLOCK.read_text().strip()
    except OSError:
        yield Finding("clock source", "note", f"not known; {steps}")
        return
    if source in _SLOW_CLOCKS:
        fix = "reading it costs a microsecond or more; boot with clocksource=tsc if the host can"
        yield Finding("clock source", "note", f"{source}; {steps}", fix)
    else:
        yield Finding("clock source", "ok", f"{source}; {steps}")


def disk() -> Iterator[Finding]:
    """Room for traces here."""
    free = shutil.disk_usage(Path.cwd()).free
    low = free < _LOW_DISK
    fix = "traces are written here by default: make room, or name another folder"
    yield Finding("free disk", "bad" if low else "ok", _size(free), fix if low else "")


def shared_memory() -> Iterator[Finding]:
    """``/dev/shm``, which data loaders and collectives of the job use."""
    if not _SHM.is_dir() or not os.access(_SHM, os.W_OK):
        yield Finding(str(_SHM), "bad", "cannot be written", "mount a tmpfs there")
        return
    free = shutil.disk_usage(_SHM).free
    low = free < _LOW_SHM
    fix = "in a container: run it with --shm-size=1g or more"
    yield Finding(str(_SHM), "bad" if low else "ok", f"{_size(free)} free", fix if low else "")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    python_version,
    packages,
    names,
    nvml,
    clock,
    disk,
    shared_memory,
)


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.1f} GiB"
