-- Who waited in barriers and other collectives, and whom the others waited for, by rank (needs results).
-- rank: the rank
-- waited_s: its own waits, seconds
-- caused_s: waits of others that it caused (root blame), seconds
-- exposed_s: part of its waits with an idle device, seconds; null when no compute was recorded
-- joules: energy drawn in its waits (exposed ones where known), by the last power sample before each; null without samples
WITH power AS (
    SELECT DISTINCT a.rank, a.incarnation, g.wall_ns, g.power_mw
    FROM gpu AS g JOIN actors AS a USING (device_uuid)
    WHERE g.power_mw IS NOT NULL AND a.kind IS DISTINCT FROM 'agent'
),
entered AS (
    SELECT
        w.rank,
        w.incarnation,
        coalesce(w.exposed_ns, w.wait_ns) AS idle_ns,
        coalesce(c.start_ns, c.enter_ns, c.wall_ns) AS wall_ns
    FROM waits AS w JOIN collectives AS c USING (comm_id, cseq, rank, incarnation)
),
energy AS (
    SELECT e.rank, sum(p.power_mw / 1e3 * e.idle_ns / 1e9) AS joules
    FROM entered AS e ASOF JOIN power AS p
        ON e.rank = p.rank AND e.incarnation = p.incarnation AND e.wall_ns >= p.wall_ns
    GROUP BY e.rank
),
waited AS (
    SELECT rank, sum(wait_ns) / 1e9 AS waited_s, sum(exposed_ns) / 1e9 AS exposed_s
    FROM waits
    GROUP BY rank
),
caused AS (
    SELECT root_rank AS rank, sum(wait_ns) / 1e9 AS caused_s
    FROM waits
    WHERE root_rank IS NOT NULL
    GROUP BY root_rank
)
SELECT
    rank,
    coalesce(waited_s, 0) AS waited_s,
    coalesce(caused_s, 0) AS caused_s,
    exposed_s,
    joules
FROM waited FULL JOIN caused USING (rank) LEFT JOIN energy USING (rank)
ORDER BY caused_s DESC, rank
