"""The story of a run: what happened, in words and numbers, for people who look at it.

``sources_of_store`` and ``sources_of_trace`` open runs; ``routes`` answers questions on them over HTTP.
"""

from __future__ import annotations

from dashboard.story.routes import routes
from dashboard.story.source import RunSource, RunSources
from dashboard.story.sources import sources_of_store, sources_of_trace

__all__ = ["RunSource", "RunSources", "routes", "sources_of_store", "sources_of_trace"]
