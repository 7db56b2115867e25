"""Shared state of a job's processes: versioned keys over the host agents (docs/state.md)."""
