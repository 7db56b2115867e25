"""trace.json comes back as it was written, or is refused with its place named."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.events import SCHEMA_VERSION
from cascade_runtime.vocabulary.policy import load_policy
from cascade_runtime.vocabulary.trace_meta import (
    MAX_WORLD_SIZE,
    TraceMeta,
    format_trace_meta,
    parse_trace_meta,
)
from tests.vocabulary.strategies import LAWS

META = TraceMeta(
    schema_version=SCHEMA_VERSION,
    run_id="run-1",
    name="one rank lost",
    world_size=4,
    mode="enforce",
    policy=load_policy("seed").table(),
    created_ns=1,
    ended_ns=2,
    clean_end=True,
    recorded_tables=["actors", "steps"],
    tool_versions={"cascade": "0.1.0"},
)
metas = st.builds(
    TraceMeta,
    schema_version=st.just(SCHEMA_VERSION),
    world_size=st.integers(0, MAX_WORLD_SIZE),
    policy=st.none() | st.sampled_from([load_policy("seed").table(), load_policy().table()]),
    created_ns=st.integers(0, 2**62),
    ended_ns=st.none() | st.integers(0, 2**62),
    clean_end=st.none() | st.booleans(),
    sources=st.none() | st.lists(st.text()),
    story=st.none() | st.lists(st.text()),
)


def fields(**changes) -> dict:
    """META as parsed JSON with changes; a change to ... removes the field."""
    parsed = json.loads(format_trace_meta(META)) | changes
    return {name: value for name, value in parsed.items() if value is not ...}


@given(metas)
@LAWS
def test_what_was_written_comes_back(meta):
    text = format_trace_meta(meta)
    assert parse_trace_meta(text, "trace.json") == meta
    assert text.endswith(b"}\n")
    assert text.startswith(b'{\n  "schema_version"')


def test_every_field_is_written_also_when_it_says_nothing():
    bare = msgspec.structs.replace(META, policy=None, ended_ns=None, clean_end=None)
    written = json.loads(format_trace_meta(bare))
    assert list(written) == list(TraceMeta.__struct_fields__)
    assert written["clean_end"] is None
    assert written["policy"] is None


def test_the_policy_is_kept_in_the_words_of_the_contract():
    policy = fields()["policy"]
    assert policy["name"] == "seed"
    assert policy["rows"][0] == {"from": "STRONG", "fault": "GPU_FAIL_STOP", "to": "CAUSAL"}
    assert len(policy["rows"]) == 9


@pytest.mark.parametrize("name", ["ended_ns", "clean_end", "sources", "story"])
def test_what_only_the_end_of_a_run_knows_may_be_missing(name):
    meta = parse_trace_meta(json.dumps(fields(**{name: ...})).encode(), "trace.json")
    assert getattr(meta, name) is None


def test_fields_of_a_newer_writer_are_passed_over():
    assert parse_trace_meta(json.dumps(fields(weather="fine")).encode(), "trace.json") == META


OPTIONAL = ("ended_ns", "clean_end", "sources", "story")
NEEDED = [n for n in TraceMeta.__struct_fields__ if n not in OPTIONAL]


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_field_is_named(name):
    with pytest.raises(BadTrace, match=f"missing required field `{name}`") as caught:
        parse_trace_meta(json.dumps(fields(**{name: ...})).encode(), "T/trace.json")
    assert caught.value.where == "T/trace.json"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": "1"}, r"not a trace.json: .*at `\$\.schema_version`"),
        ({"mode": "guess"}, r"breaks the contract: .*'guess' - at `\$\.mode`"),
        ({"world_size": 4.5}, r"breaks the contract: .*at `\$\.world_size`"),
        (
            {"policy": {"name": "x", "rows": [{"from": "STRONG"}]}},
            r"`fault` - at `\$\.policy\.rows",
        ),
        ({"recorded_tables": None}, r"breaks the contract: .*at `\$\.recorded_tables`"),
    ],
)
def test_a_wrong_field_is_named(change, message):
    with pytest.raises(BadTrace, match=message):
        parse_trace_meta(json.dumps(fields(**change)).encode(), "trace.json")


def test_a_newer_schema_is_refused_before_its_fields_are_judged():
    newer = {"schema_version": SCHEMA_VERSION + 1, "all": "else is new"}
    with pytest.raises(BadTrace, match=f"schema_version {SCHEMA_VERSION + 1} is newer") as caught:
        parse_trace_meta(json.dumps(newer).encode(), "T/trace.json")
    assert caught.value.where == "T/trace.json"
    assert "newer cascade-timelines" in caught.value.hint


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"a": ' + b"[" * 100_000]
)
def test_what_is_no_json_object_is_refused(data):
    with pytest.raises(BadTrace, match=r"this is not a trace\.json") as caught:
        parse_trace_meta(data, "T/trace.json")
    assert caught.value.where == "T/trace.json"


@pytest.mark.parametrize("size", [-1, 100_001, 2_000_000_000])
def test_a_job_of_a_made_up_size_is_refused(size):
    text = format_trace_meta(META).replace(b'"world_size": 4', b'"world_size": %d' % size)
    with pytest.raises(BadTrace, match="world_size"):
        parse_trace_meta(text, "trace.json")
