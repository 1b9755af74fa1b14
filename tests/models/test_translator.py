"""The translator: against torch.nn.Transformer and transformers, a distribution of its own, blind to padding and the future."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from huggingface import pegasus_of
from lmlab.config import Mistake
from lmlab.costs.dispatcher import counted_as_run
from lmlab.formulas import Shape, work
from lmlab.layers import attention, blocks
from lmlab.models.translator import Conditioned, Translations, Translator, TranslatorConfig
from lmlab.promises import checks
from mistakes import mistake

VOCAB, CONTEXT = 11, 40
CONFIG = TranslatorConfig(languages=2, layers=2, width=16, heads=2, context=CONTEXT, dropout=0.0)


def translator(seed: int = 0, **changes: Any) -> Translator:
    torch.manual_seed(seed)
    model = Translator(dataclasses.replace(CONFIG, **changes), VOCAB)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    return model.eval()


def batch(lengths: tuple[int, ...] = (5, 3, 1), targets: tuple[int, ...] = (4, 1, 6), seed: int = 1) -> Translations:
    """Sources and targets of these lengths, filled up behind."""
    draw = torch.Generator().manual_seed(seed)
    rows = len(lengths)
    there_BS = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    mask_BT = torch.arange(max(targets)) < torch.tensor(targets)[:, None]
    source_BS = torch.randint(VOCAB + 1, (rows, max(lengths)), generator=draw)
    targets_BKT = torch.randint(VOCAB + 1, (rows, 2, max(targets)), generator=draw)
    return Translations(source_BS, there_BS, targets_BKT, mask_BT[:, None].expand(-1, 2, -1).contiguous())


def view(model: Translator, language: int = 1) -> Conditioned:
    return model.given(model.encode(torch.tensor([[3, 1, 4, 1, 11]]), torch.ones(1, 5, dtype=torch.bool)), language)


def as_torch_has_it(ours: Translator) -> nn.Transformer:
    """torch.nn.Transformer with these weights."""
    theirs = nn.Transformer(
        16, 2, 2, 2, 64, dropout=0.0, activation=lambda x: F.relu(x).square(), batch_first=True, norm_first=True, bias=False
    ).eval()  # fmt: skip
    with torch.no_grad():
        for mine, other in [*zip(ours.encoder, theirs.encoder.layers, strict=True)]:
            _copy(mine, other, mlp_norm="norm2")
        for mine, cross, other in zip(ours.decoder, ours.cross, theirs.decoder.layers, strict=True):
            _copy(mine, other, mlp_norm="norm3")
            other.multihead_attn.in_proj_weight.copy_(torch.cat([cross.query, cross.kv]))
            other.multihead_attn.out_proj.weight.copy_(cross.out)
            other.norm2.weight.copy_(cross.norm)
        theirs.encoder.norm.weight.copy_(ours.encoder_norm)
        theirs.decoder.norm.weight.copy_(ours.norm)
    return theirs


def _copy(mine: Any, other: Any, mlp_norm: str) -> None:
    other.self_attn.in_proj_weight.copy_(mine.qkv)
    other.self_attn.out_proj.weight.copy_(mine.out)
    other.linear1.weight.copy_(mine.up)
    other.linear2.weight.copy_(mine.down)
    other.norm1.weight.copy_(mine.norm_attention)
    getattr(other, mlp_norm).weight.copy_(mine.norm_mlp)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_it_is_what_torch_nn_transformer_computes_with_the_same_weights() -> None:
    ours, data = translator(), batch()
    theirs = as_torch_has_it(ours)

    def embedded(ids_BT: Tensor) -> Tensor:
        return F.embedding(ids_BT, ours.embedding) * 4.0 + ours.position_CD[: ids_BT.shape[1]]

    source = ours.encode(data.source_BS, data.there_BS)
    for language in range(2):
        targets_BT = data.targets_BKT[:, language]
        inputs_BT = F.pad(targets_BT[:, :-1], (1, 0), value=VOCAB + 1 + language)
        hidden_BTD = theirs(
            embedded(data.source_BS), embedded(inputs_BT), tgt_is_causal=True,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(targets_BT.shape[1]),
            src_key_padding_mask=~data.there_BS, memory_key_padding_mask=~data.there_BS,
        )  # fmt: skip
        logits_BTV = hidden_BTD @ ours.embedding[: VOCAB + 1].T
        expected = F.cross_entropy(logits_BTV.flatten(0, 1), targets_BT.reshape(-1), reduction="none")
        found = ours.given(source, language).score(targets_BT).reshape(-1)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_it_is_the_encoder_decoder_of_transformers_with_the_same_weights() -> None:
    ours, data = translator(), batch()
    theirs = pegasus_of(ours)
    source = ours.encode(data.source_BS, data.there_BS)
    for language in range(2):
        targets_BT = data.targets_BKT[:, language]
        logits_BTV = theirs(
            data.source_BS, attention_mask=data.there_BS.long(),
            decoder_input_ids=F.pad(targets_BT[:, :-1], (1, 0), value=VOCAB + 1 + language),
        ).logits[..., : VOCAB + 1]  # fmt: skip
        logp_BTV = logits_BTV.log_softmax(-1)
        found = ours.given(source, language).score(targets_BT)
        expected = -logp_BTV.gather(-1, targets_BT[..., None])[..., 0]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
        first_BV, _ = ours.given(source, language).begin(len(targets_BT))
        torch.testing.assert_close(first_BV, logp_BTV[:, 0], atol=1e-4, rtol=0)


def test_the_loss_is_the_sum_of_what_the_views_score_under_the_mask() -> None:
    model, data = translator(), batch()
    source = model.encode(data.source_BS, data.there_BS)
    nats_BKT = torch.stack([model.given(source, k).score(data.targets_BKT[:, k]) for k in range(2)], dim=1)
    loss = model.loss(data)
    assert loss.count == data.count == 2 * (4 + 1 + 6)
    torch.testing.assert_close(loss.total.detach(), nats_BKT[data.mask_BKT].sum())


def test_smoothing_has_the_gradient_of_smoothed_targets_and_the_number_of_the_targets() -> None:
    model, data = translator(smoothing=0.2).train(), batch()
    plain = dataclasses.replace(model.config, smoothing=0.0)
    loss = model.loss(data)
    loss.total.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.config = plain
    torch.testing.assert_close(model.loss(data).total, loss.total)
    model.zero_grad()
    source = model._source(data.source_BS, data.there_BS, torch.float32, 0.0)
    begins = torch.tensor([VOCAB + 1, VOCAB + 2]).expand(3, -1)[..., None]
    inputs_BT = torch.cat([begins, data.targets_BKT[..., :-1]], dim=-1).flatten(0, 1)
    logits = model._hidden(inputs_BT, source, torch.float32, 0.0).flatten(0, 1) @ model.output_weight.T
    keep = data.mask_BKT.reshape(-1)
    targets = data.targets_BKT.reshape(-1)[keep]
    F.cross_entropy(logits[keep], targets, reduction="sum", label_smoothing=0.2).backward()
    for name, p in model.named_parameters():
        torch.testing.assert_close(found[name], p.grad, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(
    "check",
    [
        checks.check_shapes_and_types,
        checks.check_probabilities_sum_to_one,
        checks.check_score_equals_steps,
        checks.check_rows_do_not_matter,
        checks.check_the_future_does_not_leak,
        checks.check_history_is_as_long_as_the_policy_says,
        checks.check_select_commutes_with_advance,
        checks.check_a_selected_state_is_a_copy,
        checks.check_a_spent_state_refuses,
    ],
    ids=lambda check: check.__name__,
)
def test_given_a_source_it_keeps_what_every_language_model_promises(check: checks.Check) -> None:
    check(view(translator()))


def test_all_texts_that_end_and_those_still_open_have_probability_one() -> None:
    torch.manual_seed(0)
    model = Translator(dataclasses.replace(CONFIG, context=4), 2).eval()
    given = model.given(model.encode(torch.tensor([[0, 1, 2]]), torch.ones(1, 3, dtype=torch.bool)), 0)
    end, total = model.end_id, 0.0
    for length in range(4):
        for text in product(range(2), repeat=length):
            ended = length < 3
            tokens = torch.tensor([[*text, end] if ended else text])
            total += float((-given.score(tokens).double().sum()).exp())
    assert total == pytest.approx(1.0, abs=1e-5)


def padded_differently(model: Translator, data: Translations) -> tuple[Tensor, Tensor]:
    """Scores under the mask, of the batch and of the same with other padding on both sides."""
    source_BS = torch.where(data.there_BS, data.source_BS, (data.source_BS + 5) % VOCAB)
    targets_BKT = torch.where(data.mask_BKT, data.targets_BKT, (data.targets_BKT + 3) % VOCAB)
    other = Translations(
        F.pad(source_BS, (0, 3), value=7), F.pad(data.there_BS, (0, 3)), F.pad(targets_BKT, (0, 2), value=9),
        F.pad(data.mask_BKT, (0, 2)),
    )  # fmt: skip
    nats = []
    for one in (data, other):
        source = model.encode(one.source_BS, one.there_BS)
        scores = torch.stack([model.given(source, k).score(one.targets_BKT[:, k]) for k in range(2)], dim=1)
        nats.append(scores[one.mask_BKT])
    return nats[0], nats[1]


def test_padding_changes_nothing_on_either_side() -> None:
    one, other = padded_differently(translator(), batch())
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("where", ["source", "target"])
def test_padding_that_is_attended_is_noticed(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    alone, across = blocks.self_attention, blocks.cross_attention
    if where == "source":
        monkeypatch.setattr(blocks, "self_attention", lambda qkv, there: alone(qkv, torch.ones_like(there)))
    else:
        monkeypatch.setattr(blocks, "cross_attention", lambda q, kv, there: across(q, kv, torch.ones_like(there)))
    one, other = padded_differently(translator(), batch())
    assert float((one - other).abs().max()) > 0.01


def test_a_target_that_leaks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "causal_self_attention", lambda qkv, _: attention.self_attention(qkv, None))
    with pytest.raises(AssertionError, match="change scores before them"):
        checks.check_the_future_does_not_leak(view(translator()))


def test_what_the_encoder_makes_does_not_depend_on_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data, seen = translator(), batch(), []
    hidden = model._hidden
    monkeypatch.setattr(
        model, "_hidden", lambda inputs, source, *rest: seen.append(source) or hidden(inputs, source, *rest)
    )
    for targets_BKT in (data.targets_BKT, (data.targets_BKT + 1) % VOCAB):
        model.loss(dataclasses.replace(data, targets_BKT=targets_BKT))
    assert all(torch.equal(a, b) for a, b in zip(seen[0].kv, seen[1].kv, strict=True))


def test_a_second_language_costs_no_encoder() -> None:
    model, data = translator(), batch()

    def into(*languages: int) -> int:
        def run() -> Tensor:
            source = model.encode(data.source_BS, data.there_BS)
            return torch.stack([model.given(source, k).score(data.targets_BKT[:, k]) for k in languages]).sum()

        return int(counted_as_run(run, backward=False).forward)

    source = model.encode(data.source_BS, data.there_BS)
    reading = int(counted_as_run(lambda: model.encode(data.source_BS, data.there_BS).kv[0], backward=False).forward)
    writing = int(counted_as_run(lambda: model.given(source, 0).score(data.targets_BKT[:, 0]), backward=False).forward)
    assert into(0) == into(1) == reading + writing
    assert into(0, 1) == reading + 2 * writing
    # by formula, in training too: what grows with the number of languages is the decoder's alone
    parts = {
        k: Translator.parts(dataclasses.replace(CONFIG, languages=k), VOCAB, Shape(3, 6, source=5)) for k in (1, 2)
    }
    grown = [b.name for a, b in zip(parts[1], parts[2], strict=True) if b.all_work != a.all_work]
    assert grown == ["decoder attention", "decoder feed-forward", "cross attention", "head"]
    assert work(parts[1]).forward == reading + writing - 0


def test_saving_and_opening_is_exact() -> None:
    model, data = translator(), batch()
    again = Translator.from_tensors(model.config, VOCAB, model.tensors())
    assert torch.equal(again.loss(data).total, model.loss(data).total)


def test_what_does_not_fit_is_one_clear_line() -> None:
    with pytest.raises(Mistake, match="not a multiple of heads"):
        Translator(dataclasses.replace(CONFIG, heads=3), VOCAB)
    model = translator()
    with mistake("sentence-longer-than-context"):
        model.encode(torch.zeros(1, 45, dtype=torch.long), torch.ones(1, 45, dtype=torch.bool))
    given = view(model)
    with pytest.raises(Mistake, match="longer than"):
        given.advance(torch.zeros(1, 40, dtype=torch.long), given.begin(1)[1])
