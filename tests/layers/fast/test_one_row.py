"""One more token of one text: in C, with NumPy, and the plain way say the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import Tensor

from lmlab.engine import generate
from lmlab.hardware.c_kernels import no_c_kernels, why_not
from lmlab.layers import fast
from lmlab.layers.fast import one_row, one_row_in_c
from lmlab.layers.fast.one_row_in_c import SOURCE, OneRowInC
from lmlab.models._gpt_state import GPTState
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.text.tokenizers import train_tokenizer

TOKENS = (3, 1, 4, 1, 5, 9, 2, 6, 5)
in_c = pytest.mark.skipif(bool(why_not(SOURCE)), reason=why_not(SOURCE))


def tiny(vocabulary: int = 11, **settings: object) -> GPT:
    """Widths that are no multiples of what a kernel takes at once."""
    given = {"layers": 2, "width": 36, "heads": 2, "context": 8, "stride": 3, "dropout": 0.0, "tie": True, **settings}
    torch.manual_seed(0)
    model = GPT(GPTConfig(**given), vocabulary).eval()  # type: ignore[arg-type]
    with torch.no_grad():  # what begins as ones and zeros would hide mistakes
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    return model


def stepped(model: GPT, tokens: tuple[int, ...] = TOKENS) -> Tensor:
    logp_1V, state = model.begin(1)
    found = [logp_1V]
    for token in tokens:
        logp_1V, state = model.advance(torch.tensor([[token]]), state)
        found.append(logp_1V)
    return torch.cat(found)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which way was taken, step by step."""
    taken: list[str] = []

    def counted(kind: type, name: str) -> None:
        honest: Callable[..., Tensor] = kind.log_probabilities  # type: ignore[attr-defined]
        monkeypatch.setattr(kind, "log_probabilities", lambda self, *a: taken.append(name) or honest(self, *a))

    counted(one_row.OneRow, "numpy")
    counted(OneRowInC, "c")
    return taken


SHAPES: list[dict[str, object]] = [
    {"positions": "rotary", "activation": "relu2"},
    {"positions": "learned", "activation": "gelu"},
    {"positions": "sinusoidal", "activation": "relu2", "tie": False},
    {"width": 128, "heads": 2, "context": 64, "stride": 32, "activation": "gelu", "vocabulary": 2500},
    {"width": 80, "heads": 5, "context": 33, "stride": 1, "layers": 3},
    {"width": 6, "heads": 1, "context": 2, "stride": 1, "layers": 1},
]


@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_with_numpy_as_the_plain_way(settings: dict[str, object], calls: list[str]) -> None:
    model = tiny(**settings)  # type: ignore[arg-type]
    with no_c_kernels():
        quick = stepped(model)
    assert set(calls) == {"numpy"}
    calls.clear()
    with fast.plain():
        torch.testing.assert_close(stepped(model), quick, atol=2e-5, rtol=2e-5)
    assert not calls


@in_c
@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_in_c_as_the_plain_way(settings: dict[str, object], calls: list[str]) -> None:
    model = tiny(**settings)  # type: ignore[arg-type]
    tokens = TOKENS * 9  # several windows
    quick = stepped(model, tokens)
    assert set(calls) == {"c"}
    with fast.plain():
        torch.testing.assert_close(stepped(model, tokens), quick, atol=5e-5, rtol=2e-5)


@in_c
def test_in_c_the_bits_are_the_same_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(width=80, heads=5, context=33)
    found = []
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr(one_row_in_c.Trial, "is_over", True)
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(stepped(model, TOKENS * 3))
    assert all(torch.equal(found[0], other) for other in found[1:])


@in_c
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_in_c_what_is_no_number_is_not_hidden(wrong: float) -> None:
    for name in ("embedding", "blocks.0.up", "blocks.1.qkv", "norm"):
        model = tiny()
        with torch.no_grad():
            model.get_parameter(name).fill_(wrong)
        assert not torch.isfinite(stepped(model, (3,))[-1]).all(), name


@pytest.mark.parametrize("usual", [torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("way", [pytest.param("c", marks=in_c), "numpy"])
def test_what_torch_makes_by_default_is_not_what_is_written_into(
    way: str, usual: torch.dtype, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both write float32: in numbers of half the size they would write into what is not theirs."""
    if way == "numpy":
        monkeypatch.setenv("LMLAB_C_KERNELS", "off")
    model = tiny(vocabulary=200)
    expected = stepped(model)
    before = torch.get_default_dtype()
    torch.set_default_dtype(usual)
    try:
        found = stepped(model)
    finally:
        torch.set_default_dtype(before)
    assert set(calls) == {way}
    torch.testing.assert_close(found, expected)


@in_c
def test_in_c_great_numbers_saturate_as_they_do_the_plain_way() -> None:
    for activation in ("relu2", "gelu"):
        model = tiny(activation=activation)
        with torch.no_grad():
            model.get_parameter("blocks.0.up").mul_(300.0)
            model.get_parameter("blocks.1.qkv").mul_(300.0)
        quick = stepped(model)
        with fast.plain():
            torch.testing.assert_close(stepped(model), quick, atol=2e-4, rtol=2e-4)


@in_c
def test_in_c_weights_that_are_not_as_it_wants_them_take_the_other_way(calls: list[str]) -> None:
    model = tiny()
    block = model.blocks[0]
    block.up = torch.nn.Parameter(block.up.detach().t().contiguous().t())  # the same numbers, lying otherwise
    stepped(model)
    assert set(calls) == {"numpy"}


@pytest.mark.parametrize("token", [-1, 12, 2**31 + 3])
def test_tokens_that_there_are_not_are_refused(token: int) -> None:
    """The vocabulary has 11, and there is the begin symbol."""
    model = tiny()
    ways: list[Callable[[], AbstractContextManager[None]]] = [nullcontext, no_c_kernels, fast.plain]
    for way in ways:
        with way(), pytest.raises(IndexError):
            stepped(model, (token,))


@in_c
def test_in_c_a_state_that_was_copied_goes_on_alone() -> None:
    model = tiny(context=32, stride=16)
    _, state = model.begin_with(torch.tensor([[3, 1, 4]]))
    assert isinstance(state, GPTState)
    one, other = state.select(torch.tensor([0])), state.select(torch.tensor([0]))
    for token in (1, 5):
        _, one = model.advance(torch.tensor([[token]]), one)
    for token in (7, 8):
        _, other = model.advance(torch.tensor([[token]]), other)
    found, _ = model.advance(torch.tensor([[2]]), one)
    expected, _ = model.begin_with(torch.tensor([[3, 1, 4, 1, 5, 2]]))
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=2e-5)


@in_c
def test_greedy_text_is_the_same_in_c() -> None:
    text = "the cat sat on the mat and the dog sat on the log " * 3
    tokenizer = train_tokenizer("char", [text])
    model = tiny(tokenizer.vocab_size, width=64, heads=2, context=48, stride=16)
    quick = generate(model, tokenizer, "the ", method="greedy", max_tokens=100)
    with fast.plain():
        plain = generate(model, tokenizer, "the ", method="greedy", max_tokens=100)
    assert quick[0].ids == plain[0].ids
