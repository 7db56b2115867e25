"""Content as files: one .npy an array of all ranks, and a head that tells their checksums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xxhash

from dashboard.tiles.content import Content, Kind
from dashboard.tiles.edges_native import BLOCK
from dashboard.tiles.percent import Samples
from dashboard.tiles.percent_native import BINS
from dashboard.tiles.percent_native import BLOCK as SAMPLES
from dashboard.tiles.spans import Row, Spans

HEAD = "head.json"

_CHUNK = 8 << 20
_SPANS = ("waited", "caused", "busy")
_SAMPLES = ("gpu", "cpu")


class Unusable(Exception):
    """The files are damaged, or not what this release writes."""


class _Row(msgspec.Struct):
    rank: int
    num: int
    num_buckets: int
    origin: int
    shift: int


class _Head(msgspec.Struct):
    t0: int
    kind: Kind
    ranks: list[int]
    agents: list[int]
    upto_ns: int
    rows: dict[str, list[_Row]]
    num: dict[str, int]
    sums: dict[str, str]
    """Checksum of every file."""


def num_bytes(content: Content) -> int:
    """About what the files will take."""
    spans = sum(lane.num_bytes for lane in _spans_of(content).values())
    samples = sum(9 * s.num + 4 * BINS * (s.num // SAMPLES) for s in _samples_of(content).values())
    return spans + samples


def write_content(root: Path, content: Content) -> None:
    """Write all files into an empty folder, the head last.

    Raises:
        OSError: the disk says no.
    """
    sums, rows, num = {}, {}, {}
    for name, spans in _spans_of(content).items():
        every = [spans.rows[rank] for rank in sorted(spans.rows)]
        rows[name] = [
            _Row(rank, row.num, len(row.directory), row.origin, row.shift)
            for rank, row in sorted(spans.rows.items())
        ]
        parts: dict[str, Iterable[Any]] = {
            "edges": (row.edges[: row.num] for row in every),
            "area": (row.area[: _blocks(row.num)] for row in every),
            "open": (row.open_at[: _blocks(row.num)] for row in every),
            "directory": (row.directory for row in every),
        }
        for part, arrays in parts.items():
            sums[f"{name}.{part}"] = _write(root / f"{name}.{part}.npy", arrays)
    for name, samples in _samples_of(content).items():
        num[name] = samples.num
        for part, array in (
            ("times", samples.times[: samples.num]),
            ("values", samples.values[: samples.num]),
            ("before", samples.before[: samples.num // SAMPLES + 1]),
        ):
            sums[f"{name}.{part}"] = _write(root / f"{name}.{part}.npy", [array])
    head = _Head(
        t0=content.t0,
        kind=content.kind,
        ranks=sorted(content.ranks),
        agents=sorted(content.agents),
        upto_ns=content.upto_ns,
        rows=rows,
        num=num,
        sums=sums,
    )
    (root / HEAD).write_bytes(msgspec.json.encode(head))


def read_content(root: Path) -> Content:
    """The content of the files; its arrays are mapped, and changing them changes no file.

    Raises:
        FileNotFoundError: there is none.
        OSError, Unusable: it cannot be read, or is not whole.
    """
    try:
        head = msgspec.json.decode((root / HEAD).read_bytes(), type=_Head)
        content = Content(head.t0, head.kind)
        content.ranks, content.agents = set(head.ranks), set(head.agents)
        content.upto_ns = head.upto_ns
        for name, spans in _spans_of(content).items():
            _read_spans(root, name, spans, head)
        for name, samples in _samples_of(content).items():
            _read_samples(root, name, samples, head)
    except FileNotFoundError:
        if (root / HEAD).exists():
            raise Unusable("a file is missing") from None
        raise
    except (msgspec.MsgspecError, ValueError, KeyError, EOFError) as error:
        raise Unusable(f"{type(error).__name__}: {error}") from error
    return content


def _read_spans(root: Path, name: str, spans: Spans, head: _Head) -> None:
    rows = head.rows[name]
    num, blocks = sum(r.num for r in rows), sum(_blocks(r.num) for r in rows)
    buckets = sum(r.num_buckets for r in rows)
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "edges": (np.int64, (num,)),
        "area": (np.int64, (blocks,)),
        "open": (np.int32, (blocks,)),
        "directory": (np.int64, (buckets, 2)),
    }
    edges, area, open_at, directory = (
        _mapped(root, f"{name}.{part}", *shapes[part], head) for part in shapes
    )
    edge = block = bucket = 0
    for row in rows:
        if row.num < 1 or row.num_buckets < 1 or not 0 <= row.shift < 62:
            raise Unusable(f"{name} has a row of no size")
        spans.rows[row.rank] = Row(
            edges[edge : edge + row.num],
            row.num,
            area[block : block + _blocks(row.num)],
            open_at[block : block + _blocks(row.num)],
            directory[bucket : bucket + row.num_buckets],
            row.origin,
            row.shift,
        )
        edge, block, bucket = edge + row.num, block + _blocks(row.num), bucket + row.num_buckets


def _read_samples(root: Path, name: str, samples: Samples, head: _Head) -> None:
    num = head.num[name]
    samples.times = _mapped(root, f"{name}.times", np.int64, (num,), head)
    samples.values = _mapped(root, f"{name}.values", np.uint8, (num,), head)
    blocks = (num // SAMPLES + 1, BINS)
    samples.before = _mapped(root, f"{name}.before", np.uint32, blocks, head)
    samples.num = num


def _mapped(root: Path, name: str, dtype: Any, shape: tuple[int, ...], head: _Head) -> Any:
    """One file's array. Copy on write: compiled code is then the same as for arrays in memory."""
    file = root / f"{name}.npy"
    if _sum(file) != head.sums[name]:
        raise Unusable(f"{file.name} is not what was written")
    if 0 in shape:
        return np.empty(shape, dtype)
    array = np.load(file, mmap_mode="c", allow_pickle=False)
    if array.dtype != dtype or array.shape != shape:
        raise Unusable(f"{file.name} has {array.dtype}{array.shape}")
    return np.asarray(array)


def _write(file: Path, arrays: Iterable[Any]) -> str:
    """Write the arrays end to end as one; its checksum."""
    # Two passes over references cost nothing, and the header needs the length.
    parts = list(arrays)
    whole = sum(len(part) for part in parts)
    like = parts[0] if parts else np.empty(0, np.int64)
    shape = (whole, *like.shape[1:])
    descr = np.lib.format.dtype_to_descr(like.dtype)
    with file.open("wb") as out:
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(out, header)
        for part in parts:
            out.write(np.ascontiguousarray(part).data.cast("B") if part.size else b"")
    return _sum(file)


def _sum(file: Path) -> str:
    digest = xxhash.xxh3_64()
    for chunk in _chunks(file):
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            yield chunk


def _blocks(num: int) -> int:
    return -(-num // BLOCK)


def _spans_of(content: Content) -> dict[str, Spans]:
    lanes = (content.waits.waited, content.waits.caused, content.busy)
    return dict(zip(_SPANS, lanes, strict=True))


def _samples_of(content: Content) -> dict[str, Samples]:
    return dict(zip(_SAMPLES, (content.gpu, content.cpu), strict=True))
