-- Which regime each actor (host agents too) held and when, and the fault that led into it (needs results).
-- group_id: the consistency group
-- rank: the actor's rank
-- incarnation: its incarnation
-- epoch: the epoch held
-- regime: the regime held
-- start_ns: first row in it
-- end_ns: first row after it, or the actor's last row
-- duration_s: end - start, seconds
-- fault: the fault event that led into it, null for the first
-- run_id: the run
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
ORDER BY run_id, group_id, rank, incarnation, start_ns
