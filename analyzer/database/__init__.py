"""Histories of databases: reads and writes of sessions in transactions, judged for causal consistency."""
