"""Every event table of a trace, once. Storage schema, SQL views and the schema page derive from here.

A class is a table, a field a column, the string under a field its documentation. The wire form of an
event is the MessagePack array ``[table, field, field, ...]`` in the order below, so fields are only
ever appended (docs/decisions: a removed or renamed field needs a new SCHEMA_VERSION).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot, EventRef
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.scalars import (
    CollectiveOp,
    Counter,
    Incarnation,
    Int32,
    Int64,
    Ns,
    Rank,
    Seq,
)

SCHEMA_VERSION = 1


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The columns that every event table starts with."""

    run_id: Annotated[str, Meta(description="the run this row belongs to")]
    rank: Annotated[Rank, Meta(description="the actor's rank; host agents count after the ranks")]
    incarnation: Annotated[Incarnation, Meta(description="0 at first start, +1 at each restart")]
    seq: Annotated[
        Seq, Meta(description="one counter per (run, rank, incarnation) over all event tables")
    ]
    group_id: Annotated[
        str, Meta(description="consistency group whose epoch and regime the row carries")
    ]
    epoch: Annotated[
        Int64 | None, Meta(description="grows by one at every regime, membership or cohort change")
    ]
    regime: Annotated[Regime | None, Meta(description="the regime in force for the actor")]
    step: Annotated[Int64 | None, Meta(description="the actor's training step")]
    wall_ns: Annotated[
        Ns, Meta(description="steady wall time: anchored once, advanced by the steady clock")
    ]
    mono_ns: Annotated[
        Ns | None, Meta(description="the host's monotonic clock; null in imports without one")
    ]


class Actors(Event, tag="actors", frozen=True, array_like=True, gc=False):
    """One row an actor, its first: who takes part."""

    name: Annotated[str | None, Meta(description="a name for people")] = None
    kind: Annotated[
        Literal["rank", "agent"] | None, Meta(description="a training rank or a host agent")
    ] = None
    host: Annotated[str | None, Meta(description="host name, or virtual host")] = None
    device_uuid: Annotated[str | None, Meta(description="GPU, null on CPU")] = None
    pid: Annotated[Int64 | None, Meta(description="process id on that host")] = None
    started_from: Annotated[
        str | None, Meta(description="checkpoint_id the actor began from, null when fresh")
    ] = None


class Groups(Event, tag="groups", frozen=True, array_like=True, gc=False):
    """A communicator that an actor belongs to."""

    comm_id: Annotated[
        str | None,
        Meta(description="hash of ordered actors and ordinal; never a process-local id"),
    ] = None
    members: Annotated[list[Actor] | None, Meta(description="in communicator order")] = None
    ordinal: Annotated[Int32 | None, Meta(description="tells groups of the same members apart")] = (
        None
    )
    label: Annotated[
        str | None, Meta(description="cohort/<epoch>/<i>, control, or the user's name")
    ] = None
    replaces: Annotated[str | None, Meta(description="comm_id that this group stands in for")] = (
        None
    )


class Objects(Event, tag="objects", frozen=True, array_like=True, gc=False):
    """A piece of shared state that updates, reads, digests and debts name."""

    object: Annotated[
        str | None, Meta(description="params/<i>, buffers, optim, data/<rank>, ...")
    ] = None
    kind: Annotated[
        Literal["shard", "bucket", "kv_prefix", "plan", "state"] | None,
        Meta(description="what sort of state it is"),
    ] = None
    update_kind: Annotated[
        Literal["assign", "delta"] | None,
        Meta(description="an update replaces the value, or is added to it"),
    ] = None
    holders: Annotated[list[Rank] | None, Meta(description="ranks that hold it, null = all")] = None
    staleness_bound: Annotated[Int64 | None, Meta(description="in versions, null = none")] = None


class Steps(Event, tag="steps", frozen=True, array_like=True, gc=False):
    """A training step begins or ends."""

    phase: Annotated[Literal["begin", "end"] | None, Meta(description="which of the two")] = None
    loss: Annotated[float | None, Meta(description="the step's loss where the job told it")] = None
    num_samples: Annotated[Int64 | None, Meta(description="samples in this member's batch")] = None


class Collectives(Event, tag="collectives", frozen=True, array_like=True, gc=False):
    """One member's part in one collective. On the wire: this record at entry, then CollectiveDone."""

    comm_id: Annotated[str | None, Meta(description="the communicator, see groups")] = None
    cseq: Annotated[
        Int64 | None, Meta(description="the collective's number on its communicator, from 0")
    ] = None
    op: Annotated[CollectiveOp | None, Meta(description="torch.distributed's name")] = None
    label: Annotated[str | None, Meta(description="what was reduced, bucket/<i>")] = None
    call_site: Annotated[str | None, Meta(description="file:line that launched it")] = None
    num_bytes: Annotated[Int64 | None, Meta(description="this member's input")] = None
    dtype: Annotated[str | None, Meta(description="element type, float32")] = None
    root: Annotated[Int32 | None, Meta(description="global rank of the root, or null")] = None
    is_async: Annotated[bool | None, Meta(description="launched without waiting")] = None
    done_seq: Annotated[
        Int64 | None,
        Meta(description="the actor's first seq after it learned of completion; null when never"),
    ] = None
    enter_ns: Annotated[Ns | None, Meta(description="when the member entered")] = None
    start_ns: Annotated[Ns | None, Meta(description="when the device started it")] = None
    complete_ns: Annotated[Ns | None, Meta(description="when the member's part completed")] = None
    completed: Annotated[bool | None, Meta(description="false when it never completed")] = None
    payload_digest: Annotated[str | None, Meta(description="of the result, sampled")] = None


class CollectiveDone(msgspec.Struct, tag="collective_done", frozen=True, array_like=True, gc=False):
    """Completion of an entered collective; takes no seq of its own, joins the row it names."""

    run_id: str
    rank: Rank
    incarnation: Incarnation
    seq: Annotated[Seq, Meta(description="seq of the entered record")]
    done_seq: Int64
    start_ns: Ns | None = None
    complete_ns: Ns | None = None
    completed: bool = True
    payload_digest: str | None = None


class Messages(Event, tag="messages", frozen=True, array_like=True, gc=False):
    """A point-to-point message sent, or received (stamped at arrival)."""

    comm_id: Annotated[str | None, Meta(description="control and side channels are groups too")] = (
        None
    )
    peer: Annotated[Rank | None, Meta(description="rank of the other end")] = None
    peer_incarnation: Annotated[Incarnation | None, Meta(description="its incarnation")] = None
    channel_seq: Annotated[
        Int64 | None, Meta(description="per (comm_id, source actor, destination actor), from 0")
    ] = None
    direction: Annotated[Literal["send", "recv"] | None, Meta(description="which end this is")] = (
        None
    )
    num_bytes: Annotated[Int64 | None, Meta(description="payload size")] = None
    enter_ns: Annotated[Ns | None, Meta(description="when the operation was entered")] = None
    complete_ns: Annotated[Ns | None, Meta(description="when it completed")] = None


class Updates(Event, tag="updates", frozen=True, array_like=True, gc=False):
    """An update of an object was issued, applied here, or discarded here."""

    action: Annotated[
        Literal["issued", "applied", "discarded"] | None, Meta(description="what happened to it")
    ] = None
    object: Annotated[str | None, Meta(description="the object updated")] = None
    origin_rank: Annotated[Rank | None, Meta(description="the dot's author")] = None
    origin_incarnation: Annotated[Incarnation | None, Meta(description="its incarnation")] = None
    counter: Annotated[Counter | None, Meta(description="the dot's counter, from 1")] = None
    version: Annotated[
        Int64 | None, Meta(description="where the object has one total order, else null")
    ] = None
    deps: Annotated[
        list[Dot] | None, Meta(description="nearest updates of other origins it depends on")
    ] = None
    num_bytes: Annotated[Int64 | None, Meta(description="payload size")] = None
    digest: Annotated[str | None, Meta(description="of the payload or of the value after it")] = (
        None
    )


class Reads(Event, tag="reads", frozen=True, array_like=True, gc=False):
    """An object was read: by a forward pass, by an agent that acts on it, or only looked at."""

    object: Annotated[str | None, Meta(description="the object read")] = None
    use: Annotated[
        Literal["forward", "act", "observe"] | None, Meta(description="what the value was for")
    ] = None
    origin_rank: Annotated[Rank | None, Meta(description="author of the dot seen")] = None
    origin_incarnation: Annotated[Incarnation | None, Meta(description="its incarnation")] = None
    counter: Annotated[
        Counter | None, Meta(description="assign objects: the dot seen, null = initial value")
    ] = None
    version: Annotated[Int64 | None, Meta(description="the version seen")] = None
    frontier: Annotated[
        list[Dot] | None, Meta(description="delta objects: clock of what was folded in")
    ] = None


class Leases(Event, tag="leases", frozen=True, array_like=True, gc=False):
    """A right to use an object for a while."""

    action: Annotated[
        Literal["granted", "renewed", "revoked", "used"] | None, Meta(description="what happened")
    ] = None
    lease_id: Annotated[str | None, Meta(description="the lease")] = None
    object: Annotated[str | None, Meta(description="the object leased")] = None
    holder: Annotated[Actor | None, Meta(description="who holds it")] = None
    until_ns: Annotated[Ns | None, Meta(description="end of the lease")] = None


class Decisions(Event, tag="decisions", frozen=True, array_like=True, gc=False):
    """What the policy answered to (regime, fault event, debt); "no change" is recorded too."""

    fault: Annotated[FaultEvent | None, Meta(description="what the policy was asked about")] = None
    from_regime: Annotated[Regime | None, Meta(description="regime when asked")] = None
    to_regime: Annotated[Regime | None, Meta(description="regime answered")] = None
    changed: Annotated[bool | None, Meta(description="in observe mode: it would have changed")] = (
        None
    )
    reason: Annotated[str | None, Meta(description="why, one sentence")] = None
    evidence: Annotated[list[EventRef] | None, Meta(description="rows the fault rests on")] = None


class Transitions(Event, tag="transitions", frozen=True, array_like=True, gc=False):
    """One row of an agreed walk from an epoch to the next, by each member and the proposer."""

    phase: Annotated[
        Literal["proposed", "acknowledged", "committed", "aborted"] | None,
        Meta(description="proposed and acknowledged carry the old epoch, committed the new one"),
    ] = None
    from_regime: Annotated[Regime | None, Meta(description="before")] = None
    to_regime: Annotated[Regime | None, Meta(description="after")] = None
    fault: Annotated[
        FaultEvent | None, Meta(description="why; null only when the regime stays")
    ] = None
    reason: Annotated[str | None, Meta(description="one sentence")] = None
    new_epoch: Annotated[Int64 | None, Meta(description="the epoch walked to")] = None
    members: Annotated[list[Actor] | None, Meta(description="of the new view")] = None
    cohorts: Annotated[
        list[list[Actor]] | None,
        Meta(description="members that step together; a newcomer on its way is one by itself"),
    ] = None
    proposer: Annotated[Actor | None, Meta(description="the agent that proposed")] = None
    evidence: Annotated[list[EventRef] | None, Meta(description="rows the fault rests on")] = None


class Debt(Event, tag="debt", frozen=True, array_like=True, gc=False):
    """What was relaxed and must be settled before climbing back."""

    action: Annotated[
        Literal["opened", "settled", "written_off"] | None, Meta(description="what happened")
    ] = None
    debt_id: Annotated[str | None, Meta(description="unique in the run")] = None
    relaxed: Annotated[
        Regime | None,
        Meta(
            description="the guarantee given up: STRONG or CAUSAL",
            extra={"words": ("STRONG", "CAUSAL")},
        ),
    ] = None
    new_epoch: Annotated[Int64 | None, Meta(description="of the transition that opened it")] = None
    object: Annotated[str | None, Meta(description="object concerned, null = every object")] = None
    clock: Annotated[list[Dot] | None, Meta(description="frontier at the cut")] = None
    in_flight: Annotated[
        list[Dot] | None, Meta(description="updates whose fate was open at the cut")
    ] = None
    frontier: Annotated[
        list[Dot] | None, Meta(description="on settled rows: frontier after the fold")
    ] = None
    resolved: Annotated[list[Dot] | None, Meta(description="dots given a fate by name")] = None
    resolution: Annotated[
        Literal["applied", "discarded", "superseded", "replaced"] | None,
        Meta(description="the fate"),
    ] = None
    drift_l2: Annotated[
        float | None, Meta(description="L2 norm of parameters before against after")
    ] = None
    drift_max: Annotated[float | None, Meta(description="largest absolute difference")] = None


class Membership(Event, tag="membership", frozen=True, array_like=True, gc=False):
    """The view changed: who is in, who joined, who left and why. Carries the new epoch."""

    members: Annotated[list[Actor] | None, Meta(description="of the new view")] = None
    joined: Annotated[list[Actor] | None, Meta(description="new in it")] = None
    departed: Annotated[list[Actor] | None, Meta(description="gone from it")] = None
    reason: Annotated[str | None, Meta(description="started, failed, finished, joined")] = None


class Health(Event, tag="health", frozen=True, array_like=True, gc=False):
    """A measured health value of an actor."""

    detector: Annotated[str | None, Meta(description="which detector measured")] = None
    signal: Annotated[str | None, Meta(description="what was measured")] = None
    subject_rank: Annotated[Rank | None, Meta(description="whom it concerns")] = None
    subject_incarnation: Annotated[Incarnation | None, Meta(description="its incarnation")] = None
    value: Annotated[float | None, Meta(description="in unit")] = None
    threshold: Annotated[float | None, Meta(description="above which it is a fault")] = None
    unit: Annotated[str | None, Meta(description="of value and threshold")] = None
    fault: Annotated[FaultEvent | None, Meta(description="null when it did not fire")] = None


class Checkpoints(Event, tag="checkpoints", frozen=True, array_like=True, gc=False):
    """A checkpoint was saved or loaded, or a live snapshot received at rejoin."""

    action: Annotated[
        Literal["saved", "loaded", "received"] | None, Meta(description="what happened")
    ] = None
    checkpoint_id: Annotated[str | None, Meta(description="the checkpoint")] = None
    durable: Annotated[bool | None, Meta(description="false for a live snapshot")] = None
    scope: Annotated[
        Literal["self", "group"] | None, Meta(description="one actor's state or the group's")
    ] = None
    frontier: Annotated[list[Dot] | None, Meta(description="clock of what is inside")] = None
    world_size: Annotated[Int32 | None, Meta(description="members when saved")] = None
    params_digest: Annotated[str | None, Meta(description="of all parameters")] = None
    optim_digest: Annotated[str | None, Meta(description="of the optimizer's state")] = None
    rng_digest: Annotated[str | None, Meta(description="of the random generators")] = None
    data_position: Annotated[Int64 | None, Meta(description="samples consumed")] = None
    data_shard: Annotated[
        str | None, Meta(description="shards of the data read, separated by commas")
    ] = None
    source_run: Annotated[
        str | None, Meta(description="saved in this other run, and told again by who loads it")
    ] = None
    source_rank: Annotated[
        Rank | None, Meta(description="rank of that run which saved it; null = the row's own")
    ] = None


class Digests(Event, tag="digests", frozen=True, array_like=True, gc=False):
    """The digest of an object's bytes at a version (STRONG) or frontier (else)."""

    object: Annotated[str | None, Meta(description="the object")] = None
    version: Annotated[Int64 | None, Meta(description="under STRONG")] = None
    frontier: Annotated[list[Dot] | None, Meta(description="under CAUSAL and EVENTUAL")] = None
    digest: Annotated[str | None, Meta(description="hex")] = None


class Compute(Event, tag="compute", frozen=True, array_like=True, gc=False):
    """A span in which the actor's device (or, on CPU, its process) was busy."""

    start_ns: Annotated[Ns | None, Meta(description="begin")] = None
    end_ns: Annotated[Ns | None, Meta(description="end")] = None


class Gpu(Event, tag="gpu", frozen=True, array_like=True, gc=False):
    """One NVML sample."""

    device_uuid: Annotated[str | None, Meta(description="the GPU")] = None
    util_pct: Annotated[float | None, Meta(description="kernel running, percent")] = None
    mem_util_pct: Annotated[float | None, Meta(description="memory activity, percent")] = None
    power_mw: Annotated[Int64 | None, Meta(description="draw in milliwatts")] = None
    energy_mj: Annotated[Int64 | None, Meta(description="since driver load, millijoules")] = None
    temp_c: Annotated[float | None, Meta(description="degrees Celsius")] = None
    sm_clock_mhz: Annotated[Int64 | None, Meta(description="SM clock")] = None
    throttle: Annotated[str | None, Meta(description="active throttle reasons")] = None
    ecc_uncorrected: Annotated[Int64 | None, Meta(description="uncorrected errors")] = None
    xid: Annotated[Int64 | None, Meta(description="last Xid")] = None


class Gaps(Event, tag="gaps", frozen=True, array_like=True, gc=False):
    """Events known to be missing from this actor."""

    first_seq: Annotated[Int64 | None, Meta(description="first missing seq")] = None
    last_seq: Annotated[Int64 | None, Meta(description="last missing seq")] = None
    num_events: Annotated[Int64 | None, Meta(description="how many, null = unknown")] = None
    tables: Annotated[list[str] | None, Meta(description="tables hit, null = any")] = None
    reason: Annotated[
        Literal["dropped", "ring_wrapped", "corrupt", "not_supplied"] | None,
        Meta(description="why they are missing"),
    ] = None


class Raw(Event, tag="raw", frozen=True, array_like=True, gc=False):
    """A line of foreign evidence, kept in sight."""

    source: Annotated[str | None, Meta(description="file it came from")] = None
    line: Annotated[Int64 | None, Meta(description="line number")] = None
    text: Annotated[str | None, Meta(description="the line")] = None
    parsed: Annotated[bool | None, Meta(description="false = not understood")] = None


EVENT_TYPES: tuple[type[Event], ...] = (
    Actors,
    Groups,
    Objects,
    Steps,
    Collectives,
    Messages,
    Updates,
    Reads,
    Leases,
    Decisions,
    Transitions,
    Debt,
    Membership,
    Health,
    Checkpoints,
    Digests,
    Compute,
    Gpu,
    Gaps,
    Raw,
)

AnyEvent = (
    Actors
    | Groups
    | Objects
    | Steps
    | Collectives
    | Messages
    | Updates
    | Reads
    | Leases
    | Decisions
    | Transitions
    | Debt
    | Membership
    | Health
    | Checkpoints
    | Digests
    | Compute
    | Gpu
    | Gaps
    | Raw
)

Record = AnyEvent | CollectiveDone
"""What a spool record or a wire line holds."""
