"""All that is found out about a trained model, and a rehearsal that tells beforehand how long that will take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from lmlab.comparison.passages import EXCERPT_BYTES, excerpt_bounds, read_closely
from lmlab.config import Budget, TextFacts, make
from lmlab.interface import LanguageModel, NeuralModel
from lmlab.learn.hardware import Hardware
from lmlab.measure import Result
from lmlab.measure.interval import interval
from lmlab.measure.score import device_of, evaluating
from lmlab.models.registry import model_class
from lmlab.text.tokenizers import Tokenizer

SAMPLE_CHARACTERS = 400
PROOF_BYTES = 1_500
REHEARSED_TOKENS = 4096  # scored at once: enough to fill the matrix units
REHEARSED_STEPS = 16  # of one token
CAUTION = 1.3  # the certificate scores some places again; and a shared machine is not always as fast as a moment ago


def sample(model: LanguageModel, seed: int) -> str:
    """What the model writes, from the beginning of a text."""
    from lmlab.decode import generate

    pieces = max(20, SAMPLE_CHARACTERS // (1 if model.tokenizer.spec in ("byte", "char") else 4))
    return str(generate(model, "", max_tokens=pieces, seed=seed)[0].text)


def look_closely(model: LanguageModel, result: Result, seed: int) -> dict[str, Any]:
    """What the page shows of a model beside its number: a paragraph token by token, a sample, a compressed file."""
    from lmlab.compression.proof import proof

    measured = result.scored.part
    beginning = measured.documents[0].pieces().__next__()[:PROOF_BYTES]
    return {
        "excerpt": read_closely(model, result.scored, excerpt_bounds(measured)),
        "sample": sample(model, seed),
        "proof": proof(model, beginning).to_json(),
    }


def mean_result(results: list[Result]) -> Result:
    """Several seeds of one model as one result: the mean of their bits, and the first certificate that fails, if any."""
    if len(results) == 1:
        return results[0]
    scores = [r.scored for r in results]
    share = 1.0 / len(scores)
    scored = replace(
        scores[0],
        nats_per_token=np.mean([s.nats_per_token for s in scores], axis=0),
        total_nats=sum(s.total_nats for s in scores) * share,
        model_nats=sum(s.model_nats for s in scores) * share,
        closed_nats=sum(s.closed_nats for s in scores) * share,
        impossible_tokens=max(s.impossible_tokens for s in scores),
    )
    worst = next((r for r in results if not r.certified), results[0])
    return replace(results[0], scored=scored, interval=interval(scored), certificate=worst.certificate)


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Seconds that measuring a model of this kind and size takes."""

    token_s: float  # of scoring, per token
    step_s: float  # of one token at a time

    def seconds(self, tokens: float, tokens_per_byte: float) -> float:
        """For a test text of so many tokens, and everything that is generated or compressed token by token."""
        steps = (SAMPLE_CHARACTERS + EXCERPT_BYTES + 2 * PROOF_BYTES) * tokens_per_byte
        return CAUTION * (tokens * self.token_s + steps * self.step_s)


def rehearse(
    name: str,
    settings: dict[str, Any],
    tokenizer: Tokenizer,
    facts: TextFacts,
    budget: Budget,
    hardware: Hardware,
) -> Rehearsal:
    """Time the steps of measuring on an untrained model of the size that this budget would train."""
    cls = model_class(name)
    assert issubclass(cls, NeuralModel)
    config: Any = cls.resolve(make(cls.Config, settings, name), facts, budget)
    model = cls(config, tokenizer).to(hardware.device)
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
