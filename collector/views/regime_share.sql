-- How much of the ranks' time each regime took, by group; host agents are not counted (needs results).
-- group_id: the consistency group
-- regime: the regime
-- rank_s: time in it, summed over ranks, seconds
-- share_pct: of the group's time, percent
WITH agents AS (
    SELECT DISTINCT rank, incarnation FROM actors WHERE kind = 'agent'
),
held AS (
    SELECT group_id, regime, sum(end_ns - start_ns) / 1e9 AS rank_s
    FROM regime_intervals ANTI JOIN agents USING (rank, incarnation)
    GROUP BY group_id, regime
)
SELECT
    group_id,
    regime,
    rank_s,
    100.0 * rank_s / nullif(sum(rank_s) OVER (PARTITION BY group_id), 0) AS share_pct
FROM held
ORDER BY group_id, rank_s DESC
