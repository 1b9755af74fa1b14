"""Planted changes, each of which golden values must catch: in every kind's pass, the sampler, intervals, costs and formats."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import golden_models
import golden_records
import golden_uses
import numpy as np
import pytest
import torch
from golden_groups import GROUPS
from golden_places import Place, brought, replace_in_texts
from golden_values import plain

import lmlab
from lmlab.compression import file_format
from lmlab.engine import sampling
from lmlab.learn.record import Record
from lmlab.measure import certificate, interval
from lmlab.measure.result import Result
from lmlab.models import mix
from lmlab.models.registry import Way, model_class
from lmlab.text import splitting
from lmlab.text.tokenizers import Tokenizer

BY_NAME = {group.name: group for group in GROUPS}
SCALE = 1 + 1e-3
# Ten steps hardly depend on the largest tensor of these: its numbers begin near 0. Their change is ten times as large.
COARSE, COARSE_KINDS = 1 + 1e-2, ("gru", "dan", "glove")
COUNTED_CASES = ("uniform", "bag", "ngram 5")


def moved(group: str, case: str, place: Place) -> list[str]:
    """What a golden group says of a case now."""
    golden_uses.evaluated.cache_clear()  # each is of the code as it was
    golden_records.compared.cache_clear()
    try:
        return BY_NAME[group].moved(BY_NAME[group].golden()[case], plain(BY_NAME[group].measure(case, place)))
    finally:
        golden_uses.evaluated.cache_clear()
        golden_records.compared.cache_clear()


@contextmanager
def scaled(tensor: torch.Tensor, scale: float) -> Iterator[None]:
    """Used as if it were a little larger; `data`, because autograd need not know."""
    before = tensor.data.clone()
    tensor.data.mul_(scale)
    try:
        yield
    finally:
        tensor.data.copy_(before)


def plant(cls: Any, which: Callable[[Any], torch.Tensor], scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loss and score of a class uses one of its tensors scaled."""
    for name in ("loss", "loss_carried", "score"):
        if honest := getattr(cls, name, None):

            def planted(self: Any, *given: Any, honest: Any = honest, **named: Any) -> Any:
                with scaled(which(self), scale):
                    return honest(self, *given, **named)

            monkeypatch.setattr(cls, name, functools.wraps(honest)(planted))


def largest(model: Any) -> torch.Tensor:
    """The largest tensor that learns; of glove a bias, since products of its first vectors are next to nothing."""
    if hasattr(model, "word_bias_V"):
        return model.word_bias_V
    return max((p for p in model.parameters() if p.requires_grad), key=lambda p: p.numel())


def first_kinds() -> list[str]:
    """One case of every kind that learns."""
    found: dict[str, str] = {}
    for case in golden_models.LEARNED:
        found.setdefault(golden_models.kind(case), case)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("case", first_kinds())
def test_a_tensor_used_a_little_larger_is_seen_in_ten_steps(
    case: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = COARSE if case in COARSE_KINDS else SCALE
    plant(model_class(golden_models.kind(case)), largest, scale, monkeypatch)
    assert moved("learned", case, place)


@pytest.mark.parametrize("case", [case for case in golden_uses.LANGUAGE_MODELS if case.split()[0] != "gpt-stopped"])
def test_scores_a_thousandth_larger_are_seen_of_kept_weights(
    case: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    cls: Any = type(lmlab.load(place.run(case.split()[0])).model)
    for name in ("score", "score_with_confidence"):
        if honest := getattr(cls, name, None):

            def planted(self: Any, *given: Any, honest: Any = honest) -> Any:
                found = honest(self, *given)
                return (found[0] * SCALE, *found[1:]) if isinstance(found, tuple) else found * SCALE

            monkeypatch.setattr(cls, name, planted)
    assert moved("scores", case, place)


@pytest.mark.parametrize("case", COUNTED_CASES)
def test_what_counts_and_says_a_little_more_than_it_counted_is_seen(
    case: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    cls: Any = model_class(golden_models.kind(case))
    honest = cls.score
    monkeypatch.setattr(cls, "score", lambda self, tokens_BT: honest(self, tokens_BT) + 1e-4)
    assert moved("counted", case, place)


def test_a_mix_that_adapts_faster_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mix, "RATE", mix.RATE * 3)
    assert moved("scores", "mix-gate adapts", place)
    assert not moved("scores", "mix-gate", place)


def test_a_nucleus_without_its_last_token_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = sampling._top_p

    def one_less(p_K: Any, top_p: float) -> Any:
        found = honest(p_K, top_p)
        return found[:-1] if len(found) > 1 else found

    monkeypatch.setattr(sampling, "_top_p", one_less)
    assert any(moved("generated", f"{run} sample top_p", place) for run in golden_uses.GENERATING[:4])
    assert not moved("generated", "ngram-char sample top_k", place)


def test_another_stream_of_luck_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = np.random.Generator.random
    shifted = type("Shifted", (), {"random": lambda self: 0.999 * honest(self.luck)})

    def draw(choices: Any, generator: Any, honest_draw: Any = sampling.draw) -> int:
        wrapped = shifted()
        wrapped.luck = generator
        return honest_draw(choices, wrapped)

    for module in (sampling, *_users_of(sampling.draw)):
        monkeypatch.setattr(module, "draw", draw)
    assert any(moved("generated", f"{run} sample", place) for run in golden_uses.GENERATING)


def _users_of(function: Any) -> list[Any]:
    """Modules of the lab that imported it by its name."""
    import sys

    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("lmlab") and vars(module).get(function.__name__) is function
    ]


@pytest.mark.parametrize("case", ["ngram-words of one file", "gpt-char of documents"])
def test_an_interval_a_hundredth_wider_is_seen_and_by_its_own_group(
    case: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = interval.margins
    monkeypatch.setattr(interval, "margins", lambda found, table_nP, level: COARSE * honest(found, table_nP, level))
    assert moved("intervals", case, place)
    assert not moved("measured", case.split()[0], place)


def test_a_check_left_out_of_the_certificate_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = certificate.certify

    def without_one(*given: Any, **named: Any) -> Any:
        whole = honest(*given, **named)
        return dataclasses.replace(whole, checks=tuple(c for c in whole.checks if c.name != "causal"))

    for module in (certificate, *_users_of(honest)):
        monkeypatch.setattr(module, "certify", without_one)
    assert moved("certificates", "ngram-words", place) == ["/causal: True -> 'nothing'"]


def test_another_division_of_one_file_is_seen_and_touches_nothing_else(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = splitting.deal_blocks
    monkeypatch.setattr(splitting, "deal_blocks", lambda documents, shares: honest(documents, [*shares[1:], shares[0]]))
    assert moved("splits", "one file", place)
    assert not moved("splits", "many documents", place)
    assert not moved("splits", "parts by name", place)
    assert not moved("measured", "ngram-words", place)


def test_a_byte_of_the_compressed_format_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "VERSION", file_format.VERSION + 1)
    assert moved("compressed", "ngram-char", place)


def test_a_formula_of_costs_that_is_off_by_one_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmlab.costs.counting import Count

    honest = Count.to_json
    monkeypatch.setattr(Count, "to_json", lambda self: honest(self) | {"forward": (honest(self)["forward"] or 0) + 1})
    assert moved("costs", "gpt", place)


def test_a_tokenizer_that_numbers_otherwise_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Tokenizer.encode

    def turned(self: Tokenizer, text: str) -> Any:
        found = honest(self, text)
        return found._replace(ids=found.ids[::-1])

    monkeypatch.setattr(Tokenizer, "encode", turned)
    assert moved("tokens", "words:40", place)


@pytest.mark.parametrize(
    ("cls", "old", "new", "case"),
    [(Record, "training", "trained", "train bag"), (Result, "bits_per_byte", "bpb", "eval")],
)
def test_a_renamed_key_of_a_document_is_seen(
    cls: Any, old: str, new: str, case: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = cls.to_json
    monkeypatch.setattr(
        cls, "to_json", lambda self: {new if key == old else key: value for key, value in honest(self).items()}
    )
    assert any(line.startswith(f"/.{old}") and "nothing" in line for line in moved("documents", case, place))


def test_a_key_that_is_added_to_a_document_is_welcome(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Result.to_json
    monkeypatch.setattr(Result, "to_json", lambda self: honest(self) | {"more": 1})
    assert not moved("documents", "eval", place)


@pytest.mark.parametrize(
    ("old", "new"), [('"width"', '"breadth"'), ('"format": 2', '"format": 3'), ('"budget"', '"time"')]
)
def test_a_kept_run_does_not_open_where_its_format_is_read_otherwise(old: str, new: str, tmp_path: Path) -> None:
    """The kept files are what they were, so a reader that looks for another key fails on them as on these."""
    folder = brought(tmp_path / "golden", ("gpt-words", "texts"))
    replace_in_texts(folder / "gpt-words", old, new)
    with pytest.raises(ValueError, match=r"config\.json|has no setting"):
        lmlab.score(lmlab.load(folder / "gpt-words"), "The cat", device="cpu")


def test_every_way_to_learn_has_a_planted_change() -> None:
    assert {golden_models.kind(case) for case in first_kinds()} == golden_models.kinds(Way.LEARNS)
    assert {golden_models.kind(case) for case in COUNTED_CASES} == golden_models.kinds(Way.COUNTS)
