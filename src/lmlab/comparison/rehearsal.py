"""A rehearsal: how long measuring a model will take, found out on an untrained one of its size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from lmlab.comparison.close_look import STEPWISE_BYTES
from lmlab.hardware.choice import Hardware
from lmlab.interface import NeuralLanguageModel
from lmlab.measure.score import device_of, evaluating

REHEARSED_TOKENS = 4096  # scored at once: enough to fill the matrix units
REHEARSED_STEPS = 16  # of one token
CAUTION = 1.3  # the certificate scores some places again; and a shared machine is not always as fast as a moment ago


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Seconds that measuring a model of this kind and size takes."""

    token_s: float  # of scoring, per token
    step_s: float  # of one token at a time

    def seconds(self, tokens: float, tokens_per_byte: float) -> float:
        """For a test text of so many tokens, and everything that is generated or compressed token by token."""
        return CAUTION * (tokens * self.token_s + STEPWISE_BYTES * tokens_per_byte * self.step_s)


def rehearse(model: NeuralLanguageModel, hardware: Hardware) -> Rehearsal:
    """Time the steps of measuring on an untrained model."""
    model = model.to(hardware.device)
    tokens_1T = torch.randint(model.vocab_size, (1, REHEARSED_TOKENS), device=device_of(model))
    with evaluating(model), torch.no_grad():
        score_s = _second_time(lambda: model.score(tokens_1T))
        _, state = model.begin(1)

        def steps() -> None:
            nonlocal state
            for place in range(REHEARSED_STEPS):
                _, state = model.advance(tokens_1T[:, place : place + 1], state)

        steps_s = _second_time(steps)
    return Rehearsal(token_s=score_s / REHEARSED_TOKENS, step_s=steps_s / REHEARSED_STEPS)


def _second_time(work: Callable[[], Any]) -> float:
    """Seconds of the second of two runs; the first finds memory and chooses kernels."""
    work()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
