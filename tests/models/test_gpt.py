"""`gpt`: windows, caches, precision and parameter counts."""

from __future__ import annotations

import math

import pytest
import torch

from lmlab.config import Budget, TextFacts
from lmlab.interface import Windows
from lmlab.layers import attention
from lmlab.layers.blocks import squared_relu_network
from lmlab.layers.fast import attention as products
from lmlab.layers.positions import rotary_tables
from lmlab.models.gpt import GPT, GPTConfig

FACTS = TextFacts(train_tokens=1_000_000, train_bytes=1_000_000, vocab_size=11)


def tiny(**settings: object) -> GPT:
    torch.manual_seed(0)
    defaults: dict = {"layers": 2, "width": 32, "heads": 4, "context": 8, "stride": 3, "dropout": 0.0}
    config = GPT.resolve(GPTConfig(**(defaults | settings)), FACTS, Budget(steps=10))
    model = GPT(config, 11)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return model.eval()


@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal"])
@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scoring_equals_stepping_across_many_windows(positions: str, tie: bool, rows: int, dtype: torch.dtype) -> None:
    model = tiny(positions=positions, tie=tie).to(dtype)
    tokens_BT = torch.randint(11, (rows, 29))
    logp_BV, state = model.begin(rows)
    stepped = []
    for t in range(29):
        stepped.append(-logp_BV.gather(1, tokens_BT[:, t : t + 1]))
        logp_BV, state = model.advance(tokens_BT[:, t : t + 1], state)
    torch.testing.assert_close(torch.cat(stepped, 1), model.score(tokens_BT), atol=2e-5, rtol=1e-5, check_dtype=False)


@pytest.mark.parametrize(("rows", "length"), [(2, 29), (1, 5), (1, 1), (0, 9)])
def test_the_head_is_asked_about_each_token_once(rows: int, length: int) -> None:
    """Windows share most of their tokens, and a large vocabulary makes the head the most of scoring."""
    model, tokens_BT, asked = tiny(), torch.randint(11, (rows, length)), list[int]()

    def head(hidden_ND, weight_VD, bias_V, targets_N):
        asked.append(len(hidden_ND))
        return targets_N[:, None].float()

    torch.testing.assert_close(model.said_by(head, 1, tokens_BT)[..., 0], tokens_BT.float())
    assert sum(asked) == rows * length


@pytest.mark.parametrize(
    "settings", [{"positions": "rotatory"}, {"activation": "relu"}, {"heads": 0}, {"dropout": 1.0}]
)
def test_a_setting_that_cannot_be_is_refused_in_python_too(settings: dict) -> None:
    with pytest.raises(ValueError, match=f"gpt: {next(iter(settings))}"):
        GPTConfig(**settings)


def test_each_window_after_the_first_sees_at_least_context_minus_stride_tokens() -> None:
    """With stride 3 of 8, token 8 is predicted from tokens 3..7, so token 2 cannot matter to it and token 3 does."""
    model = tiny()
    tokens_BT = torch.randint(11, (1, 11))
    base = model.score(tokens_BT)[0]
    for changed, matters in ((2, False), (3, True)):
        other = tokens_BT.clone()
        other[0, changed] = (other[0, changed] + 1) % 11
        assert bool((model.score(other)[0, 8:] != base[8:]).any()) is matters


def test_a_stride_of_one_gives_every_token_the_longest_history() -> None:
    model = tiny(stride=1)
    tokens_BT = torch.randint(11, (1, 20))
    nats = model.score(tokens_BT)[0]
    window = tokens_BT[:, 12:20]  # token 19 is the last of the window that starts at 12
    torch.testing.assert_close(nats[19], model.score(window)[0, -1])


@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("activation", ["relu2", "gelu"])
@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal"])
def test_a_row_alone_advances_like_one_of_two(positions: str, activation: str, tie: bool) -> None:
    model = tiny(positions=positions, activation=activation, tie=tie)
    tokens_BT = torch.randint(11, (1, 30))
    alone, state = model.begin(1)
    pair, pair_state = model.begin(2)
    for t in range(tokens_BT.shape[1]):  # over several windows
        torch.testing.assert_close(alone, pair[1:], atol=2e-6, rtol=1e-5)
        alone, state = model.advance(tokens_BT[:, t : t + 1], state)
        pair, pair_state = model.advance(tokens_BT[:, t : t + 1].expand(2, 1), pair_state)


@pytest.mark.parametrize("block", [3, 256])
@pytest.mark.parametrize("rotary", [True, False])
def test_written_out_attention_equals_the_fused_kernel_and_so_do_its_gradients(
    rotary: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "BLOCK", block)
    torch.manual_seed(0)
    qkv = torch.randn(2, 7, 3, 2, 6, dtype=torch.float64, requires_grad=True)
    cos, sin = (table.double() for table in rotary_tables(7, 6))
    rotation = (cos, sin) if rotary else None
    mine = products.attention_by_products(qkv, rotation)
    q, k, v = attention.split_heads(qkv, rotation)
    fused = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 7, -1)
    torch.testing.assert_close(mine, fused)
    weights = torch.randn_like(mine)
    (by_hand,) = torch.autograd.grad((mine * weights).sum(), qkv)
    (by_torch,) = torch.autograd.grad((fused * weights).sum(), qkv)
    torch.testing.assert_close(by_hand, by_torch)


def test_the_squared_relu_network_and_its_derivatives() -> None:
    x, up, down = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in [(2, 3, 4), (6, 4), (5, 6)]
    )
    plain = torch.nn.functional.linear(torch.relu(torch.nn.functional.linear(x, up)) ** 2, down)
    torch.testing.assert_close(squared_relu_network(x, up, down), plain)
    assert torch.autograd.gradcheck(squared_relu_network, (x, up, down))


def test_the_loss_is_the_sum_of_the_scores_and_the_mask_chooses_which() -> None:
    model = tiny()
    tokens_BT = torch.randint(11, (3, 8))
    nats_BT = model.score(tokens_BT)
    loss = model.loss(Windows(tokens_BT))
    total, count = loss.total, loss.count
    assert count == 24
    torch.testing.assert_close(total, nats_BT.sum())
    mask_BT = torch.rand(3, 8) < 0.5
    loss = model.loss(Windows(tokens_BT, mask_BT))
    total, count = loss.total, loss.count
    assert count == int(mask_BT.sum())
    torch.testing.assert_close(total, nats_BT[mask_BT].sum())


def test_bf16_training_has_nearly_the_gradients_of_float32() -> None:
    model = tiny(width=64, layers=3).train()
    tokens_BT = torch.randint(11, (8, 8))
    model.loss(Windows(tokens_BT)).total.backward()
    exact = torch.cat([p.grad.flatten() for p in model.parameters()])
    model.zero_grad()
    model.compute_dtype = torch.bfloat16
    model.loss(Windows(tokens_BT)).total.backward()
    rounded = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert torch.nn.functional.cosine_similarity(exact, rounded, dim=0) > 0.995


@pytest.mark.parametrize("width", [64, 384])
@pytest.mark.parametrize("tie", [True, False])
def test_before_it_has_learned_it_guesses(width: int, tie: bool) -> None:
    """With one table for embedding and output it was once nearly sure of the token that it had just read."""
    torch.manual_seed(0)
    facts = TextFacts(train_tokens=1_000_000, train_bytes=1_000_000, vocab_size=2000)
    settings = GPTConfig(layers=2, width=width, heads=2, context=64, dropout=0.0, tie=tie)
    model = GPT(GPT.resolve(settings, facts, Budget(steps=1)), 2000)
    nats = float(model.loss(Windows(torch.randint(2000, (8, 64)))).mean.detach())
    assert math.log(2000) - 0.01 < nats < math.log(2000) + 0.2


def test_parameters_depend_on_the_context_only_for_learned_positions() -> None:
    """A Transformer's count depends on the context where positions are learned."""
    count = {
        (positions, context): tiny(positions=positions, context=context).parameters_count
        for positions in ("rotary", "sinusoidal", "learned")
        for context in (8, 16)
    }
    assert count["rotary", 8] == count["rotary", 16] == count["sinusoidal", 16]
    assert count["learned", 16] - count["learned", 8] == 8 * 32


def test_the_count_is_the_formula() -> None:
    model = tiny(tie=False)
    width, layers, vocab = 32, 2, 11
    assert model.parameters_count == (vocab + 1) * width + layers * (12 * width**2 + 2 * width) + width + vocab * width


@pytest.mark.parametrize("tie", [True, False])
def test_a_copy_through_transformers_has_the_same_log_probabilities(tie: bool) -> None:
    """GPT-NeoX of transformers is this architecture with rotary positions; its logits are an independent reference."""
    transformers = pytest.importorskip("transformers")
    model = tiny(context=16, stride=8, tie=tie)
    config = transformers.GPTNeoXConfig(
        vocab_size=12, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        hidden_act="relu2", max_position_embeddings=16, use_parallel_residual=False, attention_bias=True,
        hidden_dropout=0.0, attention_dropout=0.0, tie_word_embeddings=False, rotary_pct=1.0,  # of older versions
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
    )  # fmt: skip
    other = transformers.GPTNeoXForCausalLM(config).eval()
    mine = dict(model.named_parameters())
    theirs = other.state_dict()
    for name in theirs:
        if name.endswith("bias"):
            theirs[name].zero_()
    theirs["gpt_neox.embed_in.weight"].copy_(mine["embedding"] * (32**0.5 if tie else 1))
    theirs["gpt_neox.final_layer_norm.weight"].copy_(mine["norm"])
    output = "embed_out.weight" if "embed_out.weight" in theirs else "lm_head.weight"
    theirs[output][:11] = mine["embedding" if tie else "output"].detach()[:11]
    for i in range(2):
        block, layer = f"blocks.{i}.", f"gpt_neox.layers.{i}."
        # NeoX packs its projection head by head (q, k, v of head 0, then of head 1, …).
        packed = mine[block + "qkv"].detach().view(3, 4, 8, 32).permute(1, 0, 2, 3).reshape(96, 32)
        theirs[layer + "attention.query_key_value.weight"].copy_(packed)
        theirs[layer + "attention.dense.weight"].copy_(mine[block + "out"])
        theirs[layer + "mlp.dense_h_to_4h.weight"].copy_(mine[block + "up"])
        theirs[layer + "mlp.dense_4h_to_h.weight"].copy_(mine[block + "down"])
        theirs[layer + "input_layernorm.weight"].copy_(mine[block + "norm_attention"])
        theirs[layer + "post_attention_layernorm.weight"].copy_(mine[block + "norm_mlp"])
    other.load_state_dict(theirs)
    tokens_BT = torch.randint(11, (2, 16))
    inputs_BT = torch.nn.functional.pad(tokens_BT[:, :-1], (1, 0), value=11)
    with torch.no_grad():
        logits_BTV = other(inputs_BT).logits[..., :11]
    nats_BT = -logits_BTV.log_softmax(-1).gather(2, tokens_BT[..., None])[..., 0]
    torch.testing.assert_close(model.score(tokens_BT), nats_BT, atol=3e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"width": 30}, "multiple of heads"), ({"stride": 9}, "between 1 and the context"), ({"width": 36}, "even width")],
)
def test_impossible_settings_say_what_would_be_right(settings: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tiny(**settings)
