"""Steps of fixed shape against the plain ones: the same distributions, whatever each row has read before."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lmlab.interface import LanguageModel, State
from lmlab.layers import fast
from lmlab.layers.fast import many_rows
from lmlab.layers.fast.many_rows import ManyRows
from lmlab.layers.fast.triton_here import HAS_TRITON
from lmlab.models import _gpt_desks
from lmlab.models._gpt_rows import GPTRows
from lmlab.models.gpt import GPT, GPTConfig, GPTState

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
CLOSE = {"atol": 2e-5, "rtol": 1e-4}


def model_on(device: str, **settings: str | int | bool) -> GPT:
    sizes = {"layers": 2, "width": 24, "heads": 2, "context": 8, "stride": 3, "dropout": 0.0, "tie": True}
    torch.manual_seed(0)
    model = GPT(GPTConfig(**sizes | settings), 11).eval().to(device)  # type: ignore[arg-type]
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    return model


def tokens(device: str, rows: int, length: int) -> Tensor:
    return torch.randint(11, (rows, length), generator=torch.Generator().manual_seed(rows)).to(device)


@pytest.fixture
def by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of fixed shape on a CPU too, which does not need them."""
    monkeypatch.setattr(GPT, "_by_rows", lambda self: fast.enabled)


def stepped(model: LanguageModel, tokens_BT: Tensor, sizes: list[int]) -> tuple[Tensor, State]:
    """What is said after each of these pieces, and the last state."""
    logp_BV, state = model.begin(len(tokens_BT))
    said, at = [logp_BV], 0
    for size in sizes:
        logp_BV, state = model.advance(tokens_BT[:, at : at + size], state)
        said.append(logp_BV)
        at += size
    return torch.stack(said), state


@pytest.mark.usefixtures("by_rows")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [1, 3, 9])
@pytest.mark.parametrize(
    "settings",
    [{}, {"positions": "learned", "activation": "gelu"}, {"positions": "sinusoidal", "tie": False}, {"stride": 8}],
    ids=str,
)
def test_steps_of_fixed_shape_say_what_plain_ones_say(device: str, rows: int, settings: dict[str, str]) -> None:
    model, text_BT = model_on(device, **settings), tokens(device, rows, 30)
    for sizes in ([1] * 24, [5, 1, 1, 1, 1, 1, 4, 1, 1, 9, 1]):
        quick, state = stepped(model, text_BT, sizes)
        assert isinstance(state, GPTRows)
        with fast.plain():
            plain, state = stepped(model, text_BT, sizes)
            assert isinstance(state, GPTState)
        torch.testing.assert_close(quick, plain, **CLOSE)


@pytest.mark.usefixtures("by_rows")
@pytest.mark.parametrize("device", DEVICES)
def test_selected_rows_go_on_by_themselves(device: str) -> None:
    model, text_BT = model_on(device), tokens(device, 4, 14)
    _, state = stepped(model, text_BT, [2, 1, 1, 1])
    chosen_B = torch.tensor([2, 0, 0], device=device)
    copy = state.select(chosen_B)
    for t in range(5, 14):
        logp_BV, state = model.advance(text_BT[:, t : t + 1], state)
        copied_BV, copy = model.advance(text_BT[chosen_B, t : t + 1], copy)
        torch.testing.assert_close(copied_BV, logp_BV[chosen_B], **CLOSE)


@pytest.mark.parametrize("device", DEVICES)
def test_a_row_that_is_replaced_reads_its_own_text(device: str) -> None:
    """Rows of different lengths side by side, across the ends of their windows; each says what it says alone."""
    model, text_BT = model_on(device), tokens(device, 5, 40)
    _, state = stepped(model, text_BT[:3], [6])
    _, newcomers = stepped(model, text_BT[3:], [3])
    state = model.replace(state, torch.tensor([2, 0], device=device), newcomers)
    reading, at = [4, 1, 3], [3, 6, 3]
    for _ in range(20):
        next_B1 = torch.stack([text_BT[row, t : t + 1] for row, t in zip(reading, at, strict=True)])
        logp_BV, state = model.advance(next_B1, state)
        at = [t + 1 for t in at]
        for said_V, row, t in zip(logp_BV, reading, at, strict=True):
            alone_1V, _ = stepped(model, text_BT[row : row + 1], [t])
            torch.testing.assert_close(said_V, alone_1V[-1, 0], **CLOSE)
    with pytest.raises(RuntimeError, match="advanced already"):
        model.advance(text_BT[3:, :1], newcomers)


@pytest.fixture
def kept_desks(by_rows: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Desks stay with their model on a CPU too."""
    monkeypatch.setattr(_gpt_desks, "_worth_keeping", lambda weights: True)


def desk_of(state: State) -> ManyRows:
    assert isinstance(state, GPTRows)
    return state.desk


@pytest.mark.usefixtures("kept_desks")
@pytest.mark.parametrize("device", DEVICES)
def test_a_desk_that_was_left_is_taken_again_and_nothing_of_the_last_text_is_seen(device: str) -> None:
    model = model_on(device, context=16, stride=8)
    texts = [tokens(device, 3, 14), tokens(device, 3, 14).flip(1)]
    fresh = [stepped(model_on(device, context=16, stride=8), text_BT, [2] + [1] * 12)[0] for text_BT in texts]
    _, state = stepped(model, texts[0], [2] + [1] * 12)
    first = desk_of(state)
    first.cache_L2BHCD.fill_(float("nan"))  # the worst that can be left behind
    del state
    several = [2, 1, 1, 3, 1]  # through the plain state, and back to a desk
    with fast.plain():
        plain, _ = stepped(model, texts[0], several)
    torch.testing.assert_close(stepped(model, texts[0], several)[0], plain, **CLOSE)
    for text_BT, expected in [*zip(texts, fresh, strict=True)] * 2:
        said, state = stepped(model, text_BT, [2] + [1] * 12)
        assert desk_of(state) is first
        torch.testing.assert_close(said, expected, atol=0, rtol=0)
        del state


@pytest.mark.usefixtures("kept_desks")
@pytest.mark.parametrize("device", DEVICES)
def test_a_desk_is_never_shared_and_never_has_old_weights(device: str) -> None:
    model, text_BT = model_on(device), tokens(device, 3, 7)
    _, one = stepped(model, text_BT, [2, 1])
    _, other = stepped(model, text_BT, [2, 1])
    assert desk_of(one) is not desk_of(other)
    said_BV, _ = model.advance(text_BT[:, 3:4], one)
    same_BV, _ = model.advance(text_BT[:, 3:4], other)
    torch.testing.assert_close(said_BV, same_BV, atol=0, rtol=0)
    before = desk_of(one)
    del one, other
    with torch.no_grad():
        model.norm.mul_(2)
    changed, state = stepped(model, text_BT, [2] + [1] * 5)
    assert desk_of(state) is not before
    with fast.plain():
        torch.testing.assert_close(changed, stepped(model, text_BT, [2] + [1] * 5)[0], **CLOSE)


@pytest.mark.parametrize("device", DEVICES)
def test_weights_are_rounded_while_writing_and_never_while_scoring(device: str) -> None:
    model, text_BT = model_on(device, context=32, stride=16), tokens(device, 2, 20)
    exact, _ = stepped(model, text_BT, [4] + [1] * 12)
    nats_BT = model.score(text_BT)
    model.writing_dtype = torch.bfloat16
    rounded, state = stepped(model, text_BT, [4] + [1] * 12)
    assert isinstance(state, GPTRows)
    assert state.desk.cache_L2BHCD.dtype == torch.bfloat16
    assert rounded.dtype == torch.float32
    if device == "cpu":
        assert torch.equal(rounded[:2], exact[:2]), "a CPU reads prompts in float32"
    assert 0 < (rounded - exact).abs().max() < 0.1
    torch.testing.assert_close(model.score(text_BT), nats_BT, atol=0, rtol=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("rows", [1, 5, 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_replayed_step_has_the_bits_of_one_that_is_asked_for_kernel_by_kernel(
    rows: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, text_BT = model_on("cuda", width=64, context=40, stride=20), tokens("cuda", rows, 50)
    model.writing_dtype = dtype
    stepped(model, text_BT, [3, 1, 1])
    replayed, _ = stepped(model, text_BT, [3] + [1] * 30)
    monkeypatch.setattr(many_rows, "WARM_STEPS", 100)
    many_rows._WARMED.clear()
    asked, _ = stepped(model, text_BT, [3] + [1] * 30)
    assert torch.equal(replayed, asked)


@pytest.mark.skipif(not (torch.cuda.is_available() and HAS_TRITON), reason="needs a GPU and triton")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("heads", "width", "rotary"), [(2, 64, True), (3, 24, True), (1, 80, False)])
@pytest.mark.parametrize("filled", [0, 264])
def test_kernels_between_the_products_are_their_twins(
    filled: int, dtype: torch.dtype, heads: int, width: int, rotary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lmlab.layers.fast import row_kernels
    from lmlab.layers.positions import rotary_tables

    monkeypatch.setattr(row_kernels, "FILLED", filled)
    torch.manual_seed(1)
    rows, context = 5, 200
    cache = torch.randn(2, rows, heads, context, width, dtype=dtype, device="cuda")
    qkv = torch.randn(rows, 3, heads, width, dtype=dtype, device="cuda")
    position_B = torch.tensor([0, 1, 64, 130, 199], device="cuda")
    cos, sin = (table.cuda() for table in rotary_tables(context, width))
    stream = torch.randn(rows, heads * width, device="cuda")
    change, weight = torch.randn_like(stream).to(dtype), torch.randn(heads * width, device="cuda")
    matrix = torch.randn(50, heads * width, device="cuda").to(dtype) * 0.1
    found = []
    for way in (row_kernels, None):
        add_norm = many_rows.plain_add_norm if way is None else way.add_norm
        attend = many_rows.plain_attend if way is None else way.attend
        activate = many_rows.plain_activate if way is None else way.activate
        project = many_rows.plain_project if way is None else way.project
        caches, streams, sums = cache.clone(), stream.clone(), torch.zeros(rows, 50, device="cuda")
        results = [attend(qkv, position_B, caches, (cos, sin) if rotary else None), caches]
        results += [add_norm(streams, None, weight, dtype), add_norm(streams, change, weight, dtype), streams]
        results += [activate(change.clone(), gelu) for gelu in (True, False)]
        results += [project(streams, matrix, norm_K=weight, gelu=gelu, dtype=dtype) for gelu in (True, False, None)]
        found.append([*results, project(change, matrix, onto_BN=sums, dtype=dtype)])
    loose = {"atol": 2e-5, "rtol": 2e-5} if dtype == torch.float32 else {"atol": 0.03, "rtol": 0.02}
    for mine, plain in zip(*found, strict=True):
        torch.testing.assert_close(mine, plain, **loose)


@pytest.mark.parametrize("device", DEVICES)
def test_a_window_of_one_input_has_no_step_of_fixed_shape(device: str) -> None:
    """There is no place for a token in it: what would be written would be written beside it."""
    model, text_BT = model_on(device, context=1, stride=1), tokens(device, 3, 6)
    model.writing_dtype = torch.bfloat16
    said, state = stepped(model, text_BT, [1] * 6)
    assert isinstance(state, GPTState)
    with fast.plain():
        plain, _ = stepped(model, text_BT, [1] * 6)
    torch.testing.assert_close(said, plain, **CLOSE)
    assert model.replace(state, torch.tensor([0], device=device), model.begin(1)[1]) is None
