"""Bytes flipped where they mean something."""

from __future__ import annotations

import pyarrow.parquet as pq


def flip(file, place):
    data = bytearray(file.read_bytes())
    data[int(len(data) * place)] ^= 0x40
    file.write_bytes(data)


def place_of_values(file, column):
    """Where the last byte of a column's values lies; many other bytes of a file mean nothing."""
    found = pq.read_metadata(file)
    group = found.row_group(0)
    (chunk,) = [
        group.column(i)
        for i in range(group.num_columns)
        if group.column(i).path_in_schema == column
    ]
    return (chunk.data_page_offset + chunk.total_compressed_size - 0.5) / file.stat().st_size
