"""The ranking where the truth is known: two seeds of one model are one kind, and what was made worse is never better."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmlab.comparison import Contender
from lmlab.comparison.luck import Luck
from lmlab.comparison.measured_text import first_bytes
from lmlab.comparison.ranking import luck_in_words
from lmlab.learn.train import train
from lmlab.measure import evaluate, rank
from lmlab.text.corpus import Corpus, read

MARKOV = "markov:order=2,alphabet=8,length=1200000,seed=1"
TRIALS = 20
STEPS = 200


def trained(corpus: Corpus, folder: Path, model: str, seed: int = 0, steps: int = STEPS, **settings: Any) -> Contender:
    """One entry of a comparison, trained by steps so that it comes out the same on every machine."""
    out = folder / f"{model}-{seed}-{steps}"
    run = train(model, corpus, out=out, budget=f"{steps}steps", seed=seed, settings=settings)
    result = evaluate(run.model, run.tokenizer, first_bytes(corpus.test, 120_000))
    assert result.certified
    return Contender(model, "char", runs=[run], seed_results=[result], result=result, name=out.name)


def ranks(*entries: Contender) -> list[int]:
    """As a comparison ranks them."""
    luck = Luck.of(entries, 1)
    return rank([e.scored for e in entries], margin=lambda i, j: luck.margin(entries[i], entries[j]))


def mixed_with_guesses(entry: Contender) -> Contender:
    """The same model, but in one place of twenty it guesses uniformly."""
    assert entry.run is not None
    assert entry.result is not None
    given = np.exp(-entry.scored.nats_per_token.astype(np.float64))
    nats = -np.log(0.95 * given + 0.05 / entry.run.tokenizer.vocab_size)
    scored = replace(entry.scored, nats_per_token=nats.astype(np.float32), total_nats=float(nats.sum()))
    return replace(entry, result=replace(entry.result, scored=scored), name="mixed")


@pytest.mark.slow
@pytest.mark.parametrize("text", [MARKOV, "python-docs"], ids=["markov", "prose"])
def test_seeds_share_a_rank_in_most_trials_and_worse_ones_never_win(text: str, tmp_path: Path) -> None:
    corpus = read(text)
    shared = 0
    for trial in range(TRIALS):
        a, b = (trained(corpus, tmp_path, "feedforward", seed) for seed in (2 * trial, 2 * trial + 1))
        shared += len(set(ranks(a, b))) == 1
        for worse in (trained(corpus, tmp_path, "feedforward", 2 * trial, STEPS // 4), mixed_with_guesses(a)):
            first, second = ranks(a, worse)
            assert first <= second
        if corpus.entropy_bits_per_symbol is not None:
            assert a.result is not None
            assert a.result.interval.high is not None
            assert a.result.interval.high >= corpus.entropy_bits_per_symbol
    assert shared >= 0.75 * TRIALS, shared


@pytest.mark.slow
def test_on_a_source_of_order_two_every_context_beats_bag_and_nobody_the_entropy(tmp_path: Path) -> None:
    corpus = read("markov:order=2,alphabet=4,length=600000,seed=3")
    names = ["feedforward", "attention", "rnn", "gru", "lstm", "rnn-attention", "gpt"]
    tiny = {"gpt": {"layers": 2, "width": 64, "context": 64}}
    entries = [trained(corpus, tmp_path, "bag"), trained(corpus, tmp_path, "ngram", order=3)]
    entries += [trained(corpus, tmp_path, name, **tiny.get(name, {})) for name in names]
    found = {e.model: place for e, place in zip(entries, ranks(*entries), strict=True)}
    assert found["ngram"] == 1
    assert all(found[name] < found["bag"] for name in ["ngram", *names]), found
    entropy = corpus.entropy_bits_per_symbol
    assert entropy is not None
    for entry in entries:
        assert entry.result is not None
        assert entry.result.interval.high is not None
        assert entry.result.interval.high >= entropy


@pytest.mark.slow
@pytest.mark.parametrize("text", [MARKOV, "python-docs"], ids=["markov", "prose"])
@pytest.mark.parametrize(("model", "steps"), [("feedforward", 60), ("gru", 120), ("gpt", 120)])
def test_the_estimate_of_luck_from_one_run_is_not_below_what_seeds_show(
    text: str, model: str, steps: int, tmp_path: Path
) -> None:
    """Six seeds know their deviation within about a factor of 1.7 at 95% (χ² with 5 degrees of freedom)."""
    corpus = read(text)
    small: dict[str, Any] = {"gpt": {"layers": 2, "width": 64, "context": 64}, "gru": {"width": 64}}.get(model, {})
    entries = [trained(corpus, tmp_path, model, seed, steps, **small) for seed in range(6)]
    deviation = float(np.std([e.scored.bits_per_byte for e in entries], ddof=1))
    estimates = list(Luck.of(entries, 1).deviations.values())
    assert math.fsum(estimates) / len(estimates) > deviation / 1.7


def test_several_seeds_measure_their_luck_instead_of_estimating_it(tmp_path: Path, small_text: Path) -> None:
    corpus = read(small_text)
    small = {"context": 3, "width": 16, "embedding_width": 8}
    entries = [trained(corpus, tmp_path, "feedforward", seed, 20, **small) for seed in range(3)]
    counted = trained(corpus, tmp_path, "bag")
    bits = [e.scored.bits_per_byte for e in entries]
    whole = replace(entries[0], runs=[e.runs[0] for e in entries], seed_results=[e.seed_results[0] for e in entries])
    nats = float(np.mean([e.scored.total_nats for e in entries]))
    assert whole.result is not None
    whole.result = replace(whole.result, scored=replace(whole.scored, total_nats=nats))
    luck = Luck.of([whole, counted], 3)
    assert luck.deviations == {whole.name: pytest.approx(np.std(bits, ddof=1))}
    assert luck.margin(whole, counted) == pytest.approx(4.3027 * np.std(bits, ddof=1) / math.sqrt(3), rel=1e-4)
    assert luck.margin(counted, counted) == 0.0
    assert "measured here" in luck_in_words(luck.found())


def test_luck_widens_only_what_was_learned(tmp_path: Path, small_text: Path) -> None:
    corpus = read(small_text)
    small = {"context": 3, "width": 16, "embedding_width": 8}
    entries = [trained(corpus, tmp_path, "feedforward", seed, 20, **small) for seed in (0, 1)]
    counted = [trained(corpus, tmp_path, name) for name in ("bag", "uniform")]
    luck = Luck.of([*entries, *counted], 1)
    assert set(luck.deviations) == {e.name for e in entries}
    margins = [luck.margin(a, b) for a, b in itertools.combinations([*counted, entries[0]], 2)]
    assert margins[0] == 0.0
    assert luck.margin(*entries) > margins[1] == margins[2] > 0.0
    assert "estimated" in luck_in_words(luck.found())
    assert luck_in_words(Luck.of(counted, 1).found()) == ""
