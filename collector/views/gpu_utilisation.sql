-- NVML samples in time, by the rank that owns the device; no rows where no GPU was measured.
-- rank: the rank that runs on the device, else the actor that sampled it
-- incarnation: its incarnation
-- device_uuid: the GPU
-- wall_ns: when
-- util_pct: kernel running, percent
-- mem_util_pct: memory activity, percent
-- power_w: draw, watts
-- temp_c: degrees Celsius
-- sm_clock_mhz: SM clock
-- throttle: active throttle reasons
-- run_id: the run
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
ORDER BY g.run_id, g.wall_ns, rank
