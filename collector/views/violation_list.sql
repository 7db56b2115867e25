-- Rules broken, in the order of time; inferred ones last (needs results).
-- code: the rule's code
-- name: the rule's name
-- severity: error, warning or info
-- rank: actor of the reported row
-- incarnation: its incarnation
-- seq: the reported row
-- group_id: the consistency group
-- epoch: epoch of the reported row
-- regime: regime it was judged against
-- wall_ns: when
-- sentence: what broke, in words
-- inferred: rests on inferred facts
-- run_id: the run
SELECT
    code,
    name,
    severity,
    rank,
    incarnation,
    seq,
    group_id,
    epoch,
    regime,
    wall_ns,
    sentence,
    inferred,
    run_id
FROM violations
ORDER BY run_id, inferred, wall_ns, rank, incarnation, seq, code
