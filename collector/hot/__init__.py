"""The embedded store from inside: journal, marks, hot rows, segments (docs/decisions/0017)."""
