-- Who waited in barriers and other collectives, and whom the others waited for, by rank (needs results).
-- rank: the rank
-- waited_s: its own waits, seconds
-- caused_s: waits of others that go back to it alone (waits.root_rank: at least half of a wait's blame), seconds; blamed, as cascade analyze tells, is another figure: it shares waits out
-- exposed_s: part of its waits with an idle device, seconds; null when no compute was recorded
-- joules: energy drawn in its waits (exposed ones where known), by the last power sample before each; null without samples
-- run_id: the run
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
ORDER BY run_id, caused_s DESC, rank
