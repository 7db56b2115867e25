"""Makes a trace of 64 ranks and very many rows in the table mix of a recorded run, with its results.

It is the packaged sample ``kill-one`` (four ranks and their agent, one rank killed, 5.6 s), told lap
after lap. Scaled:

- over ranks: of 64 ranks, rank 0 writes what the sample's rank 0 wrote, each lap's victim what its rank 2
  wrote, the others what its ranks 1 and 3 wrote; one agent. Lists of members, cohorts and departed
  name all 64. The victim is another one each lap and comes back in the next as its next incarnation;
- in time: every clock, step, epoch and seq goes on where the lap before ended, seqs of an actor without a
  hole; communicators and debts are new ones each lap;
- with the recording's jitter: in each lap each rank is late by an amount drawn from how late ranks began
  their steps in the sample (nine tenths of those amounts; the largest are left out). Completions wait
  for the latest.

Not scaled: vector clocks, evidence, objects and messages name the sample's four ranks and counters, so
the rules would not judge such a trace rightly. Its results are told, not judged: ``waits`` are computed
from the arrivals by the analysis' definition, the rest is the sample's own analysis (no violations).
There are no gpu, compute or cpu rows, as there are none in the sample.

    python -m benchmarks._big_trace FOLDER --rows 1e8
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec
import pyarrow as pa

from benchmarks._big_results import Results
from benchmarks._big_rows import NUM_RANKS, Laps, Template
from collector.trace.parquet_files import write_parquet
from collector.trace.trace_writer import write_meta, write_views

ROWS_A_FILE = 4_000_000
"""About so many rows of all tables together go into files of their own, as segments are sealed."""

BEGIN_NS = 1_795_977_000_000_000_000
DONE = "whole"


def big_trace(folder: Path, num_rows: int) -> Path:
    """The trace of so many rows (a lap more at most) in the folder, made when it is not there yet.

    Args:
        folder: that traces of all sizes are kept in.
        num_rows: of all event tables.
    """
    root = folder / f"big-{num_rows}"
    if not (folder / f"{root.name}.{DONE}").exists():
        shutil.rmtree(root, ignore_errors=True)
        _write(root, num_rows)
        (folder / f"{root.name}.{DONE}").touch()
    return root


def _write(root: Path, num_rows: int) -> None:
    template = Template()
    a_lap = Laps(template, 2, BEGIN_NS).num_rows[1]
    laps = Laps(template, max(1, -(-num_rows // int(a_lap))), BEGIN_NS)
    run_id = f"big-{num_rows}"
    span_ns = laps.num * template.span_ns
    meta = msgspec.structs.replace(
        template.meta,
        run_id=run_id,
        name=f"{NUM_RANKS} ranks",
        world_size=NUM_RANKS + 1,
        created_ns=BEGIN_NS,
        ended_ns=BEGIN_NS + span_ns,
    )
    root.mkdir(parents=True)
    write_meta(root, meta)
    results = Results(laps, run_id)
    step = max(1, ROWS_A_FILE // int(a_lap))
    with ThreadPoolExecutor(2) as pool:
        for first in range(0, laps.num, step):
            last = min(first + step, laps.num)
            writing = [
                _put(pool, root / "events" / name, first, rows)
                for name, rows in laps.tables(first, last, run_id)
            ]
            writing.append(
                _put(pool, root / "results" / "waits", first, results.waits(first, last))
            )
            for one in writing:
                one.result()
    for name, rows in results.small().items():
        if rows.num_rows:
            write_parquet(root / "results" / name / "rows.parquet", rows)
    report = msgspec.json.encode(results.report())
    (root / "results" / "report.json").write_bytes(report)
    write_views(root)


def _put(pool: ThreadPoolExecutor, folder: Path, first: int, rows: pa.Table) -> Future[None]:
    return pool.submit(write_parquet, folder / f"{first:08d}.parquet", rows)


def main(argv: list[str]) -> int:
    """Make one."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--rows", type=float, default=1e8)
    args = options.parse_args(argv)
    began = time.monotonic()
    root = big_trace(args.folder, int(args.rows))
    size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    print(f"{root}: {size / 1e6:.0f} MB, {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
