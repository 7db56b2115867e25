from __future__ import annotations

import shutil

import pytest

from analyzer import analyze
from collector.data_folder import run_folder
from collector.sql.limits import MIB, SqlLimits
from collector.sql.service import SqlService
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_results

SMALL = SqlLimits(
    time_s=1.0,
    memory_bytes=200 * MIB,
    overhead_bytes=1024 * MIB,
    output_bytes=2 * MIB,
    num_threads=2,
)
"""Limits at which an attack is over soon."""


def add_run(data, sample: str):
    """A sample as a run of a data folder; its trace folder and its run_id."""
    with open_trace(sample_traces()[sample]) as source:
        run_id = source.meta.run_id
        folder = run_folder(data, run_id)
        shutil.copytree(source.path, folder)
        write_results(folder, analyze(source).results)
    return folder, run_id


@pytest.fixture(scope="session")
def shared_data(tmp_path_factory):
    """A data folder of two runs, with results; nobody may change it."""
    data = tmp_path_factory.mktemp("shared") / "data"
    data.mkdir()
    for sample in ("clean", "kill-one"):
        add_run(data, sample)
    return data


@pytest.fixture
def data(shared_data, tmp_path):
    """A copy of it to change."""
    shutil.copytree(shared_data, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(scope="session")
def run_ids():
    """run_id by sample."""
    found = {}
    for name in ("clean", "kill-one"):
        with open_trace(sample_traces()[name]) as source:
            found[name] = source.meta.run_id
    return found


@pytest.fixture(scope="module")
def service(shared_data):
    running = SqlService(shared_data, SMALL)
    yield running
    running.close()
