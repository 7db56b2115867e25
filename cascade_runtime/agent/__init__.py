"""The host agent: one a host, plain Python without torch (docs/decisions/0003).

It starts and watches the ranks of its host, certifies their deaths, and walks with the other agents.
"""
