"""How sure a model is after it has read a text often: one factor for its logits, fitted on the validation part."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lmlab import resume, train
from lmlab.comparison import compare
from lmlab.comparison.remarks import remarks
from lmlab.config import Budget, TextFacts
from lmlab.interface import Windows
from lmlab.learn.optimizer import Optimizer
from lmlab.models.families.softmax import SoftmaxModel
from lmlab.models.registry import ladder, model_class

VOCABULARY = 12
SOFTMAX = [name for name in ladder() if issubclass(model_class(name), SoftmaxModel)]
LESSON = {"model": "feedforward", "settings": {"context": 6, "width": 64}, "tokenizer": "char"}


def sure_of_nothing(name: str, **settings: object) -> SoftmaxModel:
    """A model with random weights everywhere: its first ones say that all tokens are equally likely."""
    cls = model_class(name)
    facts = TextFacts(train_tokens=5000, train_bytes=5000, vocab_size=VOCABULARY)
    torch.manual_seed(1)
    model: SoftmaxModel = cls(cls.resolve(cls.Config(**settings), facts, Budget(steps=1)), VOCABULARY)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return model.eval()


def windows_that_it_would_write(model: SoftmaxModel, rows: int = 64, length: int = 30) -> Windows:
    """Drawn from the model, so that it is exactly as sure as it is right."""
    generator = torch.Generator().manual_seed(2)
    logp_BV, state = model.begin(rows)
    tokens: list[torch.Tensor] = []
    for _ in range(length):
        tokens.append(torch.multinomial(logp_BV.exp(), 1, generator=generator))
        logp_BV, state = model.advance(tokens[-1], state)
    return Windows(torch.cat(tokens, dim=1))


@pytest.mark.parametrize("name", SOFTMAX)
@pytest.mark.parametrize("too_sure", [1.6, 0.9])
def test_what_was_made_too_sure_or_not_sure_enough_is_as_sure_as_it_was(name: str, too_sure: float) -> None:
    model = sure_of_nothing(name)
    assert model.logits_follow, "every softmax of ours has weights that its logits follow"
    windows = windows_that_it_would_write(model)
    honest_BT = model.score(windows.tokens_BT)
    for weight in model.logits_follow:
        getattr(model, weight).data.mul_(too_sure)
    worse_BT = model.score(windows.tokens_BT)
    factor = model.calibrate([Windows(windows.tokens_BT[:32]), Windows(windows.tokens_BT[32:])])
    assert factor == pytest.approx(1 / too_sure, rel=0.12)
    assert model.score(windows.tokens_BT).mean() < worse_BT.mean()
    assert model.score(windows.tokens_BT).mean() == pytest.approx(float(honest_BT.mean()), rel=0.01)
    assert model.calibrate([windows]) is None, "what is right already stays, to the bit"


def test_tokens_that_are_masked_have_no_say() -> None:
    model = sure_of_nothing("feedforward")
    windows = windows_that_it_would_write(model)
    for weight in model.logits_follow:
        getattr(model, weight).data.mul_(1.6)
    nonsense_BT = torch.randint(VOCABULARY, windows.tokens_BT.shape)
    mask_BT = torch.zeros_like(nonsense_BT, dtype=torch.bool)
    mask_BT[:, :20] = True
    masked = Windows(torch.where(mask_BT, windows.tokens_BT, nonsense_BT), mask_BT)
    assert model.calibrate([masked]) == pytest.approx(1 / 1.6, rel=0.12)


def test_weights_that_are_read_too_stay_as_they_are() -> None:
    model = sure_of_nothing("lstm", tie=True)
    before = {name: p.clone() for name, p in model.named_parameters()}
    assert model.calibrate([Windows(torch.randint(VOCABULARY, (8, 30)))]) is None
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text in which there is nothing to learn but how often its letters come; whoever learns more is too sure."""
    path = tmp_path_factory.mktemp("letters") / "letters.txt"
    path.write_text("".join(random.Random(3).choices("abcde fgh", k=4000)))
    return path


def test_a_text_that_was_read_often_calls_for_it_and_the_run_says_so(letters: Path, tmp_path: Path) -> None:
    run = train(**LESSON, text=letters, budget="40epochs", out=tmp_path / "often", learning={"patience": 1000})  # type: ignore[arg-type]
    assert run.record.result.calibrated is not None
    assert "fitted there" in (run.folder / "page.html").read_text()


def test_a_run_that_goes_on_begins_as_sure_as_it_was_before_and_is_calibrated_anew(
    letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else weights that are calibrated would be held against weights that are not, and nothing would be better than they."""
    run = train(**LESSON, text=letters, budget="40epochs", out=tmp_path / "run", learning={"patience": 1000})  # type: ignore[arg-type]
    before, factor = run.model.tensors(), run.record.result.calibrated
    assert factor is not None
    monkeypatch.setattr(Optimizer, "update", lambda self, factor, steps: torch.tensor(0.0))  # it learns nothing new
    again = resume(run, budget="+1steps")
    assert again.record.training.lineage[-1].calibrated == factor
    assert again.record.result.calibrated == pytest.approx(factor, rel=1e-3)
    assert all(torch.allclose(before[name], t, rtol=1e-4) for name, t in again.model.tensors().items())


def test_a_text_that_was_read_once_does_not(letters: Path, tmp_path: Path) -> None:
    run = train(**LESSON, text=letters, budget="1epochs", out=tmp_path / "once")  # type: ignore[arg-type]
    assert run.record.result.calibrated is None
    assert run.record.result.calibration_note == ""


def test_without_a_validation_part_there_is_nothing_to_fit_it_on(letters: Path, tmp_path: Path) -> None:
    run = train(**LESSON, text=letters, budget="40epochs", out=tmp_path / "blind", split=(90, 0, 10))  # type: ignore[arg-type]
    assert run.record.result.calibrated is None


def test_a_comparison_names_those_it_was_done_to(letters: Path, tmp_path: Path) -> None:
    settings = {"feedforward": LESSON["settings"]}
    found = compare(letters, models=["feedforward"], each="30steps", out=tmp_path / "out", settings=settings).findings  # type: ignore[arg-type]
    (entry,) = found.entries
    assert entry.training is not None
    too_sure = replace(entry, training=replace(entry.training, calibrated=0.812))
    as_it_was = replace(entry, training=replace(entry.training, calibrated=None))
    assert "feedforward (0.81)" in " ".join(remarks(replace(found, entries=(too_sure,))))
    assert "logits" not in " ".join(remarks(replace(found, entries=(as_it_was,))))
