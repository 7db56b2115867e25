-- What happened, a row each, in time: walks, departures, fired health signals, gaps, violations. The list on the page puts into one incident what belongs together, adds waits, hangs and silence, and begins with the worst.
-- wall_ns: when
-- kind: transition, departure, health, gap, violation
-- severity: error, warning or info
-- rank: whom it concerns, else who reported it
-- incarnation: its incarnation
-- group_id: the consistency group
-- epoch: the new epoch of a walk or departure, else the row's
-- fault: the fault event where there is one
-- sentence: what happened, in words
-- run_id: the run
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
ORDER BY run_id, wall_ns, rank, incarnation, kind
