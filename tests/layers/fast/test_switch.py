"""The switch that turns all kernels off."""

from __future__ import annotations

import threading

import torch

from lmlab.layers import fast


def test_kernels_are_off_in_the_thread_that_turned_them_off_alone() -> None:
    seen = []
    with fast.plain():
        thread = threading.Thread(target=lambda: seen.append(fast.enabled))
        thread.start()
        thread.join()
        with fast.plain():
            assert not fast.enabled
        assert not fast.enabled
    assert seen == [True]
    assert fast.enabled


def test_a_compiled_function_sees_the_switch() -> None:
    def chosen(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if fast.enabled else x * 3

    compiled = torch.compile(chosen, fullgraph=True, backend="eager")
    assert float(compiled(torch.ones(()))) == 2
    with fast.plain():
        assert float(compiled(torch.ones(()))) == 3
