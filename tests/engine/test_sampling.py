"""Temperature, top-k, top-p and min-p against transformers' own filters, and by hand; drawing against frequencies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.generation import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from lmlab.engine import Options
from lmlab.engine.sampling import draw, kept
from thinning import examples


def dense(logp_V: np.ndarray, **options: object) -> np.ndarray:
    """The filtered distribution over the whole vocabulary."""
    ids_K, p_K = kept(logp_V, Options(**options))  # type: ignore[arg-type]
    assert list(ids_K) == sorted(set(ids_K))
    p_V = np.zeros(len(logp_V))
    p_V[ids_K] = p_K
    return p_V


def random_logp(seed: int, vocab: int = 50, spread: float = 2.0) -> np.ndarray:
    logits = np.random.default_rng(seed).normal(0, spread, vocab)
    return torch.log_softmax(torch.tensor(logits, dtype=torch.float32), 0).numpy()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.7},
        {"top_k": 5},
        {"top_p": 0.6},
        {"min_p": 0.2},
        {"temperature": 1.7, "top_k": 20, "top_p": 0.8, "min_p": 0.05},
        {"temperature": 0.5, "top_k": 7, "top_p": 0.95},
    ],
)
def test_the_filters_keep_what_transformers_keeps(options: dict[str, float], seed: int) -> None:
    logp_V = random_logp(seed)
    steps = [TemperatureLogitsWarper(float(options.get("temperature", 1.0)))]
    if "top_k" in options:
        steps.append(TopKLogitsWarper(int(options["top_k"])))
    if "top_p" in options:
        steps.append(TopPLogitsWarper(options["top_p"]))
    if "min_p" in options:
        steps.append(MinPLogitsWarper(options["min_p"]))
    scores_1V = LogitsProcessorList(steps)(torch.zeros(1, 0, dtype=torch.long), torch.tensor(logp_V)[None])
    np.testing.assert_allclose(dense(logp_V, **options), scores_1V[0].softmax(-1).numpy(), atol=1e-6)


def test_the_filters_by_hand() -> None:
    logp_V = np.log(np.array([0.1, 0.4, 0.2, 0.3], dtype=np.float32))
    np.testing.assert_allclose(dense(logp_V, top_k=2), [0, 4 / 7, 0, 3 / 7], atol=1e-6)
    np.testing.assert_allclose(dense(logp_V, top_p=0.65), [0, 4 / 7, 0, 3 / 7], atol=1e-6)
    np.testing.assert_allclose(dense(logp_V, top_p=0.75), [0, 4 / 9, 2 / 9, 3 / 9], atol=1e-6)
    np.testing.assert_allclose(dense(logp_V, min_p=0.6), [0, 4 / 7, 0, 3 / 7], atol=1e-6)
    # After top_k=2 the likeliest token alone holds 4/7 > 0.5: each filter sees what the one before it left.
    np.testing.assert_allclose(dense(logp_V, top_k=2, top_p=0.5), [0, 1, 0, 0], atol=1e-6)
    squares = np.array([1, 16, 4, 9]) / 30
    np.testing.assert_allclose(dense(logp_V, temperature=0.5), squares, atol=1e-6)


def test_of_equal_tokens_the_lower_ids_are_kept() -> None:
    logp_V = np.full(6, -np.log(6), dtype=np.float32)
    assert list(kept(logp_V, Options(top_k=2))[0]) == [0, 1]
    assert list(kept(logp_V, Options(top_p=0.45))[0]) == [0, 1, 2]
    assert list(kept(logp_V, Options(min_p=1.0))[0]) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 1e-300}, {"temperature": 50.0}, {"top_k": 3}, {"top_p": 0.9}, {"min_p": 0.0}]
)
def test_impossible_tokens_stay_impossible_and_nothing_is_not_a_number(options: dict[str, float]) -> None:
    logp_V = np.array([-np.inf, -np.inf, 0.0, -np.inf], dtype=np.float32)
    np.testing.assert_array_equal(dense(logp_V, **options), [0, 0, 1, 0])
    assert draw(kept(logp_V, Options(**options)), np.random.default_rng(0)) == 2  # type: ignore[arg-type]


@given(
    seed=st.integers(0, 10_000),
    vocab=st.integers(1, 40),
    spread=st.sampled_from([0.0, 0.5, 3.0, 60.0]),
    temperature=st.sampled_from([1e-6, 0.3, 1.0, 8.0]),
    top_k=st.none() | st.integers(1, 50),
    top_p=st.none() | st.floats(1e-6, 1.0),
    min_p=st.none() | st.floats(0.0, 1.0),
)
@settings(max_examples=examples(150), deadline=None)
def test_what_is_kept_is_a_distribution_over_the_likeliest_tokens(
    seed: int, vocab: int, spread: float, temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    logp_V = random_logp(seed, vocab, spread)
    p_V = dense(logp_V, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    assert np.isfinite(p_V).all()
    assert p_V.sum() == pytest.approx(1.0)
    assert p_V[logp_V.argmax()] > 0
    left_out = (p_V == 0) & (logp_V > logp_V[p_V > 0].min())
    assert not left_out.any(), "a token was left out that is likelier than one that was kept"
    if top_k is not None:
        assert (p_V > 0).sum() <= top_k


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    logp_V = random_logp(3, vocab=8, spread=1.0)
    choices = kept(logp_V, Options())
    generator = np.random.default_rng(1)
    counts = np.bincount([draw(choices, generator) for _ in range(20_000)], minlength=8)
    expected = 20_000 * np.exp(logp_V)
    assert ((counts - expected) ** 2 / expected).sum() < 24.3  # χ² with 7 degrees of freedom: 0.1 % lie above


def test_a_number_at_the_very_end_draws_a_possible_token() -> None:
    class AlmostOne:
        def random(self) -> float:
            return float(np.nextafter(1.0, 0.0))

    choices = (np.array([0, 1, 2]), np.array([0.5, 0.5, 0.0]))
    assert draw(choices, AlmostOne()) == 1  # type: ignore[arg-type]
