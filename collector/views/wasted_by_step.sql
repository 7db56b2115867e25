-- Wasted barrier time step by step, and the rank that caused most of it (needs results).
-- step: the training step
-- num_waits: waits in it
-- waited_s: their sum over ranks, seconds
-- exposed_s: part with an idle device, seconds; null when no compute was recorded
-- transfer_s: time from last arrival to completion, seconds
-- worst_rank: the rank that caused most of it, null where no wait goes back to one rank alone
-- worst_s: what it caused (waits.root_rank), seconds
-- run_id: the run
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
ORDER BY run_id, step
