"""Summary charts. One file in this folder = one chart on the waits page."""
