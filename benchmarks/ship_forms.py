"""CPU of a host agent for one record from spool to wire, as it is and written anew in another form.

All arms read the same spool of a DDP job's STRONG steps (from the page cache, checksums verified) and
end with a request's compressed body; none sends it. ``as they are`` is what the agent does.
"""

from __future__ import annotations

import io
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import zstandard

from benchmarks import _harness
from benchmarks._stats import median
from cascade_runtime.agent.shipping.cursor import Cursor
from cascade_runtime.agent.shipping.spool import HostSpool
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary import codec
from cascade_runtime.vocabulary.events import CollectiveDone
from cascade_runtime.vocabulary.identity import Actor, Dot
from collector.schema.rows import events_to_table

TARGET = "as they are: at most 3 us of CPU a record, and the least of all forms"
TARGET_US = 3.0
RUN_ID = "run-0123456789ab"
RANKS = 4
NAMES = [f"params/{i}" for i in range(6)]
SIZES = [26_214_400] * 6


def write_spool(folder: Path, steps: int) -> None:
    for rank in range(RANKS):
        recorder = Recorder(folder / "spool", RUN_ID, Actor(rank))
        for step in range(steps):
            recorder.set_step(step)
            recorder.steps("begin")
            dots = [Dot(rank, 0, step * 6 + i + 1) for i in range(6)]
            recorder.reads(NAMES, "forward", dots, step)
            for bucket in range(4):
                seq = recorder.entered("0123456789abcdef", 4 * step + bucket, "all_reduce", "grads",
                                       26_214_400, "float32")  # fmt: skip
                recorder.done(seq, time.monotonic_ns())
            recorder.updates("issued", NAMES, dots, step + 1, [], SIZES)
            recorder.updates("applied", NAMES, dots, step + 1, [], SIZES)
            recorder.steps("end", 0.1, 32)
        recorder.close()


def batches(folder: Path) -> list[list[bytes]]:
    spool = HostSpool(folder / "spool", RUN_ID, range(RANKS), Cursor(folder / "cursor"))
    spool.all_ended = True
    found, more = [], True
    while more:
        payloads, more = spool.collect()
        if payloads:
            found.append(payloads)
    spool.close()
    return found


def as_they_are(payloads: list[bytes]) -> bytes:
    return b"".join((struct.pack(">BI", 0xDD, len(payloads)), *payloads))


def as_arrow(payloads: list[bytes]) -> bytes:
    tables: dict[str, list] = {}
    for payload in payloads:
        record = codec.unpack(payload)
        if not isinstance(record, CollectiveDone):  # joining it to its row costs more still
            tables.setdefault(str(record.__struct_config__.tag), []).append(record)
    sink = io.BytesIO()
    for name, records in tables.items():
        table = events_to_table(name, records)
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    return sink.getvalue()


def as_ndjson(payloads: list[bytes]) -> bytes:
    return b"\n".join(codec.to_json(codec.unpack(p)) for p in payloads)


def as_ndjson_unchecked(payloads: list[bytes]) -> bytes:
    decode, encode = msgspec.msgpack.Decoder().decode, msgspec.json.Encoder().encode
    return b"\n".join(encode(decode(p)) for p in payloads)


FORMS: dict[str, Callable[[list[bytes]], bytes]] = {
    "as they are": as_they_are,
    "arrow": as_arrow,
    "ndjson": as_ndjson,
    "ndjson, unchecked": as_ndjson_unchecked,
}


def measure(folder: Path, form: Callable[[list[bytes]], bytes]) -> tuple[float, float]:
    """Microseconds of CPU and bytes on the wire, a record."""
    pack = zstandard.ZstdCompressor(level=1).compress
    begun = time.process_time()
    found = batches(folder)
    size = sum(len(pack(form(payloads))) for payloads in found)
    spent = time.process_time() - begun
    number = sum(len(payloads) for payloads in found)
    return spent / number * 1e6, size / number


def main(argv: list[str]) -> int:
    args = _harness.parse(_harness.parser(__doc__), argv)
    folder = Path(tempfile.mkdtemp(prefix="cascade-"))
    try:
        write_spool(folder, 40 if args.quick else 600)
        arms = {name: partial(measure, folder, form) for name, form in FORMS.items()}
        found = _harness.alternate(arms, args.repeats)
    finally:
        shutil.rmtree(folder)
    cpu = {name: round(median([us for us, _ in runs]), 2) for name, runs in found.items()}
    size = {name: round(runs[0][1], 1) for name, runs in found.items()}
    return _harness.report(
        _harness.Result(
            name="ship_forms",
            figure=cpu["as they are"],
            unit="us of CPU a record",
            target=TARGET_US,
            holds=cpu["as they are"] <= TARGET_US and cpu["as they are"] == min(cpu.values()),
            against={"us": cpu, "bytes a record": size},
            spread={n: [round(min(r)[0], 2), round(max(r)[0], 2)] for n, r in found.items()},
        ),
        args,
        argv,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
