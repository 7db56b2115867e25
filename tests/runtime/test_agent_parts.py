"""The agent's small parts: its rows, the control log, refusals, trace.json, framed connections."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.control_log import ControlLog, comm_id_of, control_comm_id
from cascade_runtime.agent.links import PeerLink, read_frames
from cascade_runtime.agent.protocol import (
    LENGTH,
    MAX_FRAME,
    RECORDED,
    Frame,
    Halt,
    Lag,
    Value,
    pack_frame,
    unpack_frame,
)
from cascade_runtime.agent.refusals import Refusals
from cascade_runtime.agent.rows import AgentRows
from cascade_runtime.agent.trace_file import RECORDED_TABLES, write_trace_end, write_trace_start
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, EventRef
from cascade_runtime.vocabulary.policy import load_policy
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import parse_trace_meta
from collector.trace.trace_writer import write_views
from tests.agent.facts import actors, death_of, view
from tests.collector.traces import rows_of

PATIENCE_S = 20.0


@pytest.fixture
def config(tmp_path: Path) -> JobConfig:
    for name in ("trace", "run"):
        (tmp_path / name).mkdir()
    return JobConfig(
        run_id="run",
        name="job",
        num_ranks=3,
        num_hosts=2,
        mode="enforce",
        policy="default",
        trace_dir=str(tmp_path / "trace"),
        run_dir=str(tmp_path / "run"),
        host="here",
        command=["script.py"],
        master_port=1,
    )


@pytest.fixture
def recorder(config: JobConfig) -> Iterator[Recorder]:
    recorder = Recorder(Path(config.trace_dir) / "spool", config.run_id, Actor(4, 1))
    yield recorder
    recorder.close()


def stored(config: JobConfig) -> dict[str, list[Any]]:
    write_trace_start(config, load_policy())
    write_views(Path(config.trace_dir))
    return rows_of(Path(config.trace_dir))


# ---- rows -----------------------------------------------------------------------------------------


def test_an_agent_introduces_itself(config: JobConfig, recorder: Recorder) -> None:
    AgentRows(recorder).introduce(config, 1)
    rows = stored(config)
    (actor,), (group,) = rows["actors"], rows["groups"]
    assert (actor.seq, actor.name, actor.kind, actor.host) == (0, "agent 1", "agent", "here/v1")
    assert (group.label, group.comm_id) == ("control", control_comm_id("run"))
    assert group.members == actors(0, 1, 2, 3, 4)


def test_evidence_points_at_the_row(config: JobConfig, recorder: Recorder) -> None:
    rows = AgentRows(recorder)
    dead, silent = rows.dead(Actor(2), -9), rows.dead(Actor(1), None)
    calm = rows.calm(FaultEvent.STABLE_SYNC, "calm_rounds", 6, 5, "steps")
    assert [dead, silent, calm] == [EventRef(4, 1, n) for n in range(3)]
    health = stored(config)["health"]
    assert [(h.signal, h.subject_rank, h.value, h.threshold) for h in health] == [
        ("dead", 2, -9.0, None),
        ("dead", 1, None, None),
        ("calm_rounds", None, 6.0, 5.0),
    ]
    assert [h.fault for h in health] == [
        FaultEvent.GPU_FAIL_STOP,
        FaultEvent.GPU_FAIL_STOP,
        FaultEvent.STABLE_SYNC,
    ]


def test_what_the_agent_decides_is_a_row_each(config: JobConfig, recorder: Recorder) -> None:
    rows = AgentRows(recorder)
    trigger = death_of(2)
    new = view(
        0, 1, regime=Regime.CAUSAL, epoch=1, from_regime=Regime.STRONG, departed=actors(2),
        member_reason="failed", fault=FaultEvent.GPU_FAIL_STOP, evidence=trigger.evidence,
    )  # fmt: skip
    rows.decision(trigger, Regime.STRONG, Regime.CAUSAL, True, "why")
    rows.transition("proposed", new)
    rows.membership(new)
    told = stored(config)
    (decision,), (transition,), (membership,) = (
        told[name] for name in ("decisions", "transitions", "membership")
    )
    assert (decision.from_regime, decision.to_regime, decision.changed) == (
        Regime.STRONG,
        Regime.CAUSAL,
        True,
    )
    assert decision.evidence == transition.evidence == trigger.evidence
    assert (transition.phase, transition.new_epoch) == ("proposed", 1)
    assert transition.members == membership.members == actors(0, 1)
    assert (membership.departed, membership.reason) == (actors(2), "failed")


# ---- the control log ------------------------------------------------------------------------------


def test_only_the_walk_s_messages_to_a_known_peer_are_numbered(
    config: JobConfig, recorder: Recorder
) -> None:
    log = ControlLog(recorder)
    halt, value = Halt(1, False), Value("k", b"v")
    assert isinstance(halt, RECORDED)
    assert not isinstance(value, RECORDED)
    frames = [
        log.outgoing(Actor(0), halt),
        log.outgoing(Actor(0), value),
        log.outgoing(None, halt),
        log.outgoing(Actor(0), halt),
        log.outgoing(Actor(0, 1), halt),
        log.outgoing(Actor(1), halt),
    ]
    numbers = [unpack_frame(frame[LENGTH.size :]).channel_seq for frame in frames]
    assert numbers == [0, None, None, 1, 0, 0]
    log.incoming(Actor(0), 7, 50)
    log.incoming(Actor(0), None, 50)
    log.incoming(None, 8, 50)
    rows = stored(config)["messages"]
    assert [(r.direction, r.peer, r.peer_incarnation, r.channel_seq) for r in rows] == [
        ("send", 0, 0, 0),
        ("send", 0, 0, 1),
        ("send", 0, 1, 0),
        ("send", 1, 0, 0),
        ("recv", 0, 0, 7),
    ]
    assert rows[0].num_bytes == len(frames[0])
    assert rows[-1].num_bytes == 50


def test_a_communicator_s_identity_is_its_ordered_actors_and_ordinal():
    same = comm_id_of(actors(0, 1), 3)
    assert same == comm_id_of(actors(0, 1), 3)
    others = [
        comm_id_of(actors(1, 0), 3),
        comm_id_of(actors(0, 1), 4),
        comm_id_of([Actor(0), Actor(1, 1)], 3),
        comm_id_of(actors(0), 3),
        comm_id_of([Actor(0, 1), Actor(1)], 3),
        control_comm_id("run"),
        control_comm_id("other"),
    ]
    assert len({same, *others}) == 1 + len(others)


# ---- refusals -------------------------------------------------------------------------------------


def test_a_reason_is_told_once_with_the_ranks_that_gave_it(
    config: JobConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    refusals = Refusals(config)
    for rank in (2, 0):
        config.refusal_path(Actor(rank)).write_text("no DDP model")
    config.refusal_path(Actor(1)).write_text("no optimizer")
    for rank in (2, 0, 1, 0):
        assert refusals.note(Actor(rank))
    assert not refusals.note(Actor(0, 1))
    refusals.tell()
    assert capsys.readouterr().err == (
        "cascade: ranks 0, 2: no DDP model\ncascade: rank 1: no optimizer\n"
    )


def test_an_early_end_without_a_sentence_is_told_by_its_status(
    config: JobConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    refusals = Refusals(config)
    config.refusal_path(Actor(0)).write_text("no DDP model")
    for rank, status in ((0, 2), (1, 1), (2, 1)):
        refusals.note_early_end(Actor(rank), status)
    refusals.tell()
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "cascade: rank 0: no DDP model"
    assert told[1].startswith("cascade: ranks 1, 2: it ended with exit code 1 before")
    assert len(told) == 2


# ---- trace.json -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_trace_json_at_the_start_and_at_a_clean_end(config: JobConfig, mode: str) -> None:
    config = msgspec.structs.replace(config, mode=mode)
    policy = load_policy()
    write_trace_start(config, policy)
    path = Path(config.trace_dir) / "trace.json"
    begun = parse_trace_meta(path.read_bytes(), "")
    assert (begun.run_id, begun.name, begun.mode, begun.world_size) == ("run", "job", mode, 5)
    assert begun.policy == policy.table()
    assert begun.ended_ns is None
    assert not begun.clean_end
    assert {"python", "msgspec", "torch"} <= set(begun.tool_versions)
    write_trace_end(config, begun.created_ns + 5)
    ended = parse_trace_meta(path.read_bytes(), "")
    assert (ended.ended_ns, ended.clean_end) == (begun.created_ns + 5, True)
    assert ended.created_ns == begun.created_ns
    assert [p.name for p in path.parent.iterdir()] == ["trace.json"]


def test_recorded_tables_are_tables():
    assert set(RECORDED_TABLES) <= set(EVENT_TABLES)
    assert len(set(RECORDED_TABLES)) == len(RECORDED_TABLES)


# ---- connections between agents -------------------------------------------------------------------


@pytest.fixture
def home() -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix="ct-")  # not tmp_path: a socket's path ends at 107 bytes
    yield Path(folder)
    shutil.rmtree(folder)


async def frames_of(data: bytes) -> list[tuple[Frame, int]]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return [pair async for pair in read_frames(reader)]


def test_frames_are_read_until_the_end():
    one, two = pack_frame(Lag(1)), pack_frame(Value("k", b"v" * 500), 3)
    expected = [(Frame(Lag(1)), len(one)), (Frame(Value("k", b"v" * 500), 3), len(two))]
    assert asyncio.run(frames_of(one + two)) == expected
    assert asyncio.run(frames_of(one + two[:-1])) == expected[:1]
    assert asyncio.run(frames_of(one + two[:2])) == expected[:1]


@pytest.mark.parametrize("junk", [LENGTH.pack(MAX_FRAME + 1), LENGTH.pack(2) + b"\xff\xff"])
def test_what_is_no_frame_is_an_error(junk):
    with pytest.raises(ValueError, match=r"."):
        asyncio.run(frames_of(pack_frame(Lag(1)) + junk))


def test_a_peer_is_dialled_until_it_answers_and_again_when_it_breaks(home: Path) -> None:
    path, turns = home / "s", []

    async def main() -> None:
        arrived: asyncio.Queue[Any] = asyncio.Queue()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.put_nowait(writer)
            async for frame, _ in read_frames(reader):
                arrived.put_nowait(frame.body)

        async def next_of() -> Any:
            return await asyncio.wait_for(arrived.get(), PATIENCE_S)

        peer = PeerLink(
            path, pack_frame(Lag(1)), lambda: turns.append("up"), lambda: turns.append("down")
        )
        assert not peer.send(pack_frame(Lag(9)))
        while peer.down_since is None:  # noqa: ASYNC110  # nothing tells of a failed dial
            await asyncio.sleep(0)
        assert not peer.up
        server = await asyncio.start_unix_server(serve, str(path))
        writer = await next_of()
        assert await next_of() == Lag(1)
        assert (peer.up, peer.down_since) == (True, None)
        assert peer.send(pack_frame(Lag(2)))
        assert await next_of() == Lag(2)
        peer.set_hello(pack_frame(Lag(3)))
        writer.close()
        again = await next_of()
        assert await next_of() == Lag(3)
        assert turns == ["up", "down", "up"]
        await peer.close()
        again.close()
        server.close()

    asyncio.run(asyncio.wait_for(main(), 3 * PATIENCE_S))
