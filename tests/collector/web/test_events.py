"""POST /v1/events: forms, refusals, and what a client that goes away must not break."""

from __future__ import annotations

import asyncio
import gzip

import msgspec
import pytest
import zstandard

from cascade_runtime.vocabulary import codec
from collector.schema.rows import events_to_table
from collector.storage._interface import DiskLow, QueueFull, RunDropped, StoreDown
from collector.wire.arrow_body import encode_arrow
from collector.wire.batch import ARROW, MSGPACK, NDJSON
from collector.wire.records import encode_msgpack
from tests.collector.traces import RUN, step
from tests.collector.web.asgi import Channel, ask, scope_of

ROWS = [step(i) for i in range(5)]
ENCODED = {
    MSGPACK: encode_msgpack(ROWS),
    NDJSON: b"\n".join(map(codec.to_json, ROWS)),
    ARROW: encode_arrow({"steps": events_to_table("steps", ROWS)}),
}
PACKED = {None: bytes, "identity": bytes, "gzip": gzip.compress}
PACKED |= {"zstd": zstandard.ZstdCompressor().compress, "ZSTD": zstandard.ZstdCompressor().compress}


def post(app, body, media_type=MSGPACK, packing=None, **how):
    headers = [("content-type", media_type)]
    if packing is not None:
        headers.append(("content-encoding", packing))
    return ask(app, "POST", "/v1/events", body, headers=headers, **how)


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("media_type", ENCODED)
def test_every_form_in_every_packing_is_stored(app, store, media_type, packing):
    answer = post(app, PACKED[packing](ENCODED[media_type]), media_type, packing)
    assert answer.status == 200
    assert answer.json == {
        "num_rows": 5,
        "num_duplicates": 0,
        "marks": [{"run_id": RUN, "rank": 0, "incarnation": 0, "seq": 4}],
    }
    assert [key[2] for key in store.rows[RUN]] == [0, 1, 2, 3, 4]


def test_parameters_and_case_of_a_media_type_do_not_matter(app):
    assert post(app, ENCODED[NDJSON], "Application/X-NDJSON; charset=utf-8").status == 200


def test_a_second_sending_is_told_as_duplicates(app):
    post(app, ENCODED[MSGPACK])
    answer = post(app, ENCODED[ARROW], ARROW)
    assert (answer.json["num_rows"], answer.json["num_duplicates"]) == (0, 5)


@pytest.mark.parametrize("packing", [None, "zstd", "gzip"])
def test_a_large_body_is_decoded_off_the_loop(make_app, store, packing):
    rows = [step(i, loss=i / 7) for i in range(5_000)]
    body = encode_msgpack(rows)
    app = make_app()
    assert len(body) > app.state.context.settings.limits.inline_bytes
    assert post(app, PACKED[packing](body), packing=packing).json["num_rows"] == 5_000
    assert store.batches[0].body == body


OTHERS = ["", "text/plain", "application/json", "multipart/form-data", "x" * 500]
OTHERS += ["application/x-www-form-urlencoded", "application/x-ndjson-x"]


@pytest.mark.parametrize("media_type", OTHERS)
def test_other_media_types_are_refused_unread(app, store, media_type):
    answer = post(app, b"[]", media_type)
    assert (answer.status, answer.error["code"]) == (415, "unknown_media_type")
    assert MSGPACK in answer.error["hint"]
    assert not store.batches


@pytest.mark.parametrize("packing", ["br", "deflate", "zstd, gzip", "gzip,gzip"])
def test_other_packings_are_refused(app, packing):
    answer = post(app, b"[]", packing=packing)
    assert (answer.status, answer.error["code"]) == (415, "unknown_media_type")
    assert "Content-Encoding" in answer.error["where"]


def test_two_content_encodings_are_a_list_of_two(app):
    headers = [
        ("content-type", MSGPACK),
        ("content-encoding", "gzip"),
        ("content-encoding", "zstd"),
    ]
    assert ask(app, "POST", "/v1/events", b"x", headers=headers).status == 415


@pytest.mark.parametrize("packing", ["zstd", "gzip"])
def test_a_body_that_is_not_packed_as_it_says_is_400(app, packing):
    answer = post(app, ENCODED[MSGPACK], packing=packing)
    assert (answer.status, answer.error["code"]) == (400, "bad_body")
    assert packing in answer.error["hint"]


def test_a_damaged_frame_is_400(app, store):
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(ENCODED[MSGPACK])
    answer = post(app, frame[:-1] + bytes([frame[-1] ^ 1]), packing="zstd")
    assert (answer.status, answer.error["code"]) == (400, "bad_body")
    assert post(app, frame + frame, packing="zstd").status == 422  # two arrays are no batch
    assert not store.batches


def test_a_packed_batch_without_rows_needs_no_store(app, store):
    store.refuse_with = StoreDown("down")
    empty = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode([]))
    assert post(app, empty, packing="zstd").json["num_rows"] == 0


def test_one_bad_record_rejects_the_batch_and_is_named(app, store):
    lines = [codec.to_json(step(0)), b'["steps", 7]']
    answer = post(app, b"\n".join(lines), NDJSON)
    assert (answer.status, answer.error["code"]) == (422, "bad_batch")
    assert answer.error["where"].startswith("line 2")
    assert not store.batches


def test_a_batch_without_rows_needs_no_store(app, store):
    store.refuse_with = StoreDown("down")
    answer = post(app, msgspec.msgpack.encode([]))
    assert answer.json == {"num_rows": 0, "num_duplicates": 0, "marks": []}


REFUSALS = [
    (QueueFull("full"), 429, "queue_full", "1"),
    (StoreDown("down"), 503, "store_down", "2"),
    (DiskLow("low"), 507, "disk_low", "30"),
    (RunDropped("dropped"), 410, "run_dropped", None),
]


@pytest.mark.parametrize("when", ["refuse_with", "fail_with"])
@pytest.mark.parametrize(("error", "status", "code", "retry"), REFUSALS)
def test_the_store_s_refusals_have_their_status(app, store, when, error, status, code, retry):
    setattr(store, when, error)
    answer = post(app, ENCODED[MSGPACK])
    assert (answer.status, answer.error["code"]) == (status, code)
    assert answer.headers.get("retry-after") == retry


def test_a_fault_of_the_store_is_500_with_a_reference_and_nothing_of_its_insides(
    app, store, caplog
):
    store.fail_with = ZeroDivisionError("secret path /a/file/of/the/server")
    answer = post(app, ENCODED[MSGPACK])
    assert (answer.status, answer.error["code"]) == (500, "fault")
    assert b"secret" not in answer.body
    reference = answer.headers["x-request-id"]
    assert answer.error["where"] == f"reference {reference}"
    (record,) = [r for r in caplog.records if r.exc_info]
    assert record.fields == {"request_id": reference}
    assert record.exc_info[1] is store.fail_with


@pytest.mark.parametrize("pieces", [[], [b"\x95"], [ENCODED[MSGPACK]]])
def test_a_client_that_leaves_before_its_body_is_whole_leaves_nothing(app, store, pieces):
    headers = [("content-type", MSGPACK)]
    assert ask(app, "POST", "/v1/events", headers=headers, pieces=pieces, end="gone") is None
    assert not store.batches
    assert post(app, ENCODED[MSGPACK]).status == 200


async def started(app, store):
    """A request that waits for the store, as a task."""
    store.hold = True
    channel = Channel([ENCODED[MSGPACK]], "whole")
    scope = scope_of("POST", "/v1/events", [("content-type", MSGPACK)])
    task = asyncio.create_task(app(scope, channel.receive, channel.send))
    for _ in range(1_000):
        if store.held:
            return task, channel
        await asyncio.sleep(0)
    raise AssertionError("never came to the store")


def test_a_client_that_leaves_while_the_store_works_loses_nothing(app, store):
    async def run():
        task, channel = await started(app, store)
        channel.gone.set()
        store.release()
        await task

    asyncio.run(run())
    assert len(store.rows[RUN]) == 5


def test_a_request_that_is_cancelled_is_told_so_and_leaves_the_store_s_future_alone(app, store):
    async def run():
        task, channel = await started(app, store)
        task.cancel()
        await task
        store.release()  # raises InvalidStateError if the future was cancelled
        return channel.answer

    answer = asyncio.run(run())
    assert (answer.status, answer.error["code"]) == (503, "stopping")
    assert len(store.rows[RUN]) == 5


def test_many_waiting_requests_are_all_answered(app, store):
    async def run():
        tasks = [await started(app, store) for _ in range(50)]
        await asyncio.to_thread(store.release)
        await asyncio.gather(*(task for task, _ in tasks))
        return [channel.answer.status for _, channel in tasks]

    assert asyncio.run(run()) == [200] * 50


def test_a_stopping_collector_takes_no_more(app, store):
    app.state.context.stopping = True
    answer = post(app, ENCODED[MSGPACK])
    assert (answer.status, answer.error["code"]) == (503, "stopping")
    assert answer.headers["connection"] == "close"
    assert not store.batches


def test_get_is_not_allowed_and_says_what_is(app):
    answer = ask(app, "GET", "/v1/events")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert answer.error["code"] == "method_not_allowed"
