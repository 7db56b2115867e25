-- Ranks by the waits that they caused, worst first (needs results).
-- rank: the rank
-- caused_s: waits of others that go back to it alone (waits.root_rank: at least half of a wait's blame), seconds; blamed, as cascade analyze tells, is another figure: it shares waits out
-- last_s: waits in which it arrived last (waits.last_rank: one rank, where several arrive together too), seconds
-- waited_s: its own waits, seconds
-- num_steps_worst: steps of which it caused most
-- share_of_steps: num_steps_worst of the steps that have waits; cascade analyze calls a chronic straggler who is most blamed in half of them
-- run_id: the run
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
ORDER BY run_id, caused_s DESC, last_s DESC, rank
