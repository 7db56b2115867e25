"""What each check proves when it is ok, in words."""

from __future__ import annotations

PROOFS = (
    ("A1", "read or applied update", "reads and applied updates", "has a known source"),
    (
        "A4",
        "update seen elsewhere",
        "sightings of others' updates",
        "came by a way that is in the trace",
    ),
    ("S1", "forward read", "forward reads", "saw its reader's own writes"),
    ("S2", "read", "reads", "never went back"),
    ("S3", "applied update", "applied updates", "came after its author's earlier ones"),
    ("C1", "applied update", "applied updates", "came after its causes"),
    ("C2", "read below STRONG", "reads below STRONG", "was not older than what it could know"),
    ("C3", "read", "reads", "agreed with the others on the order of writes"),
    ("T1", "act on a plan", "acts on plans", "was on the newest plan it could know"),
    ("T2", "use of a lease", "uses of leases", "was under a lease that stood"),
    (
        "B1",
        "read or update of a bounded object",
        "reads and updates of bounded objects",
        "kept within the bound",
    ),
    (
        "G1",
        "digest or read under STRONG",
        "digests and reads under STRONG",
        "agreed with the others",
    ),
    ("G2", "collective", "collectives", "matched on all members"),
    ("G3", "collective", "collectives", "was reached by all members, or given up by a walk"),
    ("L4", "operation or commit", "operations and commits", "was under the agreed regime"),
    ("L1", "walk", "walks", "was allowed by the policy"),
    ("L6", "proposal", "proposals", "had evidence before it"),
    ("L5", "operation after a walk", "operations after walks", "was on the right side of the cut"),
    ("L3", "climb", "climbs", "left no debt behind"),
    ("R3", "debt", "debts", "was settled or written off"),
    ("R1", "settled debt", "settled debts", "lost no update"),
    ("M1", "load of a checkpoint", "loads of checkpoints", "was of the newest that was safe"),
    ("M2", "change of a group", "changes of groups", "was told before the group acted"),
)
"""What an ok check proves, in words: (code, one, several, predicate)."""
