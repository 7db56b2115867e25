-- How much of the ranks' time each regime took, by group; host agents are not counted (needs results).
-- group_id: the consistency group
-- regime: the regime
-- rank_s: time in it, summed over ranks, seconds
-- share_pct: of the group's time, percent
-- run_id: the run
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
ORDER BY run_id, group_id, rank_s DESC
