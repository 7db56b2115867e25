"""What becomes of rows whatever the collector answers: none lost, none forgotten too early."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cascade_runtime.agent.shipping.backoff import LONGEST_S, Backoff
from cascade_runtime.agent.shipping.courier import INTERVAL_S, Courier
from cascade_runtime.agent.shipping.cursor import Cursor
from cascade_runtime.agent.shipping.folders import bytes_left, is_whole
from cascade_runtime.agent.shipping.head import takes_seq
from cascade_runtime.agent.shipping.link import Later, Link, Stopped
from cascade_runtime.agent.shipping.settings import check_collector, deadline_s, token
from cascade_runtime.agent.shipping.spool import HostSpool
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.events import Gaps, Raw, Steps
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.spool_format import HEADER
from tests.collector.traces import RUN, make_trace
from tests.runtime.shipping_server import (
    FakeCollector,
    answers,
    answers_and_hangs_up,
    hangs,
    resets,
    stores_and_resets,
)

ME = Actor(0)


class Rig:
    """A courier over a spool with one writer, and a clock that only tests move."""

    def __init__(self, folder: Path, url: str, bearer: str | None = None) -> None:
        self.trace = make_trace(folder / "trace")
        self.spool = self.trace / "spool"
        self.cursor = folder / "cursor"
        self.url, self.bearer = url, bearer
        self.writer = Recorder(self.spool, RUN, ME, segment_bytes=300)
        self.said: list[str] = []
        self.clock = 100.0
        self.chance = 1.0
        self.links: list[Link] = []
        self.start_agent()

    def start_agent(self, **options: Any) -> None:
        """As after the agent's death: nothing of the old one is left but its files."""
        link = Link(self.url, self.bearer, **options)
        self.links.append(link)
        self.courier = Courier(
            link,
            HostSpool(self.spool, RUN, [0], Cursor(self.cursor)),
            RUN,
            self.trace / "trace.json",
            self.said.append,
            lambda: self.clock,
            lambda: self.chance,
        )

    def write(self, number: int) -> None:
        for _ in range(number):
            self.writer.steps("begin")

    def turn(self) -> float | None:
        """Turns until there is something to wait for."""
        while (delay := self.courier.turn()) == 0.0:
            pass
        return delay

    def finish(self) -> None:
        self.writer.close()
        self.courier.finish_by(self.clock + 5)
        assert self.turn() is None
        self.courier.close()

    def segments(self) -> list[str]:
        return sorted(p.name for p in self.spool.rglob("*.seg"))

    def close(self) -> None:
        for link in self.links:
            link.close()


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as running:
        yield running


@pytest.fixture
def rig(tmp_path: Path, collector: FakeCollector) -> Iterator[Rig]:
    made = Rig(tmp_path, collector.url)
    yield made
    made.close()


def takes_part(*ignored: Any) -> bool:
    """No fault: for the requests before one."""
    return False


def assert_all_there(collector: FakeCollector, rig: Rig) -> None:
    assert sorted(collector.rows[ME]) == list(range(rig.writer.seq))


# ---- when all is well --------------------------------------------------------------------------


def test_rows_go_out_and_their_segments_with_them(rig: Rig, collector: FakeCollector) -> None:
    rig.write(30)
    made = len(rig.segments())
    assert made > 5
    assert rig.turn() == INTERVAL_S
    assert_all_there(collector, rig)
    assert rig.segments() == [f"{made - 1}.seg"]  # it is still written to
    rig.write(3)
    rig.turn()
    rig.finish()
    assert_all_there(collector, rig)
    assert collector.num_duplicates == 0
    assert not rig.spool.exists()
    assert rig.said == []


def test_nothing_new_sends_nothing(rig: Rig, collector: FakeCollector) -> None:
    rig.write(1)
    rig.turn()
    for _ in range(5):
        assert rig.turn() == INTERVAL_S
    assert collector.num_posts == 1


def test_not_a_number_arrives_as_one(rig: Rig, collector: FakeCollector) -> None:
    rig.writer.steps("end", float("nan"))
    rig.turn()
    row = collector.rows[ME][0]
    assert isinstance(row, Steps)
    assert row.loss is not None
    assert math.isnan(row.loss)


def test_completions_count_as_much_as_rows(rig: Rig, collector: FakeCollector) -> None:
    entered = [rig.writer.entered("c", n, "barrier", "", 0, "none") for n in range(5)]
    rig.turn()
    for seq in entered:
        rig.writer.done(seq, 7)
    rig.finish()
    assert sorted(d.seq for d in collector.dones) == entered
    assert not rig.spool.exists()


def test_a_dead_rank_is_cleared_while_the_job_runs(rig: Rig) -> None:
    rig.write(2)  # its writer is not closed, as after SIGKILL
    rig.turn()
    assert rig.segments() == ["0.seg"]
    rig.courier._spool.ended.add(ME)
    rig.turn()
    assert rig.segments() == []


# ---- acknowledgements --------------------------------------------------------------------------


def test_no_segment_goes_before_a_mark_covers_it(rig: Rig, collector: FakeCollector) -> None:
    rig.write(30)
    before = rig.segments()
    collector.claim = lambda mark: 5
    rig.turn()
    kept = rig.segments()
    assert set(kept) < set(before)
    rig.finish()
    left = sorted(int(Path(name).stem) for name in rig.segments())
    first_seq = int.from_bytes((rig.spool / "0-0" / f"{left[0]}.seg").read_bytes()[8:16], "little")
    assert first_seq <= 6  # seq 6 is in it, or in one after it
    assert bytes_left(rig.spool) > 0
    assert not is_whole(rig.spool)
    assert "does not say that it has them all" in rig.said[-1]


def test_an_answer_without_marks_lets_nothing_go(rig: Rig, collector: FakeCollector) -> None:
    collector.always = answers(200, {"num_rows": 1, "num_duplicates": 0, "marks": []})
    rig.write(30)
    before = rig.segments()
    rig.turn()
    assert rig.segments() == before
    assert is_whole(rig.spool)


@pytest.mark.parametrize("cut", [resets, stores_and_resets])
def test_a_cut_connection_loses_nothing(rig: Rig, collector: FakeCollector, cut: Any) -> None:
    rig.write(30)
    before = rig.segments()
    collector.faults.append(cut)
    assert rig.turn() == 0.1  # the first failure, with the longest jitter
    assert rig.segments() == before
    rig.write(5)
    assert rig.turn() == INTERVAL_S
    rig.finish()
    assert_all_there(collector, rig)
    assert collector.num_duplicates == (30 if cut is stores_and_resets else 0)
    assert len(rig.said) == 2
    assert rig.said[1] == "the collector takes rows again"


def test_an_idle_connection_closed_by_the_other_end_is_no_failure(
    rig: Rig, collector: FakeCollector
) -> None:
    collector.faults.extend([answers_and_hangs_up] * 3)
    for _ in range(4):
        rig.write(1)
        assert rig.turn() == INTERVAL_S
    assert_all_there(collector, rig)
    assert rig.said == []


def test_a_collector_that_is_not_there_yet(tmp_path: Path) -> None:
    with socket.socket() as probe:  # bound and not listening: refused, and nobody else's
        probe.bind(("127.0.0.1", 0))
        rig = Rig(tmp_path, f"http://127.0.0.1:{probe.getsockname()[1]}")
        rig.write(3)
        delays = [rig.turn() for _ in range(9)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]
    assert len(rig.said) == 1
    assert "Connection refused" in rig.said[0]


@pytest.mark.parametrize("status", [429, 503, 507])
def test_a_collector_that_asks_for_patience_gets_it(
    rig: Rig, collector: FakeCollector, status: int
) -> None:
    collector.faults.append(answers(status, Retry_After="7"))
    rig.write(3)
    assert rig.turn() == 7.0
    rig.turn()
    assert_all_there(collector, rig)


@pytest.mark.parametrize("body", [b"<html>welcome</html>", b"", b"[]"])
def test_what_is_no_collector_gets_nothing_for_good(
    rig: Rig, collector: FakeCollector, body: bytes
) -> None:
    collector.faults.append(answers(200, body))
    rig.write(30)
    before = rig.segments()
    assert rig.turn() == 0.1
    assert rig.segments() == before
    assert "no collector" in rig.said[0]


def test_jitter_is_full_and_bounded() -> None:
    low, high = Backoff(lambda: 0.0), Backoff(lambda: 1.0)
    assert {low.failed() for _ in range(50)} == {0.0}
    waits = [high.failed() for _ in range(5000)]
    assert waits == sorted(waits)
    assert max(waits) == LONGEST_S
    assert high.failed(3.0) == LONGEST_S
    assert high.failed(30.0) == 30.0
    assert high.failed(1e9) == 60.0
    high.worked()
    assert high.failed() == 0.1


# ---- refusals ----------------------------------------------------------------------------------


def test_a_refused_record_is_isolated_and_stays_visible(rig: Rig, collector: FakeCollector) -> None:
    bad = {7, 8, 21}
    collector.refuse = lambda r: isinstance(r, Steps) and r.seq in bad
    rig.write(30)
    rig.finish()
    rows = collector.rows[ME]
    assert sorted(rows) == list(range(30))
    gaps = {s: r for s, r in rows.items() if isinstance(r, Gaps)}
    assert set(gaps) == bad
    for seq, gap in gaps.items():
        assert (gap.first_seq, gap.last_seq, gap.num_events) == (seq, seq, 1)
        assert (gap.reason, gap.tables) == ("corrupt", ["steps"])
    assert rig.courier._delivery.num_refused == 3
    first, last = rig.said
    assert "steps" in first
    assert "it breaks the schema" in first
    assert last == "3 records were refused and left out in all"
    assert not rig.spool.exists()


def test_a_batch_that_is_too_large_is_halved(rig: Rig, collector: FakeCollector) -> None:
    def at_most_four(handler: Any, records: list[Any]) -> bool:
        if len(records) > 4 or any(isinstance(r, Raw) for r in records):
            handler.answer(413, {})
            return True
        return False

    collector.always = at_most_four
    rig.write(9)
    rig.writer.row(Raw, text="far too large")
    rig.finish()
    assert_all_there(collector, rig)
    gap = collector.rows[ME][9]
    assert isinstance(gap, Gaps)
    assert (gap.reason, gap.tables) == ("dropped", ["raw"])


def test_who_refuses_everything_is_not_believed(rig: Rig, collector: FakeCollector) -> None:
    collector.always = answers(400)
    rig.write(8)
    before = rig.segments()
    assert rig.turn() == 0.1
    assert rig.turn() == 0.2
    assert rig.segments() == before
    collector.always = None
    rig.finish()
    assert_all_there(collector, rig)
    assert not any(isinstance(r, Gaps) for r in collector.rows[ME].values())


def test_a_refused_completion_holds_up_nobody(rig: Rig, collector: FakeCollector) -> None:
    collector.refuse = lambda r: type(r).__name__ == "CollectiveDone"
    rig.writer.done(rig.writer.entered("c", 0, "barrier", "", 0, "none"), 7)
    rig.write(2)
    rig.finish()
    assert_all_there(collector, rig)
    assert "collective_done" in rig.said[0]


def test_a_refused_completion_may_be_the_first_of_all(rig: Rig, collector: FakeCollector) -> None:
    """Nothing was taken before it, as after an agent's restart: it holds up nobody all the same."""
    collector.refuse = lambda r: type(r).__name__ == "CollectiveDone"
    rig.writer.done(rig.writer.entered("c", 0, "barrier", "", 0, "none"), 7)
    rig.cursor.unlink(missing_ok=True)
    payloads = [p for p in rig.courier._spool.collect()[0] if not takes_seq(p)]
    assert len(payloads) == 1
    rig.courier._delivery.deliver(payloads)
    assert rig.courier._delivery.num_refused == 1
    rig.start_agent()
    rig.write(2)
    rig.finish()
    assert_all_there(collector, rig)


def test_a_row_whose_stand_in_is_refused_too_holds_up_nobody(
    rig: Rig, collector: FakeCollector
) -> None:
    """Its segment stays, as no mark covers it: for ``cascade push``, and for people."""
    collector.refuse = lambda r: r.seq == 0
    rig.write(30)
    rig.finish()
    assert sorted(collector.rows[ME]) == list(range(1, 30))
    assert rig.courier._delivery.num_refused == 1
    assert "0.seg" in rig.segments()


def test_who_refuses_completions_and_everything_else_is_not_believed(
    rig: Rig, collector: FakeCollector
) -> None:
    rig.writer.done(rig.writer.entered("c", 0, "barrier", "", 0, "none"), 7)
    payloads = [p for p in rig.courier._spool.collect()[0] if not takes_seq(p)]
    rig.courier._delivery.deliver(payloads)  # it takes things, and then it does not
    collector.always = answers(400)
    with pytest.raises(Later, match="whatever is sent"):
        rig.courier._delivery.deliver(payloads)
    assert rig.courier._delivery.num_refused == 0
    assert collector.num_posts < 5


def test_a_refused_record_is_counted_once_although_its_batch_is_sent_again(
    rig: Rig, collector: FakeCollector
) -> None:
    collector.refuse = lambda r: isinstance(r, Steps) and r.seq == 0
    rig.write(4)
    # The batch, a half, seq 0, its gaps row; then the connection is cut, and again.
    collector.faults.extend([takes_part] * 4 + [resets] * 2)
    assert rig.turn() == 0.1
    rig.turn()
    assert_all_there(collector, rig)
    assert rig.courier._delivery.num_refused == 1


@pytest.mark.parametrize(
    ("status", "words"), [(401, "CASCADE_TOKEN"), (403, "write"), (410, "run")]
)
def test_who_wants_nothing_is_left_alone(
    tmp_path: Path, collector: FakeCollector, status: int, words: str
) -> None:
    rig = Rig(tmp_path, collector.url, bearer="secret-of-mine")
    collector.always = answers(status)
    rig.write(3)
    with pytest.raises(Stopped) as stopped:
        rig.turn()
    assert words in stopped.value.hint
    assert collector.tokens == {"Bearer secret-of-mine"}
    assert "secret" not in f"{stopped.value} {stopped.value.hint} {rig.said}"
    assert rig.segments() == ["0.seg"]
    rig.close()


# ---- damage, death, disk -----------------------------------------------------------------------


def test_damaged_segments_are_set_aside_and_accounted_for(
    rig: Rig, collector: FakeCollector
) -> None:
    rig.write(30)
    victim = rig.spool / "0-0" / "2.seg"
    data = bytearray(victim.read_bytes())
    data[HEADER.size + 20] ^= 1
    victim.write_bytes(data)
    rig.finish()
    (gap,) = [r for r in collector.rows[ME].values() if isinstance(r, Gaps)]
    assert gap.reason == "corrupt"
    assert gap.seq == gap.first_seq
    assert collector.mark(ME) == 29
    assert rig.segments() == ["2.seg"]
    assert (rig.spool / "damaged" / "0-0" / "2.seg").read_bytes() == data
    assert bytes_left(rig.spool) == 0


def test_a_restarted_agent_goes_on_and_resends_at_most_what_was_not_covered(
    rig: Rig, collector: FakeCollector
) -> None:
    rig.write(30)
    rig.turn()
    in_live_segment = 30 - int.from_bytes(
        next(iter(rig.spool.rglob("*.seg"))).read_bytes()[8:16], "little"
    )
    rig.start_agent()
    rig.write(4)
    rig.finish()
    assert_all_there(collector, rig)
    assert collector.num_duplicates == in_live_segment


def test_a_death_between_cursor_and_removal_costs_nothing(
    rig: Rig, collector: FakeCollector
) -> None:
    rig.write(30)
    kept = {p: p.read_bytes() for p in rig.spool.rglob("*.seg")}
    rig.turn()
    for path, data in kept.items():
        if not path.exists():
            path.write_bytes(data)  # as if it had died before any was removed
    rig.start_agent()
    rig.turn()
    assert len(rig.segments()) == 1
    assert collector.num_duplicates < 10


def test_a_lost_cursor_costs_a_second_sending_only(rig: Rig, collector: FakeCollector) -> None:
    rig.write(30)
    rig.turn()
    rig.cursor.unlink()
    rig.start_agent()
    rig.finish()
    assert_all_there(collector, rig)
    assert not rig.spool.exists()


def test_room_is_made_although_the_cursor_cannot_be_written(
    rig: Rig, collector: FakeCollector
) -> None:
    rig.cursor.with_name("cursor.new").mkdir()  # as a full disk: it cannot be opened for writing
    rig.write(30)
    rig.turn()
    assert len(rig.segments()) == 1


# ---- trace.json and the end --------------------------------------------------------------------


def test_the_run_is_told_at_the_start_and_once_its_rows_are_out(
    rig: Rig, collector: FakeCollector
) -> None:
    rig.courier.tell_start = True
    rig.write(5)
    rig.turn()
    rig.write(5)
    rig.courier.tell_end = True
    rig.finish()
    assert [m["path"] for m in collector.metas] == [f"/v1/runs/{RUN}"] * 2
    assert collector.metas[-1]["run_id"] == RUN
    assert collector.order[-1] == "meta"
    assert_all_there(collector, rig)


@pytest.mark.parametrize("status", [404, 422, 500])
def test_rows_do_not_wait_for_the_run_to_be_told(
    rig: Rig, collector: FakeCollector, status: int
) -> None:
    collector.put_status = status
    rig.courier.tell_start = True
    for _ in range(3):
        rig.write(1)
        rig.turn()
    assert_all_there(collector, rig)
    assert len(rig.said) == 1


def test_a_hanging_collector_is_given_up_at_the_deadline(
    tmp_path: Path, collector: FakeCollector
) -> None:
    collector.always = hangs
    rig = Rig(tmp_path, collector.url)
    rig.start_agent(timeout_s=0.1)
    rig.write(5)
    assert rig.turn() == 0.1
    assert "did not answer in time" in rig.said[0]
    before = rig.segments()
    rig.links[-1].set_timeout = lambda timeout_s: None  # type: ignore[method-assign]  # real seconds
    rig.courier.tell_end = True
    rig.courier.finish_by(rig.clock + 5)
    tried = 0
    while True:
        delay = rig.courier.turn()
        tried += 1
        if delay is None:
            break
        rig.clock += max(delay, 0.3)
    assert 3 < tried < 20
    assert rig.clock <= 105.5
    assert rig.segments() == before
    rig.close()


def test_a_long_backlog_is_not_carried_beyond_the_deadline(
    rig: Rig, collector: FakeCollector
) -> None:
    rig.write(9000)
    rig.writer.close()

    def takes_two_seconds(handler: Any, records: list[Any]) -> bool:
        rig.clock += 2
        return False

    collector.always = takes_two_seconds
    rig.courier.finish_by(rig.clock + 5)
    assert rig.turn() is None
    assert len(collector.rows[ME]) == 6000
    assert bytes_left(rig.spool) > 0


def test_at_the_end_the_run_is_told_although_rows_cannot_go(
    rig: Rig, collector: FakeCollector
) -> None:
    rig.write(5)
    rig.courier.tell_end = True
    collector.always = lambda handler, records: bool(records) and answers(503)(handler, records)
    rig.courier.finish_by(rig.clock + 5)
    while (delay := rig.courier.turn()) is not None:
        rig.clock += delay
    assert len(collector.metas) == 1
    assert collector.rows == {}


# ---- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8787", "ftp://h", "http://", "http://h:0", "http://h:99999", "http://h:x",
     "http://h/?a=1", "http://h/#a", "http://h /", "http://[::1", "http://h/\n"],
)  # fmt: skip
def test_what_is_no_address_is_said_so(url: str) -> None:
    with pytest.raises(BadUsage):
        check_collector(url)


def test_an_address_with_a_password_is_refused_and_not_shown() -> None:
    with pytest.raises(BadUsage) as refused:
        check_collector("http://me:geheim@h:1")
    assert "geheim" not in str(refused.value)


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_collector("http://127.0.0.1:8787/") == "http://127.0.0.1:8787"
    assert check_collector("https://h/base/") == "https://h/base"
    monkeypatch.delenv("CASCADE_TOKEN", raising=False)
    assert token() is None
    monkeypatch.setenv("CASCADE_TOKEN", " abc\n")
    assert token() == "abc"
    monkeypatch.setenv("CASCADE_TOKEN", "geheim\nX-Other: 1")
    with pytest.raises(BadUsage) as refused:
        token()
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("1.5", 1.5)])
def test_a_deadline_is_a_number_of_seconds(
    monkeypatch: pytest.MonkeyPatch, text: str, value: float
) -> None:
    monkeypatch.setenv("CASCADE_SHIP_DEADLINE_S", text)
    assert deadline_s() == value


@pytest.mark.parametrize("text", ["-1", "soon", "nan", "inf", ""])
def test_what_is_no_number_of_seconds_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CASCADE_SHIP_DEADLINE_S", text)
    with pytest.raises(BadUsage):
        deadline_s()
