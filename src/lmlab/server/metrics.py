"""What operators want to know of a running server, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """Counters of one server. Sizes of queues are read when the metrics are asked for."""

    def __init__(self, running: Callable[[], int], queued: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        of: dict[str, Any] = {"registry": self._registry}
        Gauge("lmlab_requests_running", "Completions that are decoded now", **of).set_function(running)
        Gauge("lmlab_requests_queued", "Completions that wait or run", **of).set_function(queued)
        self._responses = Counter("lmlab_responses", "Responses by route and status", ["route", "status"], **of)
        self._prompt = Counter("lmlab_prompt_tokens", "Tokens of prompts", **of)
        self._generated = Counter("lmlab_generation_tokens", "Tokens of completions", **of)
        name, about = "lmlab_time_to_first_token_seconds", "From the request to the first token of a completion"
        self._first_token = Histogram(name, about, buckets=SECONDS, **of)
        name, about = "lmlab_request_seconds", "From the request to the end of its last completion"
        self._whole = Histogram(name, about, buckets=SECONDS, **of)

    def responded(self, route: str, status: int) -> None:
        """Count a response."""
        self._responses.labels(route, str(status)).inc()

    def first_token(self, begun: float) -> None:
        """Note that a completion has its first token. begun: seconds of time.monotonic()."""
        self._first_token.observe(time.monotonic() - begun)

    def finished(self, begun: float, usage: dict[str, int]) -> None:
        """Note that a completion request ended."""
        self._whole.observe(time.monotonic() - begun)
        self._prompt.inc(usage["prompt_tokens"])
        self._generated.inc(usage["completion_tokens"])

    def text(self) -> bytes:
        """Return all metrics in Prometheus' format."""
        return generate_latest(self._registry)
