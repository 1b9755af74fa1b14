"""The ranking where the truth is known: two seeds of one model are one kind, and what was made worse is never better."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmlab.comparison import ComparedEntry
from lmlab.comparison.compared_entry import mean_result
from lmlab.comparison.seed_variance import SeedVariance
from lmlab.learn.run import Run
from lmlab.learn.train import train
from lmlab.measure import Result, Spread, evaluate, rank, spread
from lmlab.text.corpus import Corpus, read

MARKOV = "markov:order=2,alphabet=8,length=1200000,seed=1"
TRIALS = 8
STEPS = 200


def trained(
    corpus: Corpus, folder: Path, model: str, seed: int = 0, steps: int = STEPS, **settings: Any
) -> ComparedEntry:
    """One entry of a comparison, trained by steps so that it comes out the same on every machine."""
    out = folder / f"{model}-{seed}-{steps}"
    run = train(model, corpus, out=out, budget=f"{steps}steps", seed=seed, settings=settings)
    result = evaluate(run.model, run.tokenizer, spread(corpus.test, 120_000))
    assert result.certificate.failures == []
    return of_results(model, out.name, [run], [result], spread(corpus.test, 120_000))


def of_results(model: str, name: str, runs: list[Run], results: list[Result], text: Spread) -> ComparedEntry:
    """An entry without records."""
    entry = ComparedEntry(name=name, model=model, tokenizer="char", stores=(), text=text)
    entry.__dict__.update(runs=runs, seed_results=results, result=mean_result(results))
    return entry


def ranks(*entries: ComparedEntry) -> list[int]:
    """As a comparison ranks them."""
    seeds = max(len(e.runs) for e in entries)
    return rank([e.scored for e in entries], luck=SeedVariance.of(entries, seeds).training)


def mixed_with_guesses(entry: ComparedEntry) -> ComparedEntry:
    """The same model, but in one place of twenty it guesses uniformly."""
    assert entry.run is not None
    assert entry.result is not None
    given = np.exp(-entry.scored.nats_per_token.astype(np.float64))
    nats = -np.log(0.95 * given + 0.05 / entry.run.tokenizer.vocab_size)
    scored = replace(entry.scored, nats_per_token=nats.astype(np.float32), total_nats=float(nats.sum()))
    worse = replace(entry.result, scored=scored)
    return of_results(entry.model, "mixed", entry.runs, [worse], entry.text)


@pytest.mark.slow
@pytest.mark.parametrize("text", [MARKOV, "python-docs"], ids=["markov", "prose"])
def test_two_threesomes_of_seeds_share_a_rank_in_most_trials_and_worse_ones_never_win(
    text: str, tmp_path: Path
) -> None:
    corpus = read(text)
    shared = 0
    for trial in range(TRIALS):
        six = [trained(corpus, tmp_path, "feedforward", seed) for seed in range(6 * trial, 6 * trial + 6)]
        shared += len(set(ranks(as_mean(six[:3]), as_mean(six[3:])))) == 1
        a = six[0]
        for worse in (trained(corpus, tmp_path, "feedforward", 6 * trial, STEPS // 4), mixed_with_guesses(a)):
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


def as_mean(entries: list[ComparedEntry]) -> ComparedEntry:
    """Several seeds of one kind as one entry."""
    results = [e.seed_results[0] for e in entries]
    runs = [e.runs[0] for e in entries]
    return of_results(entries[0].model, entries[0].name, runs, results, entries[0].text)


def test_several_seeds_measure_their_variance(tmp_path: Path, small_text: Path) -> None:
    corpus = read(small_text)
    small = {"context": 3, "width": 16, "embedding_width": 8}
    entries = [trained(corpus, tmp_path, "feedforward", seed, 20, **small) for seed in range(3)]
    counted = trained(corpus, tmp_path, "bag")
    deviation = float(np.std([e.scored.bits_per_byte for e in entries], ddof=1))
    whole = as_mean(entries)
    variance = SeedVariance.of([whole, counted], 3)
    assert variance.deviations == {whole.name: pytest.approx(deviation)}
    assert variance.training.errors == pytest.approx((deviation / math.sqrt(3), 0.0))
    assert variance.training.freedom == 2
    assert "measured here" in variance.found().sentence


def test_one_seed_makes_no_claim_about_kinds(tmp_path: Path, small_text: Path) -> None:
    corpus = read(small_text)
    small = {"context": 3, "width": 16, "embedding_width": 8}
    entries = [trained(corpus, tmp_path, "feedforward", seed, 20, **small) for seed in (0, 1)]
    counted = [trained(corpus, tmp_path, name) for name in ("bag", "uniform")]
    variance = SeedVariance.of([*entries, *counted], 1)
    assert not variance.training.known
    assert variance.deviations == {}
    assert "trained once" in variance.found().sentence
    assert SeedVariance.of(counted, 1).found().sentence == ""
