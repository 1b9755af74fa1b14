"""The Markov source: its entropy is exact, and its text follows its probabilities."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lmlab.text.corpus import read
from lmlab.text.markov import SYMBOLS, MarkovSpec, generate, markov_entropy, stationary, transitions


def text_of(spec: MarkovSpec) -> str:
    return b"".join(generate(spec)).decode()


@pytest.mark.parametrize(("order", "alphabet"), [(0, 4), (1, 2), (1, 5), (2, 4), (3, 3)])
def test_entropy_is_that_of_the_eigenvector(order: int, alphabet: int) -> None:
    spec = MarkovSpec(order=order, alphabet=alphabet, seed=3)
    p_SA = transitions(spec)
    contexts = list(itertools.product(range(alphabet), repeat=order))
    matrix = np.zeros((len(contexts), len(contexts)))
    for s, context in enumerate(contexts):
        for letter in range(alphabet):
            matrix[s, contexts.index((*context, letter)[1:] if order else ())] += p_SA[s, letter]
    values, vectors = np.linalg.eig(matrix.T)
    pi_S = np.real(vectors[:, np.argmax(np.real(values))])
    pi_S /= pi_S.sum()
    assert stationary(p_SA) == pytest.approx(pi_S, abs=1e-12)
    brute = -sum(pi_S[s] * p * math.log2(p) for s in range(len(contexts)) for p in p_SA[s])
    assert markov_entropy(spec) == pytest.approx(brute, abs=1e-12)


def test_entropy_is_the_limit_of_block_entropies() -> None:
    """H(n + 1 letters) - H(n letters), over all strings, is the entropy rate once n reaches the order."""
    spec = MarkovSpec(order=2, alphabet=3, seed=1)
    p_SA = transitions(spec)
    pi_S = stationary(p_SA)

    def block_entropy(n: int) -> float:
        total = 0.0
        for letters in itertools.product(range(3), repeat=n):
            p = pi_S[letters[0] * 3 + letters[1]]
            for i in range(2, n):
                p *= p_SA[letters[i - 2] * 3 + letters[i - 1], letters[i]]
            total -= p * math.log2(p)
        return total

    for n in (2, 3, 5):
        assert block_entropy(n + 1) - block_entropy(n) == pytest.approx(markov_entropy(spec), abs=1e-10)


def test_the_text_has_the_entropy_it_should() -> None:
    spec = MarkovSpec(order=2, alphabet=4, length=400_000, seed=0)
    letters = np.array([SYMBOLS.index(c) for c in text_of(spec)])
    context = letters[:-2] * 4 + letters[1:-1]
    nats = -np.log2(transitions(spec)[context, letters[2:]])
    error = nats.std() / math.sqrt(len(nats))
    assert abs(nats.mean() - markov_entropy(spec)) < 4 * error
    counts = np.bincount(context * 4 + letters[2:], minlength=64).reshape(16, 4)
    plugged_in = -(counts / counts.sum() * np.log2(counts / counts.sum(axis=1, keepdims=True))).sum()
    assert abs(plugged_in - markov_entropy(spec)) < 0.005


def test_the_seed_decides_everything_and_the_text_never_changes() -> None:
    spec = MarkovSpec(length=60)
    assert text_of(spec) == text_of(spec)
    assert text_of(MarkovSpec(length=60, seed=1)) != text_of(spec)
    assert text_of(MarkovSpec(length=70_000))[:60] == text_of(spec)
    assert text_of(spec) == "dbccbbcaccdbabadabbddddcbbdccacbbdbaabbdcbbdabdbaabbdaccdabb"


@pytest.mark.parametrize("length", [1, 2, 3, 65_535, 65_538, 65_539])
def test_the_text_has_exactly_its_length(length: int) -> None:
    assert len(text_of(MarkovSpec(order=3, length=length))) == length


def test_names_carry_options() -> None:
    assert MarkovSpec.parse("markov") == MarkovSpec()
    assert MarkovSpec.parse("markov:order=1,alphabet=26") == MarkovSpec(order=1, alphabet=26)
    spec = MarkovSpec(order=3, seed=9)
    assert MarkovSpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("markov:ordr=2", "did you mean 'order'"),
        ("markov:order=two", "whole number"),
        ("markov:alphabet=1", "alphabet of 2 to 62"),
        ("markov:order=30", "contexts"),
        ("markov:length=0", "length"),
        ("markov:order", "key=value"),
    ],
)
def test_bad_options_say_what_would_be_right(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MarkovSpec.parse(name)


def test_a_markov_corpus_knows_its_entropy(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path))
    corpus = read("markov:length=5000,seed=4")
    assert corpus.entropy_bits_per_symbol == markov_entropy("markov:seed=4")
    assert corpus.train.chars == corpus.train.bytes
    (tmp_path / "file.txt").write_text("some text, long enough to be split")
    assert read(tmp_path / "file.txt").entropy_bits_per_symbol is None
