"""The one doorway for live and replayed events, storage, SQL and importers."""

__dist__ = "cascade-timelines"
