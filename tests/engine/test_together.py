"""Many prompts side by side: each text is what it is alone, whoever comes and goes beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from test_generate import TEXT, Pair, gpt, ngram

from lmlab.engine import Options, generate, generate_many
from lmlab.engine.sampling import draw, kept
from lmlab.engine.sampling_on_device import draw_rows, kept_rows

PROMPTS = ["the cat", "", "a café and a dog sat on the", "an owl", "the", "on the mat\nthe dog sat", "the cat", "z"]
CHOICES: list[dict[str, Any]] = [
    {"method": "greedy"},
    {"seed": 3, "samples": 2},
    {"seed": 1, "stop": ["at", "\n", "e"]},
    {"method": "beam", "beam_width": 2},
]


@pytest.mark.parametrize("max_rows", [1, 3, 64])
@pytest.mark.parametrize("settings", CHOICES, ids=str)
@pytest.mark.parametrize("pair", [ngram("words"), gpt("char")], ids=["ngram", "gpt"])
def test_every_prompt_is_continued_as_it_is_alone(pair: Pair, settings: dict[str, Any], max_rows: int) -> None:
    together = generate_many(*pair, PROMPTS, max_rows=max_rows, max_tokens=12, **settings)
    for prompt, found in zip(PROMPTS, together, strict=True):
        alone = generate(*pair, prompt, max_tokens=12, **settings)
        assert [f.ids for f in found] == [f.ids for f in alone]
        assert [f.text for f in found] == [f.text for f in alone]
        assert [f.nats for f in found] == pytest.approx([f.nats for f in alone], rel=1e-4)


FILTERS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.5},
    {"top_k": 3},
    {"top_k": 500},
    {"top_p": 0.6},
    {"min_p": 0.3},
    {"temperature": 1.4, "top_k": 7, "top_p": 0.8, "min_p": 0.05},
]


@pytest.mark.parametrize("settings", FILTERS, ids=str)
def test_rows_drawn_at_once_are_those_drawn_one_by_one(settings: dict[str, Any]) -> None:
    options = Options(**settings)
    generator = np.random.default_rng(0)
    logits_BV = generator.normal(size=(200, 40)).round(1).astype(np.float32)  # rounded: many are equal
    logits_BV[:, 5] = -np.inf
    logp_BV = torch.from_numpy(logits_BV).log_softmax(-1)
    p_BV = kept_rows(logp_BV, options)
    ids_B = draw_rows(logp_BV, options, torch.from_numpy(np.random.default_rng(7).random(200)))
    luck = np.random.default_rng(7)
    for logp_V, p_V, id in zip(logp_BV.numpy(), p_BV.numpy(), ids_B.tolist(), strict=True):
        ids_K, p_K = kept(logp_V, options)
        np.testing.assert_array_equal(np.flatnonzero(p_V), ids_K[p_K > 0])
        np.testing.assert_allclose(p_V[ids_K] / p_V.sum(), p_K, rtol=1e-12)
        assert draw((ids_K, p_K), luck) == id


def test_decoding_in_bf16_is_for_models_that_can_and_ends_with_the_engine() -> None:
    model, tokenizer = gpt("char")
    settings: dict[str, Any] = {"method": "greedy", "max_tokens": 8}
    exact = generate(model, tokenizer, TEXT[:7], **settings)[0]
    rounded = generate(model, tokenizer, TEXT[:7], precision="bf16", **settings)[0]
    assert rounded.nats != exact.nats
    assert rounded.nats == pytest.approx(exact.nats, rel=0.02)
    assert generate(model, tokenizer, TEXT[:7], **settings)[0] == exact
    for pair, precision in ((ngram("char"), "bf16"), (gpt("char"), "fp8")):
        with pytest.raises(ValueError, match="precision"):
            generate(*pair, precision=precision)
