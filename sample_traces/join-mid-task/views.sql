-- Views of one CASCADE trace. Open it from inside the trace folder with any duckdb:
--   duckdb -init views.sql        or, in duckdb:  .read views.sql
-- Written by the collector; what each view says is in docs/schema.md.

-- One row an actor, its first: who takes part.
CREATE OR REPLACE VIEW actors AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "name",
    NULL::VARCHAR AS "kind",
    NULL::VARCHAR AS "host",
    NULL::VARCHAR AS "device_uuid",
    NULL::BIGINT AS "pid",
    NULL::VARCHAR AS "started_from"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/actors/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- A communicator that an actor belongs to.
CREATE OR REPLACE VIEW groups AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "comm_id",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER)[] AS "members",
    NULL::INTEGER AS "ordinal",
    NULL::VARCHAR AS "label",
    NULL::VARCHAR AS "replaces"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/groups/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- A piece of shared state that updates, reads, digests and debts name.
CREATE OR REPLACE VIEW objects AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "object",
    NULL::VARCHAR AS "kind",
    NULL::VARCHAR AS "update_kind",
    NULL::INTEGER[] AS "holders",
    NULL::BIGINT AS "staleness_bound"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/objects/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- A training step begins or ends.
CREATE OR REPLACE VIEW steps AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "phase",
    NULL::DOUBLE AS "loss",
    NULL::BIGINT AS "num_samples"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/steps/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- One member's part in one collective. On the wire: this record at entry, then CollectiveDone.
CREATE OR REPLACE VIEW collectives AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "comm_id",
    NULL::BIGINT AS "cseq",
    NULL::VARCHAR AS "op",
    NULL::VARCHAR AS "label",
    NULL::VARCHAR AS "call_site",
    NULL::BIGINT AS "num_bytes",
    NULL::VARCHAR AS "dtype",
    NULL::INTEGER AS "root",
    NULL::BOOLEAN AS "is_async",
    NULL::BIGINT AS "done_seq",
    NULL::BIGINT AS "enter_ns",
    NULL::BIGINT AS "start_ns",
    NULL::BIGINT AS "complete_ns",
    NULL::BOOLEAN AS "completed",
    NULL::VARCHAR AS "payload_digest"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/collectives/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- A point-to-point message sent, or received (stamped at arrival).
CREATE OR REPLACE VIEW messages AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "comm_id",
    NULL::INTEGER AS "peer",
    NULL::INTEGER AS "peer_incarnation",
    NULL::BIGINT AS "channel_seq",
    NULL::VARCHAR AS "direction",
    NULL::BIGINT AS "num_bytes",
    NULL::BIGINT AS "enter_ns",
    NULL::BIGINT AS "complete_ns"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/messages/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- An update of an object was issued, applied here, or discarded here.
CREATE OR REPLACE VIEW updates AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "action",
    NULL::VARCHAR AS "object",
    NULL::INTEGER AS "origin_rank",
    NULL::INTEGER AS "origin_incarnation",
    NULL::BIGINT AS "counter",
    NULL::BIGINT AS "version",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, counter BIGINT)[] AS "deps",
    NULL::BIGINT AS "num_bytes",
    NULL::VARCHAR AS "digest"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/updates/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- An object was read: by a forward pass, by an agent that acts on it, or only looked at.
CREATE OR REPLACE VIEW reads AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "object",
    NULL::VARCHAR AS "use",
    NULL::INTEGER AS "origin_rank",
    NULL::INTEGER AS "origin_incarnation",
    NULL::BIGINT AS "counter",
    NULL::BIGINT AS "version",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, counter BIGINT)[] AS "frontier"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/reads/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- A right to use an object for a while.
CREATE OR REPLACE VIEW leases AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "action",
    NULL::VARCHAR AS "lease_id",
    NULL::VARCHAR AS "object",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER) AS "holder",
    NULL::BIGINT AS "until_ns"
  WHERE false
);

-- What the policy answered to (regime, fault event, debt); "no change" is recorded too.
CREATE OR REPLACE VIEW decisions AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "fault",
    NULL::VARCHAR AS "from_regime",
    NULL::VARCHAR AS "to_regime",
    NULL::BOOLEAN AS "changed",
    NULL::VARCHAR AS "reason",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, seq BIGINT)[] AS "evidence"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/decisions/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- One row of an agreed walk from an epoch to the next, by each member and the proposer.
CREATE OR REPLACE VIEW transitions AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "phase",
    NULL::VARCHAR AS "from_regime",
    NULL::VARCHAR AS "to_regime",
    NULL::VARCHAR AS "fault",
    NULL::VARCHAR AS "reason",
    NULL::BIGINT AS "new_epoch",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER)[] AS "members",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER)[][] AS "cohorts",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER) AS "proposer",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, seq BIGINT)[] AS "evidence"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/transitions/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- What was relaxed and must be settled before climbing back.
CREATE OR REPLACE VIEW debt AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "action",
    NULL::VARCHAR AS "debt_id",
    NULL::VARCHAR AS "relaxed",
    NULL::BIGINT AS "new_epoch",
    NULL::VARCHAR AS "object",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, counter BIGINT)[] AS "clock",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, counter BIGINT)[] AS "in_flight",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, counter BIGINT)[] AS "frontier",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, counter BIGINT)[] AS "resolved",
    NULL::VARCHAR AS "resolution",
    NULL::DOUBLE AS "drift_l2",
    NULL::DOUBLE AS "drift_max"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/debt/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- The view changed: who is in, who joined, who left and why. Carries the new epoch.
CREATE OR REPLACE VIEW membership AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER)[] AS "members",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER)[] AS "joined",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER)[] AS "departed",
    NULL::VARCHAR AS "reason"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/membership/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- A measured health value of an actor.
CREATE OR REPLACE VIEW health AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "detector",
    NULL::VARCHAR AS "signal",
    NULL::INTEGER AS "subject_rank",
    NULL::INTEGER AS "subject_incarnation",
    NULL::DOUBLE AS "value",
    NULL::DOUBLE AS "threshold",
    NULL::VARCHAR AS "unit",
    NULL::VARCHAR AS "fault"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/health/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- A checkpoint was saved or loaded, or a live snapshot received at rejoin.
CREATE OR REPLACE VIEW checkpoints AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "action",
    NULL::VARCHAR AS "checkpoint_id",
    NULL::BOOLEAN AS "durable",
    NULL::VARCHAR AS "scope",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, counter BIGINT)[] AS "frontier",
    NULL::INTEGER AS "world_size",
    NULL::VARCHAR AS "params_digest",
    NULL::VARCHAR AS "optim_digest",
    NULL::VARCHAR AS "rng_digest",
    NULL::BIGINT AS "data_position",
    NULL::VARCHAR AS "data_shard"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/checkpoints/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- The digest of an object's bytes at a version (STRONG) or frontier (else).
CREATE OR REPLACE VIEW digests AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "object",
    NULL::BIGINT AS "version",
    NULL::STRUCT(rank INTEGER, incarnation INTEGER, counter BIGINT)[] AS "frontier",
    NULL::VARCHAR AS "digest"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('events/digests/*.parquet', union_by_name = true)
) WHERE run_id = '4bb512e7f5ad';

-- A span in which the actor's device (or, on CPU, its process) was busy.
CREATE OR REPLACE VIEW compute AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::BIGINT AS "start_ns",
    NULL::BIGINT AS "end_ns"
  WHERE false
);

-- One NVML sample.
CREATE OR REPLACE VIEW gpu AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "device_uuid",
    NULL::DOUBLE AS "util_pct",
    NULL::DOUBLE AS "mem_util_pct",
    NULL::BIGINT AS "power_mw",
    NULL::BIGINT AS "energy_mj",
    NULL::DOUBLE AS "temp_c",
    NULL::BIGINT AS "sm_clock_mhz",
    NULL::VARCHAR AS "throttle",
    NULL::BIGINT AS "ecc_uncorrected",
    NULL::BIGINT AS "xid"
  WHERE false
);

-- Events known to be missing from this actor.
CREATE OR REPLACE VIEW gaps AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::BIGINT AS "first_seq",
    NULL::BIGINT AS "last_seq",
    NULL::BIGINT AS "num_events",
    NULL::VARCHAR[] AS "tables",
    NULL::VARCHAR AS "reason"
  WHERE false
);

-- A line of foreign evidence, kept in sight.
CREATE OR REPLACE VIEW raw AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "run_id",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wall_ns",
    NULL::BIGINT AS "mono_ns",
    NULL::VARCHAR AS "source",
    NULL::BIGINT AS "line",
    NULL::VARCHAR AS "text",
    NULL::BOOLEAN AS "parsed"
  WHERE false
);

-- A span in which one actor held one regime in one group.
CREATE OR REPLACE VIEW regime_intervals AS
SELECT * REPLACE (coalesce(run_id, '4bb512e7f5ad') AS run_id) FROM (
  SELECT
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "start_ns",
    NULL::BIGINT AS "end_ns",
    NULL::VARCHAR AS "fault",
    NULL::VARCHAR AS "run_id"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('results/regime_intervals/*.parquet', union_by_name = true)
);

-- One member's wait in one collective.
CREATE OR REPLACE VIEW waits AS
SELECT * REPLACE (coalesce(run_id, '4bb512e7f5ad') AS run_id) FROM (
  SELECT
    NULL::VARCHAR AS "comm_id",
    NULL::BIGINT AS "cseq",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "step",
    NULL::BIGINT AS "wait_ns",
    NULL::BIGINT AS "exposed_ns",
    NULL::BIGINT AS "transfer_ns",
    NULL::INTEGER AS "last_rank",
    NULL::INTEGER AS "root_rank",
    NULL::VARCHAR AS "cause",
    NULL::BOOLEAN AS "is_open",
    NULL::VARCHAR AS "run_id"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('results/waits/*.parquet', union_by_name = true)
);

-- A rule broken, with a witness.
CREATE OR REPLACE VIEW violations AS
SELECT * FROM (
  SELECT
    NULL::VARCHAR AS "code",
    NULL::VARCHAR AS "name",
    NULL::VARCHAR AS "severity",
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BIGINT AS "seq",
    NULL::VARCHAR AS "group_id",
    NULL::BIGINT AS "epoch",
    NULL::VARCHAR AS "regime",
    NULL::BIGINT AS "wall_ns",
    NULL::VARCHAR AS "sentence",
    NULL::VARCHAR AS "witness",
    NULL::BOOLEAN AS "inferred",
    NULL::VARCHAR AS "run_id"
  WHERE false
);

-- What each rule said.
CREATE OR REPLACE VIEW checks AS
SELECT * REPLACE (coalesce(run_id, '4bb512e7f5ad') AS run_id) FROM (
  SELECT
    NULL::VARCHAR AS "code",
    NULL::VARCHAR AS "name",
    NULL::VARCHAR AS "verdict",
    NULL::BIGINT AS "num_checked",
    NULL::BIGINT AS "num_violations",
    NULL::VARCHAR AS "reason",
    NULL::VARCHAR AS "run_id"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('results/checks/*.parquet', union_by_name = true)
);

-- An actor that the evidence points at.
CREATE OR REPLACE VIEW suspects AS
SELECT * FROM (
  SELECT
    NULL::INTEGER AS "rank",
    NULL::INTEGER AS "incarnation",
    NULL::BOOLEAN AS "certain",
    NULL::VARCHAR AS "why",
    NULL::VARCHAR AS "evidence",
    NULL::VARCHAR AS "run_id"
  WHERE false
);

-- A host's clock against the reference host.
CREATE OR REPLACE VIEW clock_fit AS
SELECT * REPLACE (coalesce(run_id, '4bb512e7f5ad') AS run_id) FROM (
  SELECT
    NULL::VARCHAR AS "host",
    NULL::BIGINT AS "offset_ns",
    NULL::DOUBLE AS "drift_ppm",
    NULL::BIGINT AS "error_ns",
    NULL::BOOLEAN AS "connected",
    NULL::VARCHAR AS "run_id"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM read_parquet('results/clock_fit/*.parquet', union_by_name = true)
);

-- Every debt opened, settled or written off, in time, with how many were open then in its group.
CREATE OR REPLACE VIEW debt_timeline AS
WITH opened AS (
    SELECT *
    FROM debt
    WHERE action = 'opened'
    QUALIFY row_number() OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns, rank, incarnation, seq) = 1
),
closed AS (
    SELECT *
    FROM debt
    WHERE action IN ('settled', 'written_off')
    QUALIFY row_number() OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns, rank, incarnation, seq) = 1
),
changes AS (
    SELECT *, 1 AS change FROM opened
    UNION ALL
    SELECT c.*, CASE WHEN o.debt_id IS NULL THEN 0 ELSE -1 END AS change
    FROM closed AS c LEFT JOIN opened AS o ON c.run_id = o.run_id AND c.debt_id = o.debt_id
)
SELECT
    wall_ns,
    group_id,
    debt_id,
    action,
    coalesce(relaxed, first_value(relaxed IGNORE NULLS) OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns)) AS relaxed,
    coalesce(object, first_value(object IGNORE NULLS) OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns)) AS object,
    resolution,
    drift_l2,
    sum(change) OVER (PARTITION BY run_id, group_id ORDER BY wall_ns, rank, incarnation, seq)::BIGINT AS num_open,
    run_id
FROM changes
ORDER BY run_id, wall_ns, rank, incarnation, seq;

-- NVML samples in time, by the rank that owns the device; no rows where no GPU was measured.
CREATE OR REPLACE VIEW gpu_utilisation AS
WITH owners AS (
    SELECT run_id, device_uuid, min((rank, incarnation)) AS actor
    FROM actors
    WHERE device_uuid IS NOT NULL AND kind IS DISTINCT FROM 'agent'
    GROUP BY run_id, device_uuid
    HAVING count(DISTINCT rank) = 1
)
SELECT
    coalesce(o.actor[1], g.rank) AS rank,
    g.incarnation,
    g.device_uuid,
    g.wall_ns,
    g.util_pct,
    g.mem_util_pct,
    g.power_mw / 1e3 AS power_w,
    g.temp_c,
    g.sm_clock_mhz,
    g.throttle,
    g.run_id
FROM gpu AS g LEFT JOIN owners AS o USING (run_id, device_uuid)
ORDER BY g.run_id, g.wall_ns, rank;

-- What happened, a row each, in time: walks, departures, fired health signals, gaps, violations. The list on the page puts into one incident what belongs together, adds waits, hangs and silence, and begins with the worst.
CREATE OR REPLACE VIEW incidents AS
WITH walks AS (
    SELECT *
    FROM transitions
    WHERE phase = 'committed' AND from_regime IS DISTINCT FROM to_regime
    QUALIFY row_number() OVER (
        PARTITION BY run_id, group_id, new_epoch, from_regime, to_regime ORDER BY wall_ns, rank, incarnation
    ) = 1
),
departures AS (
    SELECT run_id, group_id, epoch, wall_ns, reason, unnest(departed) AS actor
    FROM membership
    WHERE reason IS DISTINCT FROM 'finished'
    QUALIFY row_number() OVER (
        PARTITION BY run_id, group_id, epoch, departed ORDER BY wall_ns, rank, incarnation
    ) = 1
)
SELECT
    wall_ns,
    'transition' AS kind,
    CASE
        WHEN from_regime = 'EVENTUAL' OR to_regime = 'STRONG' THEN 'info' ELSE 'warning'
    END AS severity,
    rank,
    incarnation,
    group_id,
    new_epoch AS epoch,
    fault,
    concat(from_regime, ' to ', to_regime, coalesce(' on ' || fault, ''), coalesce(': ' || reason, ''))
        AS sentence,
    run_id
FROM walks
UNION ALL
SELECT
    wall_ns, 'departure', 'warning', actor.rank, actor.incarnation, group_id, epoch, NULL,
    concat('rank ', actor.rank, ' left the view', coalesce(': ' || reason, '')), run_id
FROM departures
UNION ALL
SELECT
    wall_ns, 'health', CASE WHEN fault IN ('RECOVERY_DETECTED', 'STABLE_SYNC') THEN 'info' ELSE 'warning' END,
    coalesce(subject_rank, rank), coalesce(subject_incarnation, incarnation), group_id, epoch, fault,
    concat(fault, coalesce(': ' || signal || ' ' || value || coalesce(' ' || unit, ''), '')), run_id
FROM health
WHERE fault IS NOT NULL
UNION ALL
SELECT
    wall_ns, 'gap', 'warning', rank, incarnation, group_id, epoch, NULL,
    concat(coalesce(num_events::VARCHAR, 'an unknown number of'), ' events are missing (', reason, ')'), run_id
FROM gaps
UNION ALL
SELECT wall_ns, 'violation', severity, rank, incarnation, group_id, epoch, NULL, concat(code, ' ', sentence),
    run_id
FROM violations
ORDER BY run_id, wall_ns, rank, incarnation, kind;

-- Debts that were opened and neither settled nor written off.
CREATE OR REPLACE VIEW open_debt AS
WITH opened AS (
    SELECT *
    FROM debt
    WHERE action = 'opened'
    QUALIFY row_number() OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns, rank, incarnation, seq) = 1
)
SELECT
    debt_id,
    group_id,
    relaxed,
    object,
    new_epoch,
    rank,
    incarnation,
    wall_ns AS opened_ns,
    coalesce(len(in_flight), 0) AS num_in_flight,
    run_id
FROM opened
WHERE NOT EXISTS (
    FROM debt AS d
    WHERE d.action IN ('settled', 'written_off')
        AND d.run_id = opened.run_id AND d.debt_id = opened.debt_id
)
ORDER BY run_id, opened_ns, debt_id;

-- How much of the ranks' time each regime took, by group; host agents are not counted (needs results).
CREATE OR REPLACE VIEW regime_share AS
WITH agents AS (
    SELECT DISTINCT run_id, rank, incarnation FROM actors WHERE kind = 'agent'
),
held AS (
    SELECT run_id, group_id, regime, sum(end_ns - start_ns) / 1e9 AS rank_s
    FROM regime_intervals ANTI JOIN agents USING (run_id, rank, incarnation)
    GROUP BY run_id, group_id, regime
)
SELECT
    group_id,
    regime,
    rank_s,
    100.0 * rank_s / nullif(sum(rank_s) OVER (PARTITION BY run_id, group_id), 0) AS share_pct,
    run_id
FROM held
ORDER BY run_id, group_id, rank_s DESC;

-- Which regime each actor (host agents too) held and when, and the fault that led into it (needs results).
CREATE OR REPLACE VIEW regime_timeline AS
SELECT
    group_id,
    rank,
    incarnation,
    epoch,
    regime,
    start_ns,
    end_ns,
    (end_ns - start_ns) / 1e9 AS duration_s,
    fault,
    run_id
FROM regime_intervals
ORDER BY run_id, group_id, rank, incarnation, start_ns;

-- Rules broken, in the order of time; inferred ones last (needs results).
CREATE OR REPLACE VIEW violation_list AS
SELECT
    code,
    name,
    severity,
    rank,
    incarnation,
    seq,
    group_id,
    epoch,
    regime,
    wall_ns,
    sentence,
    inferred,
    run_id
FROM violations
ORDER BY run_id, inferred, wall_ns, rank, incarnation, seq, code;

-- Who waited in barriers and other collectives, and whom the others waited for, by rank (needs results).
CREATE OR REPLACE VIEW wasted_barrier_time AS
WITH power AS (
    SELECT DISTINCT a.run_id, a.rank, a.incarnation, g.wall_ns, g.power_mw
    FROM gpu AS g JOIN actors AS a USING (run_id, device_uuid)
    WHERE g.power_mw IS NOT NULL AND a.kind IS DISTINCT FROM 'agent'
),
entered AS (
    SELECT
        w.run_id,
        w.rank,
        w.incarnation,
        coalesce(w.exposed_ns, w.wait_ns) AS idle_ns,
        coalesce(c.start_ns, c.enter_ns, c.wall_ns) AS wall_ns
    FROM waits AS w JOIN collectives AS c USING (run_id, comm_id, cseq, rank, incarnation)
),
energy AS (
    SELECT e.run_id, e.rank, sum(p.power_mw / 1e3 * e.idle_ns / 1e9) AS joules
    FROM entered AS e ASOF JOIN power AS p
        ON e.run_id = p.run_id AND e.rank = p.rank AND e.incarnation = p.incarnation AND e.wall_ns >= p.wall_ns
    GROUP BY e.run_id, e.rank
),
waited AS (
    SELECT run_id, rank, sum(wait_ns) / 1e9 AS waited_s, sum(exposed_ns) / 1e9 AS exposed_s
    FROM waits
    GROUP BY run_id, rank
),
caused AS (
    SELECT run_id, root_rank AS rank, sum(wait_ns) / 1e9 AS caused_s
    FROM waits
    WHERE root_rank IS NOT NULL
    GROUP BY run_id, root_rank
)
SELECT
    rank,
    coalesce(waited_s, 0) AS waited_s,
    coalesce(caused_s, 0) AS caused_s,
    exposed_s,
    joules,
    run_id
FROM waited FULL JOIN caused USING (run_id, rank) LEFT JOIN energy USING (run_id, rank)
ORDER BY run_id, caused_s DESC, rank;

-- Wasted barrier time step by step, and the rank that caused most of it (needs results).
CREATE OR REPLACE VIEW wasted_by_step AS
WITH caused AS (
    SELECT run_id, step, root_rank, sum(wait_ns) / 1e9 AS caused_s
    FROM waits
    WHERE root_rank IS NOT NULL AND step IS NOT NULL
    GROUP BY run_id, step, root_rank
),
worst AS (
    SELECT run_id, step, arg_max(root_rank, (caused_s, -root_rank)) AS worst_rank, max(caused_s) AS worst_s
    FROM caused
    GROUP BY run_id, step
),
by_step AS (
    SELECT
        run_id,
        step,
        count(*) AS num_waits,
        sum(wait_ns) / 1e9 AS waited_s,
        sum(exposed_ns) / 1e9 AS exposed_s,
        sum(transfer_ns) / 1e9 AS transfer_s
    FROM waits
    WHERE step IS NOT NULL
    GROUP BY run_id, step
)
SELECT step, num_waits, waited_s, exposed_s, transfer_s, worst_rank, worst_s, run_id
FROM by_step LEFT JOIN worst USING (run_id, step)
ORDER BY run_id, step;

-- Ranks by the waits that they caused, worst first (needs results).
CREATE OR REPLACE VIEW slowest_ranks AS
WITH caused AS (
    SELECT run_id, root_rank AS rank, sum(wait_ns) / 1e9 AS caused_s
    FROM waits WHERE root_rank IS NOT NULL GROUP BY run_id, root_rank
),
last AS (
    SELECT run_id, last_rank AS rank, sum(wait_ns) / 1e9 AS last_s
    FROM waits WHERE last_rank IS NOT NULL GROUP BY run_id, last_rank
),
waited AS (
    SELECT run_id, rank, sum(wait_ns) / 1e9 AS waited_s FROM waits GROUP BY run_id, rank
),
worst AS (
    SELECT run_id, worst_rank AS rank, count(*) AS num_steps_worst
    FROM wasted_by_step WHERE worst_s > 0 GROUP BY run_id, worst_rank
),
steps_with_waits AS (
    SELECT run_id, count(*) AS num_steps FROM wasted_by_step WHERE waited_s > 0 GROUP BY run_id
)
SELECT
    rank,
    coalesce(caused_s, 0) AS caused_s,
    coalesce(last_s, 0) AS last_s,
    coalesce(waited_s, 0) AS waited_s,
    coalesce(num_steps_worst, 0) AS num_steps_worst,
    coalesce(num_steps_worst, 0) / num_steps AS share_of_steps,
    run_id
FROM caused
    FULL JOIN last USING (run_id, rank)
    FULL JOIN waited USING (run_id, rank)
    LEFT JOIN worst USING (run_id, rank)
    LEFT JOIN steps_with_waits USING (run_id)
ORDER BY run_id, caused_s DESC, last_s DESC, rank;
