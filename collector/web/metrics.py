"""What ``GET /metrics`` tells a Prometheus: requests, refusals, SQL, and the store's figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cascade_runtime.vocabulary.errors import CascadeError
from collector.sql.service import SqlHealth
from collector.storage._interface import EventStore

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which says when we first saw it

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The text format that every scraper reads."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_GAUGES = {
    "num_queued_rows": ("queued_rows", "rows accepted and not yet durable"),
    "num_hot_rows": ("hot_rows", "durable rows that are in no sealed segment yet"),
    "hot_row_bytes": ("hot_row_bytes", "about what those rows take up in memory"),
    "hot_bytes": ("hot_bytes", "size of the hot database and its write-ahead log"),
    "free_bytes": ("free_bytes", "free bytes of the disk that the data folder lies on"),
}
_COUNTERS = {
    "num_commits": ("commits", "group commits"),
    "num_rows": ("rows", "rows stored"),
    "num_duplicates": ("duplicates", "rows that were there already and were dropped"),
    "num_segments": ("segments", "sealed Parquet segments written"),
    "num_reopened": ("reopened", "times the store was opened again after a fatal error"),
}


class Metrics:
    """The figures of one collector, in a registry of their own.

    Attributes:
        num_in_flight: requests under way; changed on the event loop only.

    Args:
        store: asked for its figures at each scrape.
        sql_health: the figures of the service that runs strangers' SQL; asked at each scrape.
    """

    def __init__(self, store: EventStore, sql_health: Callable[[], SqlHealth]) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "cascade_http_requests",
            "requests answered",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "cascade_http_request_seconds",
            "from a request's headers to its answer",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._rejected = Counter(
            "cascade_http_rejected",
            "requests refused, by the error's code",
            ("reason",),
            registry=self.registry,
        )
        self._sql = Counter(
            "cascade_sql_statements",
            "SQL statements of strangers, by ok or the error's code",
            ("outcome",),
            registry=self.registry,
        )
        self.num_in_flight = 0
        in_flight = Gauge("cascade_http_in_flight", "requests under way", registry=self.registry)
        in_flight.set_function(lambda: self.num_in_flight)
        self.registry.register(_StoreFigures(store))
        self.registry.register(_SqlFigures(sql_health))
        ProcessCollector(registry=self.registry)
        # Looking a child up by its labels costs more than counting with it.
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one answer."""
        key = (route, method, status)
        children = self._children.get(key)
        if children is None:
            known = method if method in _METHODS else "other"
            children = (self._requests.labels(route, known, status), self._seconds.labels(route))
            if known == method:  # a stranger may invent methods without end
                self._children[key] = children
        children[0].inc()
        children[1].observe(seconds)

    def rejected(self, reason: str) -> None:
        """Count one refusal."""
        self._rejected.labels(reason).inc()

    def sql(self, outcome: str) -> None:
        """Count one statement."""
        self._sql.labels(outcome).inc()

    def text(self) -> bytes:
        """All figures in the text format. Asks the store, so it may wait."""
        return generate_latest(self.registry)


class _StoreFigures(Collector):
    """The store's own figures, as of now."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering must not ask the store."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """The figures; without them where the store cannot give any."""
        try:
            stats = self._store.stats()
            up = self._store.problem() is None
        except CascadeError:
            yield GaugeMetricFamily("cascade_store_up", "1 when rows can be stored", 0)
            return
        yield GaugeMetricFamily("cascade_store_up", "1 when rows can be stored", int(up))
        for field, (name, says) in _GAUGES.items():
            yield GaugeMetricFamily(f"cascade_store_{name}", says, getattr(stats, field))
        for field, (name, says) in _COUNTERS.items():
            yield CounterMetricFamily(f"cascade_store_{name}", says, getattr(stats, field))


class _SqlFigures(Collector):
    """Figures of the SQL service that no answer to a statement shows."""

    def __init__(self, health: Callable[[], SqlHealth]) -> None:
        self._health = health

    def describe(self) -> Iterator[Metric]:
        """Nothing, as above."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """The figures."""
        told = self._health()
        yield GaugeMetricFamily(
            "cascade_sql_confined",
            "1 when the kernel keeps strangers' SQL to the runs' files (Landlock)",
            int(told.landlock),
        )
        yield CounterMetricFamily(
            "cascade_sql_killed", "statements whose process was killed or died", told.num_killed
        )
        yield CounterMetricFamily(
            "cascade_sql_retried",
            "statements run twice because a file went away meanwhile",
            told.num_retried,
        )
