"""Back-pressure before memory runs out, and retention."""

from __future__ import annotations

import threading
import time

import pytest

from collector.storage._interface import NoSuchRun, QueueFull, RunDropped
from tests.collector.store.rows import (
    RUN,
    batch,
    check,
    done,
    entered,
    gap,
    in_folder,
    json_batch,
    queried,
    raw,
    send,
    sent_meta,
    step,
    steps,
)

pytestmark = pytest.mark.usefixtures("no_views_file")

DAY_NS = 86_400 * 10**9


class Held:
    """Keeps the writer thread busy until released."""

    def __init__(self, store):
        self.free, begun = threading.Event(), threading.Event()
        self.task = store._writer.do(lambda: (begun.set(), self.free.wait(20)))
        assert begun.wait(20)

    def release(self):
        self.free.set()
        self.task.result(20)


def fill(store, make, most=10_000):
    """Append until the store refuses; the futures of what it took."""
    taken = []
    for number in range(most):
        try:
            taken.append(store.append(make(number)))
        except QueueFull:
            return taken
    raise AssertionError("it never refused")


def test_too_many_rows_waiting_are_refused_and_what_was_taken_is_stored(embedded):
    store = embedded(max_queued_rows=100)
    held = Held(store)
    taken = fill(store, lambda n: batch(steps(n * 9, n * 9 + 8)))
    assert len(taken) == 11
    assert store.stats().num_queued_rows == 99
    assert not any(future.done() for future in taken)
    held.release()
    assert sum(future.result(20).num_rows for future in taken) == 99
    check(store, steps(0, 98))
    assert send(store, *steps(99, 120)).num_rows == 22


def test_too_many_bytes_waiting_are_refused(embedded):
    store = embedded(max_queued_bytes=100_000)
    held = Held(store)
    taken = fill(store, lambda n: batch([entered(n, call_site="x" * 20_000)]))
    assert len(taken) == 4
    held.release()
    assert all(future.result(20).num_rows == 1 for future in taken)


def test_batches_without_rows_do_not_pile_up_either(embedded):
    store = embedded(max_queued_bytes=100_000)
    held = Held(store)
    blank = json_batch([])
    blank.body = b"\n" * 5_000
    assert len(fill(store, lambda n: blank)) < 20
    held.release()


def test_alone_a_batch_of_any_size_is_taken(embedded):
    store = embedded(max_queued_rows=10)
    assert send(store, *steps(0, 49)).num_rows == 50


def test_too_many_hot_rows_are_refused_until_the_publisher_has_sealed_them(embedded):
    """Many small tables and runs: none of them reaches segment_rows, and yet there is a way out."""
    store = embedded(max_hot_rows=100, mono_s=iter(range(10**9)).__next__)
    refused = False
    for number in range(30):
        try:
            send(store, *steps(0, 9, run=f"live-{number}"))
        except QueueFull:
            refused = True
    assert refused
    store._publisher.publish_all()
    assert store.stats().num_hot_rows == 0
    assert send(store, step(0)).num_rows == 1


def test_completions_that_belong_to_nothing_do_not_fill_the_memory(embedded):
    store = embedded(segment_rows=10)
    for number in range(10):
        send(store, *[done(seq) for seq in range(number * 10, number * 10 + 10)])
        store.publish()
    assert store.stats().num_hot_rows <= 10
    send(store, *[entered(seq) for seq in range(100)])
    store.publish()
    assert all(row.done_seq is not None for row in in_folder(store))


# ---- retention -----------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.wall, self.mono = 10**18, 0.0

    def later(self, days):
        self.wall += int(days * DAY_NS)
        self.mono += days * 86_400


@pytest.fixture
def clock():
    return Clock()


def ended(store, run, num_rows=20):
    store.put_meta(sent_meta(run))
    send(store, *[entered(s, run=run, call_site=f"{run}-{s}" * 50) for s in range(num_rows)])


def opened(embedded, clock, **options):
    return embedded(
        wall_ns=lambda: clock.wall, mono_s=lambda: clock.mono, idle_s=1.0, **options
    )  # fmt: skip


def run_ids(store):
    return [run.run_id for run in store.runs()]


def test_runs_older_than_the_retention_time_are_dropped_whole(embedded, clock):
    store = opened(embedded, clock, keep_days=10)
    ended(store, "old")
    store._publisher.publish_all()
    clock.later(8)
    ended(store, "new")
    clock.later(0.1)
    store._publisher.publish_all()
    assert run_ids(store) == ["new", "old"]
    size = folder_size(embedded.data / "runs")
    clock.later(3)
    store._publisher.publish_all()
    assert run_ids(store) == ["new"]
    assert [f.name for f in (embedded.data / "runs").iterdir()] == ["new"]
    assert folder_size(embedded.data / "runs") < 0.6 * size
    with pytest.raises(RunDropped):
        send(store, step(0, run="old"))
    check(store, [entered(s, run="new", call_site=f"new-{s}" * 50) for s in range(20)], "new")


def folder_size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_live_runs_are_never_dropped(embedded, clock):
    store = opened(embedded, clock, keep_days=1, keep_bytes=1)
    store.put_meta(sent_meta("live", ended_ns=None))
    send(store, *steps(0, 9, run="live"))
    store._publisher.publish_all()
    clock.later(0.9)
    send(store, *steps(10, 11, run="live"))
    store._publisher.publish_all()
    clock.wall += 400 * DAY_NS  # the wall clock jumps; the steady one knows better
    store._publisher.publish_all()
    assert run_ids(store) == ["live"]
    clock.later(2)
    store._publisher.publish_all()
    assert run_ids(store) == []


def test_the_oldest_go_while_all_are_too_large(embedded, clock):
    store = opened(embedded, clock)
    for run in ("a", "b", "c"):
        ended(store, run, 200)
        clock.later(0.01)
        store._publisher.publish_all()
    size = folder_size(embedded.data / "runs")
    store = opened(embedded, clock, keep_bytes=int(size * 0.7))
    store._publisher.publish_all()
    assert run_ids(store) == ["c", "b"]
    assert folder_size(embedded.data / "runs") <= size * 0.7
    assert len(queried(store, "b")) == 200


def test_a_drop_that_was_cut_short_is_finished_at_the_next_start(embedded):
    store = embedded()
    send(store, *steps(0, 3))
    store.publish()
    folder = embedded.data / "runs" / RUN
    kept = {f.relative_to(folder): f.read_bytes() for f in folder.rglob("*") if f.is_file()}
    store.drop(RUN)
    for place in (folder, folder.with_name(".dropped-0")):
        for name, data in kept.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
    store = embedded()
    assert list((embedded.data / "runs").iterdir()) == []
    with pytest.raises(NoSuchRun):
        store.run(RUN)


def test_a_run_that_is_dropped_while_it_is_published_stays_dropped(embedded):
    store = embedded()
    send(store, *steps(0, 3))
    run = store._catalog.find(RUN)
    with run.publishing:
        late = threading.Thread(target=lambda: store.publish(RUN))
        late.start()
        store._writer.do(lambda: store._catalog.drop(RUN)).result(20)
    late.join()
    assert not (embedded.data / "runs" / RUN).exists()


def test_memory_of_hot_rows_follows_what_is_sealed(embedded):
    store = embedded(segment_rows=50)
    for first in range(0, 500, 50):
        send(store, *steps(first, first + 49))
        store.publish()
    stats = store.stats()
    assert (stats.num_hot_rows, stats.num_segments, stats.num_rows) == (0, 10, 500)
    check(store, steps(0, 499))


def test_rows_with_long_texts_are_counted_by_their_size(embedded):
    """Few rows can fill the memory: the wire packs them to nothing, and no count of rows says so."""
    store = embedded(max_hot_bytes=8 << 20, segment_bytes=1 << 40, publish_every_s=3600)
    text = "x" * (1 << 20)
    number = 0
    while number < 100:
        store._counted_s = float("-inf")  # do not wait for the next count
        try:
            send(store, raw(number, text=text))
        except QueueFull:
            break
        number += 1
    assert number < 12
    assert store.stats().hot_row_bytes > 7 << 20


def test_large_rows_are_sealed_by_their_size(embedded):
    store = embedded(segment_bytes=3 << 20, publish_every_s=3600)
    for number in range(4):
        send(store, raw(number, text="y" * (1 << 20)))
    store.publish()
    assert store.stats().num_segments == 1
    assert store.stats().hot_row_bytes < 1 << 20


def test_a_queue_is_bounded_by_what_bodies_become(embedded):
    store = embedded(max_queued_bytes=20 << 20)
    held = Held(store)
    taken = fill(store, lambda n: json_batch([raw(n, text="z" * (1 << 20))]))
    assert len(taken) <= 4  # records of a body are several times as large as it is
    held.release()


def test_very_many_gaps_do_not_cost_a_pass_each(embedded):
    """20,000 open collectives and 4,000 gaps were half a minute for everybody else."""
    store = embedded(publish_every_s=3600)
    send(store, *[entered(n) for n in range(20_000)])
    begin = time.process_time()
    send(store, *[gap(20_000 + n, 20_000 + n, 20_000 + n, reason="corrupt") for n in range(4_000)])
    assert time.process_time() - begin < 5


def test_an_end_stands_when_the_start_comes_late(embedded):
    store = embedded()
    store.put_meta(sent_meta(ended_ns=5, clean_end=True))
    store.put_meta(sent_meta(ended_ns=None, clean_end=None))
    assert store.meta(RUN).ended_ns == 5
