"""A run that was stopped can be used, gets more time, and its weights can learn another text; all of it is written down."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import lmlab
from interrupts import InterruptAt
from lmlab.config import Mistake
from lmlab.learn import loop, validation
from lmlab.learn.checkpoint import load_checkpoint
from lmlab.learn.validation import Validation, ValidationResult
from mistakes import mistake

SETTINGS = {"layers": 1, "width": 32, "heads": 2, "context": 32}
FEW = {"rows": 8}  # of a batch: what is tested here does not need more
OTHER = "wer reitet so spät durch nacht und wind es ist der vater mit seinem kind\n" * 60


def gpt(text: Path, out: Path, budget: str = "40steps", **options: Any) -> Any:
    return lmlab.train("gpt", text, out=out, budget=budget, settings=SETTINGS, **{"learning": FEW} | options)


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> type[InterruptAt]:
    """Ctrl-C is heard at every step."""
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    return InterruptAt


def test_a_stopped_run_is_measured_and_writes_with_its_best_weights_and_says_that_it_is_unfinished(
    small_text: Path, tmp_path: Path, stop_at: type[InterruptAt]
) -> None:
    run = gpt(small_text, tmp_path / "run", watch=stop_at(25))
    assert run.status == "unfinished"
    progress, groups = load_checkpoint(run.checkpoint)
    assert progress.best_step < progress.steps
    opened = lmlab.load(tmp_path / "run")
    assert all(torch.equal(tensor, groups["best"][name]) for name, tensor in opened.model.tensors().items())
    result = lmlab.evaluate(tmp_path / "run")
    assert result.certified
    assert f"is unfinished: these are its best weights so far, of step {progress.best_step}" in result.notes[0]
    assert lmlab.generate(tmp_path / "run", "the", tokens=5)[0].text
    with pytest.raises(Mistake, match="its weights will change"):
        lmlab.compress(small_text, model=run, out=tmp_path / "small.lm")


def test_before_anything_was_validated_the_last_weights_are_used(
    small_text: Path, tmp_path: Path, stop_at: type[InterruptAt]
) -> None:
    run = gpt(small_text, tmp_path / "run", learning={"validations": 1}, watch=stop_at(5))
    _, groups = load_checkpoint(run.checkpoint)
    assert all(torch.equal(tensor, groups["weights"][name]) for name, tensor in run.model.tensors().items())


def test_a_run_that_has_learned_nothing_yet_says_how_to_train_it(small_text: Path, tmp_path: Path) -> None:
    gpt(small_text, tmp_path / "run", budget="2steps")
    path = tmp_path / "run" / "run.json"  # as a kill before the first checkpoint leaves it
    begun = json.loads(path.read_text())
    path.write_text(json.dumps(begun | {"result": {"status": "unfinished"}}))
    with mistake("nothing-learned-yet"):
        lmlab.evaluate(tmp_path / "run")


def test_a_finished_run_that_gets_more_goes_on_from_its_weights_and_gets_better(
    small_text: Path, tmp_path: Path
) -> None:
    first = gpt(small_text, tmp_path / "run", budget="20steps")
    before, lines = lmlab.evaluate(first).bits_per_byte, first.metrics
    more = lmlab.resume(tmp_path / "run", budget="+30steps")
    assert more.status == "finished"
    assert lmlab.evaluate(more).bits_per_byte < before
    assert more.metrics[: len(lines)] == lines
    assert [line["step"] for line in more.metrics][-1] == more.record.result.steps == 50
    (ancestor,) = more.record.training.lineage
    assert (ancestor.run, ancestor.budget, ancestor.steps) == (None, "20steps", 20)
    assert ancestor.sha256 == first.record.model.sha256
    assert lmlab.load(tmp_path / "run").record == more.record
    again = lmlab.resume(more, budget="+10steps")
    assert [a.steps for a in again.record.training.lineage] == [20, 50]


@pytest.mark.parametrize(
    ("curve", "steps"),
    [
        ([2.5, 2.4, 2.5, 2.6, 2.7, 2.8, 2.7, 2.6, 2.5, 2.4, 2.3], 30),  # the rate rises again, and unsettles it
        ([2.5, 2.4, 2.5, 2.6, 2.7, 2.65, 2.66, 2.67, 2.68], 26),  # three that are no better than the best since
        ([2.5, 2.0, 2.1, 2.2, 2.3], 18),  # all below where it began: it learned, and then it learned by heart
        ([2.5, 2.6, 2.7, 2.8, 2.9, 3.0, 3.1, 3.2, 3.3], 24),  # it never comes back
    ],
)
def test_the_rise_that_a_rate_brings_which_rose_again_does_not_end_what_was_added(
    curve: list[float], steps: int, small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of the curve is where it begins; after that it is looked at after every second step."""
    gpt(small_text, tmp_path / "run", budget="10steps", learning={**FEW, "patience": 3, "validations": 10})
    nats = iter(curve)
    plain = Validation.measure
    monkeypatch.setattr(Validation, "measure", lambda self: replace(plain(self), nats=next(nats)))
    more = lmlab.resume(tmp_path / "run", budget="+20steps")
    assert more.record.result.steps == steps
    assert more.record.result.status == ("finished" if steps == 30 else "stopped early")


def test_looks_at_validation_take_their_share_of_what_was_added_alone(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seconds of a long run before would allow any number of them."""
    run = gpt(small_text, tmp_path / "run", budget="0.3s", learning={**FEW, "validations": 1})
    path, before = run.folder / "run.json", len(run.metrics)
    record = json.loads(path.read_text())
    record["result"]["seconds"] = 10_000.0
    path.write_text(json.dumps(record))
    plain = Validation.measure

    def slow(looking: Validation) -> ValidationResult:
        time.sleep(0.07)
        return plain(looking)

    monkeypatch.setattr(Validation, "measure", slow)
    monkeypatch.setattr(validation, "MOST_VALIDATING", 0.1)
    record["training"]["learning"] = {**FEW, "validations": 20}
    path.write_text(json.dumps(record))
    more = lmlab.resume(run.folder, budget="+1s")
    assert len(more.metrics) - before <= 3  # one when most of it is over, and the last


@pytest.mark.parametrize("model", ["gpt", "lstm"])
def test_going_on_for_longer_is_bit_identical_whether_stopped_or_not(
    model: str, small_text: Path, tmp_path: Path, stop_at: type[InterruptAt]
) -> None:
    settings = SETTINGS if model == "gpt" else {"width": 24}
    for name in ("whole", "broken"):
        lmlab.train(model, small_text, out=tmp_path / name, budget="20steps", settings=settings, learning=FEW)
    whole = lmlab.resume(tmp_path / "whole", budget="+24steps")
    broken = lmlab.resume(tmp_path / "broken", budget="+24steps", watch=stop_at(30))
    assert broken.status == "unfinished"
    resumed = lmlab.resume(tmp_path / "broken")
    assert resumed.record.model.sha256 == whole.record.model.sha256
    assert [m["valid_nats_per_token"] for m in resumed.metrics] == [m["valid_nats_per_token"] for m in whole.metrics]


def test_killed_before_its_first_checkpoint_it_goes_on_from_the_weights_it_had(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("whole", "killed"):
        gpt(small_text, tmp_path / name, budget="20steps")
    whole = lmlab.resume(tmp_path / "whole", budget="+10steps")
    with monkeypatch.context() as patch:
        patch.setattr(loop.Trainer, "run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            lmlab.resume(tmp_path / "killed", budget="+10steps")
    assert lmlab.evaluate(tmp_path / "killed").certified  # the weights it had
    assert lmlab.resume(tmp_path / "killed").record.model.sha256 == whole.record.model.sha256


def test_weights_that_validate_worse_than_those_it_began_with_are_not_kept(small_text: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(OTHER)
    quick = {"learning_rate": 0.02, "patience": 20, "calibrate": False}
    first = gpt(small_text, tmp_path / "run", "100steps", learning=quick)
    large = quick | {"learning_rate": 0.1}  # a small first step may be a better one by chance
    worse = lmlab.fine_tune(first, other, valid=small_text, out=tmp_path / "worse", budget="8steps", learning=large)
    assert "which are kept" in worse.record.result.message
    assert all(torch.equal(t, first.model.tensors()[name]) for name, t in worse.model.tensors().items())


def test_an_unfinished_run_that_gets_more_ends_where_the_longer_budget_ends(
    small_text: Path, tmp_path: Path, stop_at: type[InterruptAt]
) -> None:
    gpt(small_text, tmp_path / "run", budget="20steps", watch=stop_at(9))
    with pytest.raises(Mistake, match="give it more steps"):
        lmlab.resume(tmp_path / "run", budget="+10m")
    run = lmlab.resume(tmp_path / "run", budget="+15steps")
    assert (run.record.training.budget, run.record.result.steps) == ("35steps", 35)
    assert run.record.training.lineage == ()


def test_fine_tuning_learns_the_other_text_and_the_record_says_where_it_came_from(
    small_text: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text(OTHER)
    first = gpt(small_text, tmp_path / "first")
    tuned = lmlab.fine_tune(
        tmp_path / "first", other, out=tmp_path / "tuned", budget="20steps", settings={"dropout": 0.1}
    )
    assert lmlab.evaluate(tuned).bits_per_byte < lmlab.evaluate(first, other).bits_per_byte
    (ancestor,) = tuned.record.training.lineage
    assert ancestor.run == str((tmp_path / "first").resolve())
    assert (ancestor.corpus, ancestor.sha256) == ("small", first.record.model.sha256)
    assert tuned.record.result.steps == 20
    assert tuned.tokenizer.hash == first.tokenizer.hash
    assert tuned.record.model.config["dropout"] == 0.1
    longer = lmlab.resume(tuned, budget="+5steps")
    assert [a.run is None for a in longer.record.training.lineage] == [False, True]


def test_what_the_first_weights_learned_from_is_not_held_out_after_fine_tuning(
    small_text: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text(OTHER)
    first = gpt(small_text, tmp_path / "first", budget="2steps")
    tuned = lmlab.fine_tune(first, other, out=tmp_path / "tuned", budget="2steps")
    learned_before = tmp_path / "learned.txt"
    learned_before.write_text(first.corpus.train.text())
    assert "held_out" in lmlab.evaluate(tuned, learned_before).certificate.failures


def test_a_stopped_fine_tuning_ends_with_the_same_bits(
    small_text: Path, tmp_path: Path, stop_at: type[InterruptAt]
) -> None:
    gpt(small_text, tmp_path / "first", budget="10steps")
    whole = lmlab.fine_tune(tmp_path / "first", small_text, out=tmp_path / "whole", budget="20steps", seed=1)
    lmlab.fine_tune(tmp_path / "first", small_text, out=tmp_path / "b", budget="20steps", seed=1, watch=stop_at(9))
    assert lmlab.resume(tmp_path / "b").record.model.sha256 == whole.record.model.sha256


def test_what_cannot_go_on_is_refused_with_what_would_be_right(small_text: Path, tmp_path: Path) -> None:
    counted = lmlab.train("ngram", small_text, out=tmp_path / "ngram")
    with pytest.raises(Mistake, match="more time changes nothing"):
        lmlab.resume(counted, budget="+10m")
    with pytest.raises(Mistake, match="count both texts together"):
        lmlab.fine_tune(counted, small_text, out=tmp_path / "out")
    learned = gpt(small_text, tmp_path / "gpt", budget="2steps")
    with mistake("more-without-plus"):
        lmlab.resume(learned, budget="10m")
    with pytest.raises(Mistake, match="do not fit the weights"):
        lmlab.fine_tune(learned, small_text, out=tmp_path / "out", settings={"width": 64})
    assert not (tmp_path / "out").exists()
