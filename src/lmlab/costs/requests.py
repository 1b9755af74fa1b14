"""What torch requests of its allocator: on a GPU by torch's own statistics, on a CPU as its profiler records it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


@contextmanager
def peak_requests(device: torch.device) -> Iterator[list[int]]:
    """While the block runs: the most bytes that were requested and not given back yet, as the one entry of the list."""
    found = [0]
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        yield found
        torch.cuda.synchronize()
        found[0] = torch.cuda.max_memory_allocated() - before
        return
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler would announce itself on stderr
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        yield found
    results: Any = profiler.profiler
    requests = [event for event in results.kineto_results.events() if event.name() == "[memory]"]
    now = 0
    for event in sorted(requests, key=lambda event: event.start_ns()):
        now += event.nbytes()
        found[0] = max(found[0], now)


def is_tensor(leaf: object) -> bool:
    """Of what a structure holds."""
    return isinstance(leaf, Tensor)


def bytes_of(tensor: Tensor) -> int:
    """Of its storage, all views together."""
    return tensor.untyped_storage().nbytes()
