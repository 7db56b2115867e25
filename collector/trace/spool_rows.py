"""Everything that lies in a trace's spool, as rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.events import CollectiveDone
from cascade_runtime.vocabulary.ports import SourceNote
from collector.doorway import Doorway
from collector.losses import Loss
from collector.spool_reader import SpoolFolder, spool_folders
from collector.trace.inside import Inside


@dataclass
class SpoolRows:
    """What a spool holds: rows by table, and what is to be said of it."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    folders: list[SpoolFolder] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    orphans: list[CollectiveDone] = field(default_factory=list)
    notes: list[SourceNote] = field(default_factory=list)
    num_other_runs: int = 0


def read_spool(inside: Inside, run_id: str, leave: frozenset[str] = frozenset()) -> SpoolRows:
    """Read the spool of a trace.

    Args:
        inside: the trace.
        run_id: rows of other runs are left out and counted.
        leave: names of folders that are not read.
    """
    folders = spool_folders(inside.path("spool"), inside)
    spool = SpoolRows(folders=[folder for folder in folders if folder.path.name not in leave])
    door = Doorway()
    for folder in spool.folders:
        folder.read_into(door)
        spool.losses += folder.losses
        spool.notes += folder.notes
    spool.orphans = door.orphans()
    spool.tables = door.drain()
    _keep_run(spool, run_id)
    return spool


def _keep_run(spool: SpoolRows, run_id: str) -> None:
    for name, rows in spool.tables.items():
        mine = rows.filter(pc.equal(rows["run_id"], run_id))
        spool.num_other_runs += rows.num_rows - mine.num_rows
        spool.tables[name] = mine
    spool.orphans = [done for done in spool.orphans if done.run_id == run_id]
    spool.losses = [
        loss for loss in spool.losses if loss.moment is None or loss.moment.run_id == run_id
    ]
