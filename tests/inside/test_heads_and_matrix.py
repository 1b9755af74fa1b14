"""Heads switched off one at a time, and attention as one big matrix."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lmlab
from command_line import Lmlab, done
from lmlab.config import Mistake
from lmlab.inside.head_cost_units import STRETCH
from lmlab.inside.pages import heads_page
from lmlab.measure.score import nats_of_tokens
from mistakes import mistake

SENTENCE = "the cat sat on the mat and the dog sat"


def test_the_cost_of_a_head_is_what_the_text_costs_without_its_output(runs: dict[str, Path]) -> None:
    run = lmlab.load(runs["gpt"])
    model: Any = run.model
    found = lmlab.explain_heads(run, SENTENCE)
    base = lmlab.score(run, SENTENCE).bits / len(SENTENCE)
    assert found.bits == pytest.approx(base, rel=1e-6)
    for one in found.heads:
        columns = slice((one.head.head - 1) * 8, one.head.head * 8)  # width 16, two heads
        weight = model.blocks[one.head.layer - 1].out
        kept = weight.data.clone()
        weight.data[:, columns] = 0
        without = lmlab.score(run, SENTENCE).bits / len(SENTENCE)
        weight.data = kept
        assert one.cost == pytest.approx(without - base, abs=1e-6)
    assert lmlab.score(run, SENTENCE).bits / len(SENTENCE) == base  # every head is back


def test_the_error_of_a_cost_is_half_its_95_percent_interval_over_stretches(runs: dict[str, Path]) -> None:
    run = lmlab.load(runs["gpt"])
    model: Any = run.model
    text = SENTENCE * 20
    found = lmlab.explain_heads(run, text)
    one = found.heads[0]
    ids = run.tokenizer.encode(text).ids

    def nats() -> np.ndarray:
        of_tokens = nats_of_tokens(model, ids, np.array([0, len(ids)])).astype(np.float64)
        return np.array([of_tokens[i : i + STRETCH].sum() for i in range(0, len(ids), STRETCH)])

    whole = nats()
    with model.without_head(one.head.layer - 1, one.head.head - 1):
        more = nats() - whole
    deviation = math.sqrt(len(more) * more.var(ddof=1)) / math.log(2) / len(text)
    assert one.error == pytest.approx(1.96 * deviation, rel=1e-6)


def test_heads_within_chance_are_marked_in_table_chart_and_json(runs: dict[str, Path]) -> None:
    found = lmlab.explain_heads(runs["gpt"], SENTENCE * 6)
    costs = {0: (0.1, 0.02), 1: (0.01, 0.02), 2: (-0.1, 0.02), 3: (0.3, math.nan)}  # cost and error
    heads = tuple(replace(one, cost=costs[i][0], error=costs[i][1]) for i, one in enumerate(found.heads))
    changed = replace(found, heads=heads)
    assert [one["within_chance"] for one in changed.to_json()["heads"]] == [False, True, True, False]
    page = heads_page(changed, "gpt", "lmlab explain heads runs/gpt")
    assert "2 of 4 heads can be switched off" in page
    assert page.count('<tr class="yardstick">') == page.count("(chance)</text>") == 2
    assert "+0.0100 ± 0.0200" in page
    assert "Made by <code>lmlab explain heads runs/gpt</code>" in page


def test_blocks_of_the_matrix_are_a_weight_times_one_matrix(runs: dict[str, Path]) -> None:
    run = lmlab.load(runs["gpt"])
    model: Any = run.model
    found = lmlab.explain_matrix(run, "cats", layer=1, head=2)
    assert found.inputs == ("⊢", *"cats")
    assert found.difference < 1e-5
    whole, width = found.matrix, found.width
    assert whole.shape == (5 * 16, 5 * 16)
    for n in range(5):
        for m in range(5):
            block = whole[n * width : (n + 1) * width, m * width : (m + 1) * width]
            assert np.allclose(block, found.weights_NN[n, m] * found.value_DD)
    assert found.dense_parameters == 80**2
    assert found.parameters == {"queries and keys": 2 * 16 * 8, "values and output": 2 * 16 * 8}
    assert (whole == 0).mean() == pytest.approx(found.zero)
    # The matrices of all heads together, times the inputs, are what the block adds by attention.
    model.to("cpu")
    ids = torch.from_numpy(run.tokenizer.encode("cats").ids.astype("int64"))
    x_1TD = model._embed(torch.nn.functional.pad(ids[None], (1, 0), value=model.vocab_size), 0)
    block = model.blocks[0]
    x, rotation = x_1TD
    normed = torch.nn.functional.layer_norm(x, (16,), block.norm_attention)[0].double().detach()
    added = sum(lmlab.explain_matrix(run, "cats", head=h).matrix @ normed.flatten().numpy() for h in (1, 2))
    model.to("cpu")  # to explain it, it may have gone to a GPU
    with torch.no_grad():
        block.down.data.zero_()  # leave the network out: what is left of the block is attention
        expected = (block(x, rotation, torch.float32, 0.0) - x)[0].flatten().numpy()
    assert np.allclose(added, expected, atol=1e-5)


def test_what_cannot_be_unfolded_is_said_in_one_line(runs: dict[str, Path]) -> None:
    with mistake("matrix-place-out-of-range"):
        lmlab.explain_matrix(runs["gpt"], "the", head=3)
    with pytest.raises(Mistake, match="7 are the most"):
        lmlab.explain_matrix(runs["gpt"], "the cat sat")


def test_the_commands_show_and_write_json(runs: dict[str, Path], lmlab: Lmlab) -> None:
    out = done(lmlab("explain", "heads", runs["gpt"], SENTENCE, "--json"))
    assert len(json.loads(out)["heads"]) == 4
    assert "more without" in lmlab("explain", "heads", runs["gpt"], SENTENCE)[1]
    code, out, _ = lmlab("explain", "matrix", runs["gpt"], "the", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["dense_parameters"] == 64**2
    assert math.isclose(sum(document["weights"][2]), 1.0, rel_tol=1e-6)
    assert "dense layer" in lmlab("explain", "matrix", runs["gpt"], "the")[1]
    assert lmlab("explain", "matrix", runs["gpt"], "the", "--layer", 9)[0] == 2
