"""A zip from a stranger."""

from __future__ import annotations

import stat
import tempfile
import zipfile
from pathlib import Path

import pytest

from cascade_runtime.vocabulary.errors import BadTrace
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_tables
from collector.trace.unzip import ZipLimits
from tests.collector.traces import make_trace, rows_of, segment, step, write_spool


@pytest.fixture
def packed(trace, tmp_path):
    """Packs the trace, below a folder of the zip when asked, with more entries when given."""
    write_tables(trace, {"steps": [step(0)]})
    write_spool(trace, "0-0", segment([step(1)], first_seq=1) + bytes(100_000))

    def pack(top="", more=(), name="t.cascade.zip") -> Path:
        file = tmp_path / name
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
            for path in sorted(trace.rglob("*")):
                out.write(path, f"{top}{path.relative_to(trace)}")
            for entry, data in more:
                out.writestr(entry, data)
        return file

    return pack


def refused(file: Path, limits: ZipLimits | None = None) -> str:
    with pytest.raises(BadTrace) as caught:
        open_trace(file, limits).close()
    assert str(file) in caught.value.where
    return caught.value.message


@pytest.mark.parametrize("top", ["", "my trace/"])
def test_a_zip_reads_like_its_folder_and_leaves_nothing_behind(packed, trace, top):
    with open_trace(packed(top)) as opened:
        unpacked = opened.path
        assert rows_of(opened) == rows_of(trace)
        assert opened.inputs == [str(packed(top))]
    assert not unpacked.exists()


@pytest.mark.parametrize("name", ["../evil", "/evil", "events/../../evil", "events\\..\\evil"])
def test_an_entry_that_leads_out_is_refused_before_anything_is_unpacked(packed, tmp_path, name):
    assert "leads out" in refused(packed(more=[(name, "x")]))
    assert not list(tmp_path.rglob("evil"))


def test_a_link_is_refused(packed):
    link = zipfile.ZipInfo("events/steps/x.parquet")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert "a link" in refused(packed(more=[(link, "/etc/passwd")]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(packed):
    assert "two files" in refused(packed(more=[("trace.json", "{}")]))


def test_two_traces_are_refused(packed):
    assert "several traces" in refused(packed("a/", more=[("b/trace.json", "{}")]))


def test_a_zip_without_a_trace_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as out:
        out.writestr("deep/er/trace.json", "{}")
    assert "no trace.json" in refused(tmp_path / "x.zip")


def test_what_does_not_belong_to_a_trace_is_left_out(packed):
    more = [("run.sh", "x"), ("events/steps/x.py", "x"), ("a/b/c/d/e", "x"), ("spool/0-0/x", "x")]
    with open_trace(packed(more=more)) as opened:
        names = {path.name for path in opened.path.rglob("*") if path.is_file()}
    assert not names & {"run.sh", "x.py", "e", "x"}


def test_a_bomb_is_refused(packed):
    file = packed(more=[("events/steps/x.parquet", bytes(3_000_000))])
    assert "more than is safe" in refused(file, ZipLimits(total_bytes=1_000_000))
    assert "more than is safe" in refused(file, ZipLimits(ratio=10, ratio_from_bytes=1_000_000))
    assert "more than a trace may" in refused(file, ZipLimits(num_files=2))


def test_a_bomb_that_lies_about_its_size_is_refused(packed):
    file = packed(more=[("events/steps/x.parquet", bytes(100_000))])
    data = bytearray(file.read_bytes())
    real, said = (100_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    place = data.rfind(real)
    while place >= 0:
        data[place : place + 4] = said
        place = data.rfind(real)
    file.write_bytes(bytes(data))
    refused(file)


def test_an_encrypted_entry_is_refused(packed):
    data = bytearray(packed().read_bytes())
    central = data.rfind(b"PK\x01\x02")
    data[central + 8] |= 1
    file = packed()
    file.write_bytes(bytes(data))
    assert "encrypted" in refused(file)


@pytest.mark.parametrize("keep", [0, 10, 300, -1, -30])
def test_a_damaged_zip_is_refused(packed, keep):
    file = packed()
    file.write_bytes(file.read_bytes()[:keep])
    assert "cannot be unpacked" in refused(file)


def test_flipped_bytes_never_give_a_traceback(packed):
    whole = packed().read_bytes()
    file = packed(name="flipped.zip")
    for place in range(0, len(whole), 37):
        data = bytearray(whole)
        data[place] ^= 0xFF
        file.write_bytes(bytes(data))
        try:
            with open_trace(file) as opened:
                rows_of(opened)
        except BadTrace:
            pass


def test_nothing_stays_in_the_temporary_folder_when_it_is_refused(packed, tmp_path, monkeypatch):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    refused(packed(more=[("../x", "x")]))
    assert list(place.iterdir()) == []


def test_a_file_that_is_no_zip_is_refused(tmp_path):
    make_trace(tmp_path / "t")
    assert "cannot be unpacked" in refused(tmp_path / "t" / "trace.json")
