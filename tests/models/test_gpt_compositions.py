"""Published architectures are compositions of `gpt`: the same log-probabilities as transformers, scored and token by token."""

from __future__ import annotations

from typing import Any

import published
import pytest
import torch
from torch import Tensor

from lmlab.config import Budget, TextFacts, make, recorded
from lmlab.interface import Windows
from lmlab.layers.composition import Composition, has_kernels
from lmlab.models.gpt import GPT, GPTConfig
from mistakes import mistake

CLOSE = {"atol": 1e-4, "rtol": 1e-4}
FACTS = TextFacts(train_tokens=1_000_000, train_bytes=1_000_000, vocab_size=11)


def tokens(rows: int, length: int) -> Tensor:
    return torch.randint(published.VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", published.PAIRS)
def test_a_published_architecture_is_a_composition(name: str) -> None:
    theirs, ours = published.PAIRS[name]()
    tokens_BT = tokens(3, published.CONTEXT)
    inputs_BT = torch.cat([torch.full((3, 1), published.BEGIN), tokens_BT[:, :-1]], 1)
    with torch.no_grad():
        expected_BTV = theirs(inputs_BT).logits.log_softmax(-1)
    assert not has_kernels(ours.composition)
    nats_BT = -expected_BTV.gather(2, tokens_BT[..., None])[..., 0]
    torch.testing.assert_close(ours.score(tokens_BT), nats_BT, **CLOSE)
    for sizes in ([1] * 23, [7, 1, 5, 10]):
        logp_BV, state = ours.begin(3)
        torch.testing.assert_close(logp_BV, expected_BTV[:, 0], **CLOSE)
        at = 0
        for size in sizes:
            logp_BV, state = ours.advance(tokens_BT[:, at : at + size], state)
            at += size
            torch.testing.assert_close(logp_BV, expected_BTV[:, at], **CLOSE)


COMPOSED: list[dict[str, Any]] = [
    {"norm": "rms", "activation": "swiglu", "kv_heads": 2},
    {"norm": "layer-bias", "biases": "all", "activation": "gelu-erf", "output_bias": True, "positions": "learned"},
    {"activation": "geglu", "window": 3, "head_width": 12, "kv_heads": 1, "rotary_share": 0.5, "tie": False},
    {"biases": "qkv", "activation": "silu", "hidden": 20, "embedding_scale": 2.0, "rotary_base": 100.0},
]


def tiny(**settings: Any) -> GPT:
    torch.manual_seed(0)
    sizes = {"layers": 2, "width": 32, "heads": 4, "context": 8, "stride": 3, "dropout": 0.0}
    model = GPT(GPT.resolve(make(GPTConfig, sizes | settings, "gpt"), FACTS, Budget(steps=10)), 11)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return model.eval()


@pytest.mark.parametrize("settings", COMPOSED, ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_scoring_a_composition_equals_stepping_across_windows(settings: dict[str, Any], rows: int) -> None:
    model = tiny(**settings)
    tokens_BT = torch.randint(11, (rows, 29))
    logp_BV, state = model.begin(rows)
    stepped = []
    for t in range(29):
        stepped.append(-logp_BV.gather(1, tokens_BT[:, t : t + 1]))
        logp_BV, state = model.advance(tokens_BT[:, t : t + 1], state)
    torch.testing.assert_close(torch.cat(stepped, 1), model.score(tokens_BT), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("settings", COMPOSED, ids=str)
def test_every_weight_of_a_composition_learns(settings: dict[str, Any]) -> None:
    model = tiny(**settings).train()
    model.loss(Windows(torch.randint(11, (4, 8)))).total.backward()
    unmoved = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert unmoved == []
    shapes = dict(model.named_parameters())
    for name, packed in model.hidden_matrices().items():
        assert len(shapes[name]) % packed == 0


@pytest.mark.parametrize("settings", COMPOSED, ids=str)
def test_the_heads_of_a_composition_look_where_its_kernel_looks(settings: dict[str, Any]) -> None:
    model = tiny(**settings)
    tokens_T = torch.randint(11, (7,))
    for looks in model.looks(tokens_T):
        assert looks.difference < 1e-6
        torch.testing.assert_close(looks.weights_HTC.sum(-1), torch.ones(4, 7))
        if "window" in settings:
            assert not looks.weights_HTC.tril(-settings["window"]).any()
    unfolded = model.unfolded(tokens_T, 1, 3)
    torch.testing.assert_close(unfolded.weights_NN @ unfolded.x_ND @ unfolded.value_DD.T, unfolded.y_ND, **CLOSE)


@pytest.mark.parametrize("settings", COMPOSED, ids=str)
def test_logits_are_multiplied_by_what_they_follow(settings: dict[str, Any]) -> None:
    model, tokens_BT = (
        tiny(**settings, tie=False) if "tie" not in settings else tiny(**settings),
        torch.randint(11, (1, 8)),
    )
    before_V = model.begin_with(tokens_BT[:, :5])[0][0]
    model.multiply_logits(0.5)
    torch.testing.assert_close(model.begin_with(tokens_BT[:, :5])[0][0], (before_V * 0.5).log_softmax(-1), **CLOSE)


def test_the_labs_own_block_computes_what_the_composed_one_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    for settings in ({}, {"activation": "gelu", "positions": "learned"}):
        own = tiny(**settings)
        monkeypatch.setattr("lmlab.layers.blocks.has_kernels", lambda c: False)
        composed = tiny(**settings)
        monkeypatch.undo()
        tokens_BT = torch.randint(11, (2, 8))
        grads = []
        for model in (own, composed):
            loss = model.loss(Windows(tokens_BT)).total
            grads.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
        torch.testing.assert_close(*grads, atol=2e-5, rtol=1e-4)


def test_a_setting_at_its_default_leaves_record_and_hash_as_they_were() -> None:
    plain = recorded(GPTConfig())
    assert set(plain) == {
        "layers", "width", "heads", "context", "stride", "positions", "activation", "tie", "dropout"
    }  # fmt: skip
    assert recorded(GPTConfig(norm="rms", kv_heads=2)) == plain | {"norm": "rms", "kv_heads": 2}


@pytest.mark.parametrize("width", [16, 96, 192])
def test_heads_are_chosen_for_the_heads_of_keys_and_values(width: int) -> None:
    config = GPT.resolve(GPTConfig(width=width, kv_heads=2, activation="swiglu"), FACTS, Budget(steps=10))
    assert config.heads % 2 == 0
    assert width % config.heads == 0
    assert config.hidden == pytest.approx(8 / 3 * width, abs=8)


@pytest.mark.parametrize(
    ("change", "supported"),
    [({}, True), ({"activation": "gelu"}, True), ({"norm": "rms"}, False), ({"norm_epsilon": 1e-6}, False),
     ({"activation": "swiglu"}, False), ({"biases": "qkv"}, False), ({"kv_heads": 1}, False), ({"window": 4}, False),
     ({"head_width": 4}, False), ({"hidden": 30}, False), ({"rotary_base": 5e5}, False), ({"rotary_share": 0.5}, False)],
    ids=str,
)  # fmt: skip
def test_kernels_are_for_the_compositions_that_they_know(change: dict[str, Any], supported: bool) -> None:
    own = Composition.of(16, 2, 2)
    assert has_kernels(Composition(**(vars(own) | change))) is supported


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"rotary_share": 1.5}, "rotary-share-above-one"),
        ({"positions": "learned", "rotary_base": 500.0}, "rotary-setting-without-rotary-positions"),
        ({"norm_epsilon": 0.0}, "setting-not-above-zero"),
        ({"norm": "batch"}, "setting-not-among-choices"),
        ({"kv_heads": 0}, "setting-below-one"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], code: str) -> None:
    with mistake(code):
        make(GPTConfig, settings, "gpt")


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"heads": 6, "kv_heads": 4, "width": 36}, "kv-heads-do-not-divide-heads"),
        ({"width": 30, "heads": 4}, "heads-do-not-divide-width"),
        ({"width": 32, "kv_heads": 5, "heads": None}, "kv-heads-do-not-fit-width"),
        ({"rotary_share": 0.4}, "rotary-width-odd"),
    ],
    ids=str,
)
def test_heads_that_do_not_fit_are_refused(settings: dict[str, Any], code: str) -> None:
    with mistake(code):
        tiny(**settings)
