"""What a story is told from grows with the rows that come, and is what one would read anew."""

from __future__ import annotations

import random
import threading
import time

import msgspec
import pytest

from cascade_runtime.vocabulary.events import Collectives, Debt, Gaps, Health, Transitions
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.hot import hot_rows
from collector.hot.options import StoreOptions
from collector.storage.embedded import EmbeddedStore
from dashboard.story import (
    activity,
    activity_keeper,
    provisional_waits,
    small_parts,
    sources_of_store,
)
from dashboard.story.activity import Activity, look_at
from dashboard.story.activity_keeper import ActivityKeeper
from dashboard.story.sample_keeper import SampleKeeper
from dashboard.story.small_rows import SmallKeeper
from dashboard.story.teller import Teller
from dashboard.tiles.in_threads import NUM_THREADS
from tests.dashboard.story.kit import DEADLINE_S
from tests.dashboard.story.test_live import Clock, begun, feed, rows_of, seal


@pytest.fixture
def store(tmp_path):
    opened = EmbeddedStore(tmp_path / "data", StoreOptions(publish_every_s=3600.0))
    yield opened
    opened.close()


def more_rows(run_id, chance):
    """What the recorded run has none or few of: gaps, faults, samples, odd walks."""

    def head(rank, seq, **_):
        wall = 1_000_000_000 * chance.randrange(1, 9) + 10**18
        return (run_id, rank, 7, seq, chance.choice(["world", "g2"]), chance.randrange(3),
                chance.choice(["STRONG", "CAUSAL", None]), seq, wall, seq)  # fmt: skip

    made = []
    for rank in range(90, 94):
        for seq in range(30):
            kind = chance.randrange(4)
            if kind == 0:
                made.append(Gaps(*head(rank, seq), first_seq=900, last_seq=901, num_events=2,
                                 reason=chance.choice(["dropped", None])))  # fmt: skip
            elif kind == 1:
                subject = chance.choice([None, 2])
                fault = chance.choice([None, FaultEvent.LINK_DELAY_HIGH])
                made.append(Health(*head(rank, seq), detector="cpu", signal="cpu_busy",
                                   unit="percent", value=1.0, subject_rank=subject, fault=fault))  # fmt: skip
            elif kind == 2:
                view = chance.choice([None, [Actor(2, 0), Actor(1, 0)], [Actor(1, 0), Actor(2, 0)]])
                made.append(Transitions(*head(rank, seq), phase="committed", members=view,
                                        proposer=chance.choice([None, Actor(rank, 7)]),
                                        new_epoch=chance.choice([None, 3, 4])))  # fmt: skip
            else:
                made.append(Collectives(*head(rank, seq), comm_id="c", cseq=seq, op="all_reduce",
                                        enter_ns=5, completed=False))  # fmt: skip
    return made


def shuffled(rows, chance):
    """Batches in about their order, some of them very late, and each in the order of its actor."""
    batches, at = [], 0
    while at < len(rows):
        num = chance.choice([1, 7, 60, 400])
        batches.append((at if chance.random() < 0.8 else at + 2500, rows[at : at + num]))
        at += num
    return [batch for _, batch in sorted(batches, key=lambda pair: pair[0])]


def told(rows):
    found = msgspec.structs.asdict(rows)
    found["points"] = found["points"].select(["rank", "incarnation", "group_id", "epoch", "regime",
                                              "wall_ns"]).to_pylist()  # fmt: skip
    return found


def spans(seen):
    return {
        key: {name: getattr(span, name).tolist() for name in ("bucket", *span.FIELDS)}
        for key, span in seen.spans.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_what_grew_is_what_is_read_anew(store, monkeypatch, seed):
    chance = random.Random(seed)
    if seed == 2:  # some rows are not at hand when they are looked for
        monkeypatch.setattr(hot_rows, "FOLLOWED_S", 0.0)
    meta, rows = rows_of("kill-one")
    for at, row in enumerate(more_rows(meta.run_id, chance)):
        rows.insert(30 * at, row)
    store.put_meta(begun(meta))
    source, clock = sources_of_store(store).get(meta.run_id), Clock()
    small, keeper, samples = (
        SmallKeeper(source), ActivityKeeper(source, clock), SampleKeeper(source)
    )  # fmt: skip
    hot = store._catalog.find(meta.run_id).rows
    batches, num_whole = shuffled(rows, chance), 0
    for number, batch in enumerate(batches):
        feed(store, batch)
        what = chance.random()
        if what < 0.1:
            store.publish(meta.run_id)
        elif what < 0.15:
            seal(store, meta.run_id)
        elif what < 0.2 or what > 0.9:
            hot.convert_waiting()
        if what > 0.2 and number < len(batches) - 1:
            continue
        clock.now += 1000.0
        news, version = source.news(), source.version()
        found = small.as_of(news)
        seen = keeper.as_of(version, source.num_rows(), found, news)
        assert told(found) == told(SmallKeeper(source).as_of(source.news()))
        anew = look_at(source, EVENT_TABLES, seen.bucket_ns)
        if keeper.is_of(version):
            num_whole += 1
            assert spans(seen) == spans(Activity(anew.spans, seen.bucket_ns))
        assert samples.as_of(version, news) == SampleKeeper(source).as_of(version, source.news())
    assert len(seen.spans) > 5 and len(found.faults) > 5 and len(found.walks) > 3
    assert num_whole > 5


class Ticking(Clock):
    """Time passes while something is done, as it does."""

    def __call__(self):
        self.now += 1e-6
        return self.now


def test_buckets_grow_with_the_run_while_somebody_watches(store, monkeypatch):
    meta, rows = rows_of("kill-one")
    store.put_meta(begun(meta))
    source, clock = sources_of_store(store).get(meta.run_id), Ticking()
    small, keeper = SmallKeeper(source), ActivityKeeper(source, clock)

    def look():
        news, version = source.news(), source.version()
        return keeper.as_of(version, source.num_rows(), small.as_of(news), news), version

    feed(store, rows[:500])
    first, _ = look()
    monkeypatch.setattr(activity, "MAX_BUCKETS", 16)
    for at in range(500, len(rows), 500):
        feed(store, rows[at : at + 500])
        seen, version = look()
        assert keeper.is_of(version)
    assert seen.bucket_ns > first.bucket_ns
    assert sum(len(span.bucket) for span in seen.spans.values()) <= 16 + 2 * len(seen.spans)
    assert spans(seen) == spans(
        Activity(look_at(source, EVENT_TABLES, seen.bucket_ns).spans, seen.bucket_ns)
    )


def test_older_news_than_a_look_that_ended_since_takes_nothing_back(store):
    meta, rows = rows_of("kill-one")
    store.put_meta(begun(meta))
    source, clock = sources_of_store(store).get(meta.run_id), Clock()
    small, keeper = SmallKeeper(source), ActivityKeeper(source, clock)
    feed(store, rows[:1000])
    before = source.news()
    feed(store, rows[1000:2000])
    keeper._look(source.version(), small.as_of(source.news()))  # as one in the background does
    keeper.as_of(source.version() + "?", source.num_rows(), small.as_of(before), before)
    feed(store, rows[2000:2001])
    news = source.news()
    seen = keeper.as_of(source.version(), source.num_rows(), small.as_of(news), news)
    anew = look_at(source, EVENT_TABLES, seen.bucket_ns)
    assert spans(seen) == spans(Activity(anew.spans, seen.bucket_ns))


def test_a_walk_is_told_while_the_rest_is_still_being_read(store, monkeypatch):
    """A large run: all rows' times, and waits, are looked at in threads, which never end here."""
    meta, rows = rows_of("kill-one")
    walk = next(r for r in rows if isinstance(r, Transitions) and r.phase == "committed")
    go_on = threading.Event()
    monkeypatch.setattr(activity_keeper, "SYNC_ROWS", 0)
    monkeypatch.setattr(provisional_waits, "SYNC_ROWS", 0)
    monkeypatch.setattr(provisional_waits, "SMALL_ROWS", 0)
    right = activity_keeper.look_at

    def never(*told):
        assert go_on.wait(DEADLINE_S)
        return right(*told)

    monkeypatch.setattr(activity_keeper, "look_at", never)
    store.put_meta(begun(meta))
    clock = Clock()
    teller = Teller(sources_of_store(store).get(meta.run_id), clock)
    try:
        feed(store, rows[:500])
        teller.story()
        for number in range(3):
            epoch = 1000 + number
            marked = msgspec.structs.replace(
                walk, rank=500, incarnation=0, seq=number, epoch=epoch - 1, new_epoch=epoch
            )
            feed(store, [marked])
            clock.now += 1.0
            story = teller.story()
            assert epoch in [one.epoch for one in story.story.walks]
            assert story.version.endswith("~") and story.facts.activity is None
    finally:
        go_on.set()


def test_no_statement_is_asked_for_rows_that_come(store, monkeypatch):
    meta, rows = rows_of("kill-one")
    store.put_meta(begun(meta))
    source, clock = sources_of_store(store).get(meta.run_id), Clock()
    teller = Teller(source, clock)
    feed(store, rows[:3000])
    teller.story()
    asked = []
    right = store._live_sql._ask

    def ask(runs, sql, max_age_s):
        asked.append(sql)
        return right(runs, sql, max_age_s)

    monkeypatch.setattr(store._live_sql, "_ask", ask)
    for at in range(3000, len(rows), 500):
        feed(store, rows[at : at + 500])
        clock.now += 1.0
        assert teller.story().story.run.num_rows >= at
    assert all("last_rank" in sql for sql in asked)  # provisional waits, at their own pace


def test_who_has_a_story_waits_for_the_next_one(store):
    meta, rows = rows_of("clean")
    store.put_meta(begun(meta))
    clock, waited = Clock(), []

    def wait(seconds):
        waited.append(seconds)
        clock.now += seconds

    teller = Teller(sources_of_store(store).get(meta.run_id), clock, cpu_s=clock, wait_s=wait)
    feed(store, rows[:1000])
    first = teller.story()
    assert teller.next_story(first.version) is first and not waited  # there is nothing new
    feed(store, rows[1000:2000])
    assert teller.story() is first  # too early for who does not wait
    second = teller.next_story(first.version)
    assert second.story.run.num_rows == 2000 and 0 < sum(waited) <= 0.5
    assert teller.next_story(first.version) is second  # at once
    assert len(waited) == 1


def test_who_waits_leaves_threads_for_other_answers(store, tmp_path):
    """However many runs are followed: the waiting is bounded over all of them."""
    meta, rows = rows_of("clean")
    waiting, go_on = threading.Semaphore(0), threading.Event()

    def wait(seconds):
        waiting.release()
        assert go_on.wait(DEADLINE_S)

    threads = []
    try:
        for number in range(3):
            run_id = f"{meta.run_id}{number}"
            store.put_meta(begun(msgspec.structs.replace(meta, run_id=run_id)))
            source = sources_of_store(store).get(run_id)
            teller = Teller(source, Clock(), wait_s=wait)
            feed(store, [msgspec.structs.replace(row, run_id=run_id) for row in rows[:50]])
            first = teller.story()
            feed(store, [msgspec.structs.replace(row, run_id=run_id) for row in rows[50:100]])
            for _ in range(3):
                thread = threading.Thread(target=teller.next_story, args=[first.version])
                thread.start()
                threads.append(thread)
        for _ in range(NUM_THREADS // 2):
            assert waiting.acquire(timeout=DEADLINE_S)
        deadline = time.monotonic() + DEADLINE_S
        while sum(thread.is_alive() for thread in threads) > NUM_THREADS // 2:
            assert time.monotonic() < deadline
        assert not waiting.acquire(blocking=False)
    finally:
        go_on.set()
        for thread in threads:
            thread.join(DEADLINE_S)


def test_a_story_that_nothing_brings_up_to_date_is_told_again_seldom(store, monkeypatch):
    meta, rows = rows_of("clean")
    store.put_meta(begun(meta))
    clock = Clock()
    teller = Teller(sources_of_store(store).get(meta.run_id), clock)
    feed(store, rows[:500])
    monkeypatch.setattr(ActivityKeeper, "is_of", lambda self, version: False)
    stories = [teller.story()]
    for _ in range(200):
        clock.now += 0.1
        story = teller.story()
        assert story.version.endswith("~")
        if story is not stories[-1]:
            stories.append(story)
    assert len(stories) <= 8  # in twenty seconds
    feed(store, rows[500:600])
    clock.now += 0.3
    assert teller.story().story.run.num_rows == 600  # news is not kept waiting for that


def test_debts_of_a_watched_run_are_bounded(store, monkeypatch):
    meta, rows = rows_of("kill-one")
    like = next(row for row in rows if isinstance(row, Debt) and row.action == "opened")
    monkeypatch.setattr(small_parts, "MAX_DEBTS", 20)
    store.put_meta(begun(meta))
    source = sources_of_store(store).get(meta.run_id)
    small = SmallKeeper(source)
    feed(store, rows[:50])
    small.as_of(source.news())
    chance = random.Random(1)
    walls = [chance.randrange(10**9) for _ in range(300)]
    for number, wall_ns in enumerate(walls):
        made = [
            msgspec.structs.replace(
                like, rank=50, incarnation=0, seq=2 * number + after, wall_ns=wall_ns,
                debt_id=f"d{number}", action=("opened", "settled")[after],
            )
            for after in range(2)
        ]  # fmt: skip
        feed(store, made)
        found = small.as_of(source.news()).debts
    held = small._held["debts"]._part
    assert len(held._opened._found) < 40 and len(held._closed._found) < 40
    assert [debt["opened_ns"] for debt in found] == sorted(walls)[:20]
    assert {debt["fate"] for debt in found} == {"settled"}
