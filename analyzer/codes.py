"""Every code of the contract and its name, once (design contract 4.4)."""

from __future__ import annotations

NAMES: dict[str, str] = {
    "A1": "unknown source",
    "A2": "orphan read",
    "A3": "cause after effect",
    "A4": "unexplained visibility",
    "A5": "reused dot",
    "S1": "own write not seen",
    "S2": "read went back",
    "S3": "writes out of order",
    "S4": "write before what it read",
    "C1": "applied before its cause",
    "C2": "stale causal read",
    "C3": "conflicting orders",
    "B1": "stale beyond bound",
    "R1": "lost update",
    "R2": "double apply",
    "R3": "debt leak",
    "R4": "fall without debt",
    "L1": "illegal transition",
    "L2": "skipped level",
    "L3": "upgrade with open debt",
    "L4": "split regime",
    "L5": "unsafe cut",
    "L6": "unfounded transition",
    "L7": "laggard",
    "L8": "climb without ground",
    "M1": "resume from older frontier",
    "M2": "membership not told",
    "M3": "zombie",
    "G1": "divergent replicas",
    "G2": "collective mismatch",
    "G3": "desync",
    "G4": "completion asymmetry",
    "T1": "stale plan",
    "T2": "act outside lease",
    "Q1": "hole in an actor's events",
    "Q2": "conflicting duplicates",
    "Q3": "time runs backward",
    "Q4": "end before last entry",
    "Q5": "beginning is missing",
}
"""Code to name, in the order a report lists them."""

NEVER_VIOLATED = frozenset({"A4", "Q1", "Q2", "Q3", "Q4", "Q5"})
"""Codes that never make a verdict ``violated``."""

NOT_IN_TOTAL = frozenset({"A4", "Q3", "Q4"})
"""Codes that the total does not go by: about waits and clocks only, or on what a job does not record."""

NOT_IN_RELEASE = "not in this release"
"""Reason given for a code whose rule file does not exist yet."""
