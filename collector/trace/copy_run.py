"""Takes one run out of a collector's data folder as a trace of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from uuid import uuid4

from collector.trace.durable import sync_folder


def copy_run(run: Path, into: Path) -> None:
    """Put a run's trace.json, rows and orphaned completions into a trace folder.

    Segments never change, so they are linked where that is possible and take no room. Files that a
    collector writes again are copied. No collector may be writing the run now.

    Args:
        run: the run's folder in a data folder.
        into: made when it is not there; what it holds already (a spool) stays.

    Raises:
        OSError: something cannot be read or written.
    """
    into.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run / "trace.json", into / "trace.json")
    for file in sorted(run.glob("events/*/*.parquet")):
        target = into / file.relative_to(run).with_name(f"{uuid4().hex}.parquet")
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(file, target)
        sync_folder(target.parent)
    for file in sorted(run.glob("spool/*/*.seg")):
        folder = into / "spool" / file.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        number = max((int(f.stem) for f in folder.glob("[0-9]*.seg")), default=-1) + 1
        shutil.copyfile(file, folder / f"{number}.seg")


def link_or_copy(file: Path, target: Path) -> None:
    """A file that never changes, once more, at no cost where that is possible."""
    try:
        os.link(file, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(file, target)
