-- Ranks by the waits that they caused, worst first (needs results).
-- rank: the rank
-- caused_s: waits that it caused (root blame), seconds
-- last_s: waits in which it arrived last (direct blame), seconds
-- waited_s: its own waits, seconds
-- num_steps_worst: steps in which it had the largest root blame
-- share_of_steps: of the steps that have waits; at half or more it is a chronic straggler
WITH caused AS (
    SELECT root_rank AS rank, sum(wait_ns) / 1e9 AS caused_s
    FROM waits WHERE root_rank IS NOT NULL GROUP BY root_rank
),
last AS (
    SELECT last_rank AS rank, sum(wait_ns) / 1e9 AS last_s
    FROM waits WHERE last_rank IS NOT NULL GROUP BY last_rank
),
waited AS (
    SELECT rank, sum(wait_ns) / 1e9 AS waited_s FROM waits GROUP BY rank
),
worst AS (
    SELECT worst_rank AS rank, count(*) AS num_steps_worst
    FROM wasted_by_step WHERE worst_s > 0 GROUP BY worst_rank
)
SELECT
    rank,
    coalesce(caused_s, 0) AS caused_s,
    coalesce(last_s, 0) AS last_s,
    coalesce(waited_s, 0) AS waited_s,
    coalesce(num_steps_worst, 0) AS num_steps_worst,
    coalesce(num_steps_worst, 0) / nullif((SELECT count(*) FROM wasted_by_step WHERE waited_s > 0), 0)
        AS share_of_steps
FROM caused FULL JOIN last USING (rank) FULL JOIN waited USING (rank) LEFT JOIN worst USING (rank)
ORDER BY caused_s DESC, last_s DESC, rank
