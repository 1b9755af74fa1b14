"""Attention weights written out are those of torch's own module and of the fused kernel."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lmlab.layers.attentive import attended, attentive_scan
from lmlab.layers.blocks import Block
from lmlab.layers.composition import Composition
from lmlab.layers.fast.attentive import Additive, Rule
from lmlab.layers.looking import kernel_weights, silenced, written_out
from lmlab.layers.positions import rotary_tables


@pytest.mark.parametrize(("length", "width"), [(1, 4), (7, 4), (50, 16), (33, 64)])
def test_the_fused_kernel_gives_its_weights_away(length: int, width: int) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, 3, length, width) * 2, torch.randn(2, 3, length, width) * 2
    assert torch.allclose(written_out(q, k, causal=True), kernel_weights(q, k, causal=True), atol=1e-5)
    assert torch.allclose(written_out(q[:, :, :5], k), kernel_weights(q[:, :, :5], k), atol=1e-5)


def test_the_weights_of_a_block_are_those_of_torch() -> None:
    torch.manual_seed(0)
    block = Block(Composition.of(24, 2, 3, "gelu"))
    theirs = nn.MultiheadAttention(24, 3, bias=False, batch_first=True)
    theirs.in_proj_weight.data = block.qkv.data
    x_BTD = torch.randn(2, 11, 24)
    normed = nn.functional.layer_norm(x_BTD, (24,), block.norm_attention)
    mask = torch.ones(11, 11, dtype=torch.bool).triu(1)
    _, expected = theirs(normed, normed, normed, attn_mask=mask, average_attn_weights=False)
    found, difference = block.looks(x_BTD, None)
    assert torch.allclose(found, expected, atol=1e-5)
    assert difference < 1e-5
    turned, difference = block.looks(x_BTD, tuple(rotary_tables(11, 8)))  # type: ignore[arg-type]
    assert not torch.allclose(turned, expected, atol=1e-3)
    assert difference < 1e-5


def test_a_head_that_is_switched_off_adds_nothing_and_comes_back() -> None:
    torch.manual_seed(0)
    block, x_BTD = Block(Composition.of(12, 1, 3, "gelu")), torch.randn(1, 5, 12)
    before = block(x_BTD, None, torch.float32, 0.0)
    with block.without_head(1):
        off = block(x_BTD, None, torch.float32, 0.0)
        assert not block.out[:, 4:8].any()
    assert torch.equal(block(x_BTD, None, torch.float32, 0.0), before)
    assert not torch.allclose(off, before)


@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize("is_additive", [False, True])
def test_what_a_recurrent_network_attended_to_is_what_it_added(combined: bool, is_additive: bool) -> None:
    torch.manual_seed(0)
    width, reach, steps = 6, 4, 11
    additive = Additive(torch.randn(5, width), torch.randn(5, width), torch.randn(5)) if is_additive else None
    rule, state_HH, drive = Rule(reach, 0.7, combined), torch.randn(width, width) * 0.3, torch.randn(1, steps, width)
    h_1TH, _ = attentive_scan(drive, torch.zeros(1, width), torch.zeros(1, 0, width), state_HH, additive, rule)
    alpha_TR, difference = attended(drive[0], h_1TH[0], state_HH, additive, rule)
    assert difference < 1e-5
    assert not alpha_TR[0].any()
    assert torch.allclose(alpha_TR[1:].sum(1), torch.ones(steps - 1))
    assert not alpha_TR[1, :-1].any()  # the second step sees the first and nothing else
    wrong = rule._replace(scale=1.4) if additive is None else rule
    other = additive and additive._replace(v_A=-additive.v_A)
    assert attended(drive[0], h_1TH[0], state_HH, other, wrong)[1] > 1e-3


def test_a_head_that_is_silenced_and_comes_back_counts_as_a_change_of_the_weights() -> None:
    """Whoever keeps a copy of the weights looks at how often they were written to."""
    out = torch.nn.Parameter(torch.randn(6, 6))
    before, versions = out.detach().clone(), [out._version]
    with silenced(out, heads=2, head=1):
        assert (out[:, 3:] == 0).all()
        assert torch.equal(out[:, :3], before[:, :3])
        versions.append(out._version)
    assert torch.equal(out, before)
    assert versions[0] < versions[1] < out._version
