"""Timing the work that training is made of: matrix products forward and backward, Muon's iteration, copies, small requests.

Everything here measures; nothing is looked up. A precision that a processor has no units for can be hundreds of times slower
than float32 (torch then multiplies number by number), so each is tried on a small product first and given up at once if it
crawls: the whole measurement stays within a second or two on any machine.

Shapes: N rows (tokens of a batch), D width, F width of the hidden layer, K matrices in a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from lmlab.hardware.openmp import set_threads, threads_as_before

TIMED = "3"  # what is timed, and how: kept figures of another number are measured anew

# A two-layer network of a small Transformer: what most of a training step goes into.
ROWS, WIDTH, HIDDEN = 512, 192, 768
WORTH_ASKING = 30  # times what asking for a kernel costs: a product that takes less says nothing of the device
LARGEST = 16  # times these sizes
MATRICES = 4  # that Muon's iteration takes together
PROBE = 64  # rows of the product that tells whether a precision is worth timing at all
CRAWLING = 4.0  # times slower than float32 on the probe: this machine has no units for that precision
TIMED_S = 0.025  # spent on one figure, after a first try that finds memory and chooses kernels
PROBED_S = 0.004
COPIED_BYTES = 32 << 20


def settle(device: torch.device) -> None:
    """Wait for a device that works by itself."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def seconds_of(work: Callable[[], object], device: torch.device, timed_s: float = TIMED_S) -> float:
    """Seconds that `work` takes: the quickest of several tries, since whatever disturbs a try makes it slower."""
    work()
    settle(device)
    best, ends = float("inf"), time.perf_counter() + timed_s
    while True:
        started = time.perf_counter()
        work()
        settle(device)
        best = min(best, time.perf_counter() - started)
        if time.perf_counter() >= ends:
            return best


def product_flops(device: torch.device, dtype: torch.dtype) -> float:
    """Floating-point operations per second of a product forward and its two products backward."""
    return _busy_flops(device, lambda scale: _products_s(device, dtype, scale), 6.0 * ROWS * WIDTH * HIDDEN)


def _busy_flops(device: torch.device, seconds_at: Callable[[int], float], flops: float) -> float:
    """Operations per second of work of so many at a small model's size; n times that size has n³ as many.

    At that size; on a device that takes longer to ask than to multiply, at sizes that keep it busy.
    """
    least_s, scale = WORTH_ASKING * request_s(device), 1
    while True:
        seconds = seconds_at(scale)
        if seconds >= least_s or scale == LARGEST:
            return flops * scale**3 / seconds
        scale *= 2


def _products_s(device: torch.device, dtype: torch.dtype, scale: int) -> float:
    rows, width, hidden = ROWS * scale, WIDTH * scale, HIDDEN * scale
    x_ND = torch.randn(rows, width, device=device).to(dtype)
    weight_FD = torch.randn(hidden, width, device=device).to(dtype)
    grad_NF = torch.randn(rows, hidden, device=device).to(dtype)

    def work() -> None:
        torch.mm(x_ND, weight_FD.T)
        torch.mm(grad_NF, weight_FD)
        torch.mm(grad_NF.T, x_ND)

    return seconds_of(work, device)


def iteration_flops(device: torch.device, dtype: torch.dtype) -> float:
    """Floating-point operations per second of the products in Muon's iteration: batches of square matrices."""
    return _busy_flops(device, lambda scale: _iteration_s(device, dtype, scale), 4.0 * MATRICES * WIDTH**3)


def _iteration_s(device: torch.device, dtype: torch.dtype, scale: int) -> float:
    width = WIDTH * scale
    x_KDD = (torch.randn(MATRICES, width, width, device=device) / width).to(dtype)

    def work() -> Tensor:
        gram_KDD = torch.bmm(x_KDD, x_KDD.mT)
        return torch.baddbmm(x_KDD, gram_KDD, x_KDD)

    return seconds_of(work, device)


def crawls(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether products in this precision are out of the question here: far slower than float32, or refused."""

    def probe_s(dtype: torch.dtype) -> float:
        x_ND = torch.randn(PROBE, WIDTH, device=device).to(dtype)
        weight_DD = torch.randn(WIDTH, WIDTH, device=device).to(dtype)
        return seconds_of(lambda: torch.mm(x_ND, weight_DD), device, PROBED_S)

    threads = torch.get_num_threads()
    set_threads(1)  # several that wait for each other on a busy machine would blur what is asked here
    try:
        return probe_s(dtype) > CRAWLING * probe_s(torch.float32)
    except (RuntimeError, NotImplementedError, TypeError):  # no such precision on this device
        return True
    finally:
        threads_as_before(threads)


def copy_bytes_per_s(device: torch.device) -> float:
    """Bytes read and written per second by a copy that no cache holds."""
    source = torch.ones(COPIED_BYTES // 4, device=device)
    target = torch.empty_like(source)
    return 2.0 * COPIED_BYTES / seconds_of(lambda: target.copy_(source), device)


def request_s(device: torch.device) -> float:
    """Seconds that asking for one kernel costs, when the kernel itself has nothing to do."""
    x_1 = torch.zeros(1, device=device)
    many = 200

    def work() -> None:
        for _ in range(many):
            x_1.add_(1.0)

    return seconds_of(work, device, 0.0) / many
