"""Steps of fixed shape against the plain ones: the same distributions, whatever each row has read before."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lmlab.interface import LanguageModel, State, side_by_side, with_rows_replaced
from lmlab.layers import fast
from lmlab.layers.fast import many_rows
from lmlab.layers.fast.many_rows import ManyRows
from lmlab.layers.fast.triton_here import HAS_TRITON
from lmlab.models._gpt_decoder import GPTDecoder
from lmlab.models._gpt_state import GPTRows, GPTState
from lmlab.models.gpt import GPT, GPTConfig

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
    monkeypatch.setattr(GPT, "_by_rows", lambda self, decoder: fast.enabled)


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
    state = with_rows_replaced(state, 3, torch.tensor([2, 0], device=device), newcomers)
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


@pytest.mark.parametrize("device", DEVICES)
def test_states_side_by_side_go_on_as_they_would_alone(device: str) -> None:
    """In the cache of the first where it has room, in a new one where not; rows that read equally much need none on a CPU."""
    model, text_BT = model_on(device), tokens(device, 7, 40)
    lengths, rows = [3, 6, 3, 1], [2, 3, 1, 1]
    starts, states = [0, 2, 5, 6], list[State]()
    for start, count, length in zip(starts, rows, lengths, strict=True):
        states.append(stepped(model, text_BT[start : start + count], [length])[1])
    state = side_by_side(states[:2], rows[:2])
    _, state = model.advance(torch.stack([text_BT[r, [3, 3, 6, 6, 6][r]] for r in range(5)])[:, None], state)
    cache = cache_of(state)
    state = side_by_side([state, *states[2:]], [5, 1, 1])
    assert cache_of(state) is cache, "a cache for five rows has room for eight"
    at = [4, 4, 7, 7, 7, 3, 1]
    for _ in range(20):
        next_B1 = torch.stack([text_BT[row, t : t + 1] for row, t in enumerate(at)])
        logp_BV, state = model.advance(next_B1, state)
        at = [t + 1 for t in at]
        for row, t in enumerate(at):
            alone_1V, _ = stepped(model, text_BT[row : row + 1], [t])
            torch.testing.assert_close(logp_BV[row], alone_1V[-1, 0], **CLOSE)
    with pytest.raises(RuntimeError, match="advanced already"):
        model.advance(text_BT[:1, :1], states[3])


@pytest.fixture
def kept_caches(by_rows: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches stay with their decoder on a CPU too."""
    monkeypatch.setattr(GPTDecoder, "keeps", staticmethod(lambda cache: True))


def cache_of(state: State) -> ManyRows:
    assert isinstance(state, GPTRows)
    return state.cache


@pytest.mark.usefixtures("kept_caches")
@pytest.mark.parametrize("device", DEVICES)
def test_a_free_cache_is_used_again_and_nothing_of_the_last_text_is_seen(device: str) -> None:
    model = model_on(device, context=16, stride=8).for_decoding(torch.float32)
    texts = [tokens(device, 3, 14), tokens(device, 3, 14).flip(1)]
    fresh = [stepped(model_on(device, context=16, stride=8), text_BT, [2] + [1] * 12)[0] for text_BT in texts]
    _, state = stepped(model, texts[0], [2] + [1] * 12)
    first = cache_of(state)
    first.cache_L2BKCE.fill_(float("nan"))  # the worst that can be left behind
    del state
    several = [2, 1, 1, 3, 1]  # through the plain state, and back to a cache of fixed shape
    with fast.plain():
        plain, _ = stepped(model, texts[0], several)
    torch.testing.assert_close(stepped(model, texts[0], several)[0], plain, **CLOSE)
    for text_BT, expected in [*zip(texts, fresh, strict=True)] * 2:
        said, state = stepped(model, text_BT, [2] + [1] * 12)
        assert cache_of(state) is first
        torch.testing.assert_close(said, expected, atol=0, rtol=0)
        del state


@pytest.mark.usefixtures("kept_caches")
@pytest.mark.parametrize("device", DEVICES)
def test_a_cache_that_is_used_is_never_shared(device: str) -> None:
    model, text_BT = model_on(device).for_decoding(torch.float32), tokens(device, 3, 7)
    _, one = stepped(model, text_BT, [2, 1])
    _, other = stepped(model, text_BT, [2, 1])
    assert cache_of(one) is not cache_of(other)
    said_BV, _ = model.advance(text_BT[:, 3:4], one)
    same_BV, _ = model.advance(text_BT[:, 3:4], other)
    torch.testing.assert_close(said_BV, same_BV, atol=0, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_weights_are_rounded_while_writing_and_never_while_scoring(device: str) -> None:
    model, text_BT = model_on(device, context=32, stride=16), tokens(device, 2, 20)
    exact, _ = stepped(model, text_BT, [4] + [1] * 12)
    nats_BT = model.score(text_BT)
    rounded, state = stepped(model.for_decoding(torch.bfloat16), text_BT, [4] + [1] * 12)
    assert isinstance(state, GPTRows)
    assert state.cache.cache_L2BKCE.dtype == torch.bfloat16
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
    model, text_BT = model_on("cuda", width=64, context=40, stride=20).for_decoding(dtype), tokens("cuda", rows, 50)
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
    model, text_BT = model_on(device, context=1, stride=1).for_decoding(torch.bfloat16), tokens(device, 3, 6)
    said, state = stepped(model, text_BT, [1] * 6)
    assert isinstance(state, GPTState)
    with fast.plain():
        plain, _ = stepped(model, text_BT, [1] * 6)
    torch.testing.assert_close(said, plain, **CLOSE)
    assert isinstance(side_by_side([state, model.begin(1)[1]], [3, 1]), GPTState)
