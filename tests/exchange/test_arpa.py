"""ARPA export, read back by KenLM, which we did not write."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmlab.exchange.arpa import arpa_words, write_arpa
from lmlab.models.ngram import NGram
from lmlab.text.pieces import Vocabulary
from lmlab.text.stream import TokenStream

kenlm = pytest.importorskip("kenlm")


def fit(vocabulary: Vocabulary, tokens: Sequence[str], **settings: object) -> NGram:
    ids = np.array([vocabulary.pieces.index(t) for t in tokens], dtype=np.uint32)
    train = TokenStream(ids=ids, starts=np.array([0, len(ids)]), bytes=0, chars=0, words=0)
    return NGram.fit(NGram.Config(**settings), vocabulary, train)


def lines(text: str) -> list[str]:
    return [token for line in text.splitlines() for token in (*line.split(), "\n")]


def read_by_kenlm(model: NGram, vocabulary: Vocabulary, path: Path) -> Any:
    write_arpa(model, vocabulary, path)
    config = kenlm.Config()
    config.show_progress = False
    return kenlm.Model(str(path), config)


def log10_scores(model: NGram, ids: Sequence[int]) -> list[float]:
    return (-model.score(torch.tensor([list(ids)]))[0].double() / math.log(10)).tolist()


POEM = """the owl and the pussy cat went to sea
in a beautiful pea green boat
they took some honey and plenty of money
wrapped up in a five pound note
the owl looked up to the stars above
and sang to a small guitar
o lovely pussy o pussy my love
what a beautiful pussy you are
you are you are
what a beautiful pussy you are"""


@pytest.mark.parametrize(
    ("order", "how"),
    [
        (2, {}),
        (3, {}),
        (5, {}),
        (3, {"prune": 1}),
        (3, {"smoothing": "absolute"}),
        (4, {"smoothing": "witten-bell", "prune": 1}),
    ],
)
def test_kenlm_reads_the_same_log_probabilities(order: int, how: dict[str, Any], tmp_path: Path) -> None:
    tokens = lines(POEM)
    vocabulary = Vocabulary(sorted(set(tokens)), words=True)
    model = fit(vocabulary, tokens, order=order, **how)
    reader = read_by_kenlm(model, vocabulary, tmp_path / "poem.arpa")
    assert reader.order == order
    for sentence in ["the owl sang to the sea", "you are a beautiful boat", "boat boat", "", POEM.splitlines()[0]]:
        wanted = log10_scores(model, [vocabulary.pieces.index(t) for t in (*sentence.split(), "\n")])
        got = [score for score, _, _ in reader.full_scores(sentence, bos=True, eos=True)]
        assert got == pytest.approx(wanted, abs=1e-5)


def test_characters_without_restarts_are_read_the_same(tmp_path: Path) -> None:
    text = POEM + "\ttab \\ backslash\u00a0\u2028 <s> </s>"
    vocabulary = Vocabulary(sorted(set(text)))
    model = fit(vocabulary, text, order=4)
    reader = read_by_kenlm(model, vocabulary, tmp_path / "characters.arpa")
    words = arpa_words(model, vocabulary)
    assert len(set(words)) == len(words)
    assert not any(c.isspace() for word in words for c in word)
    ids = [vocabulary.pieces.index(c) for c in "to sea\n\tin \\ a\u00a0\u2028boat"]
    got = [score for score, _, _ in reader.full_scores(" ".join(words[i] for i in ids), bos=True, eos=False)]
    assert got == pytest.approx(log10_scores(model, ids), abs=1e-5)


def test_the_unknown_symbol_is_kenlms_unknown_word(tmp_path: Path) -> None:
    tokens = lines(POEM.replace("owl", "?").replace("guitar", "?"))
    vocabulary = Vocabulary(["?", *sorted(set(tokens) - {"?"})], words=True, unknown_id=0)
    model = fit(vocabulary, tokens, order=3)
    reader = read_by_kenlm(model, vocabulary, tmp_path / "unknown.arpa")
    wanted = log10_scores(model, [vocabulary.pieces.index(t) for t in ("the", "?", "sang", "\n")])
    scores = list(reader.full_scores("the nightingale sang", bos=True, eos=True))
    assert [score for score, _, _ in scores] == pytest.approx(wanted, abs=1e-5)
    assert [is_unknown for _, _, is_unknown in scores] == [False, True, False, False]


def test_pieces_that_look_alike_or_like_symbols_keep_their_own_names() -> None:
    odd = ["<s>", "</s>", "<unk>", "\ufffd", "\ufffd", "\\", "", "a b", "cities\\/abc", "\n", "\n\n"]
    vocabulary = Vocabulary(odd)
    model = fit(vocabulary, ["a b", "\n"], order=2)
    words = arpa_words(model, vocabulary)
    assert words[:3] == ["\\<s>", "\\</s>", "\\<unk>"]
    assert words[3:] == ["\ufffd", "\ufffd\\#4", "\\", "\\e", "a\\x20b", "cities\\/abc", "\\x0a", "\\x0a\\x0a"]


def test_maximum_likelihood_is_written_with_the_formats_zero(tmp_path: Path) -> None:
    tokens = lines("a b\na b\na c")
    vocabulary = Vocabulary([*sorted(set(tokens)), "never"], words=True)
    model = fit(vocabulary, tokens, order=2, smoothing="ml")
    reader = read_by_kenlm(model, vocabulary, tmp_path / "ml.arpa")
    seen = [score for score, _, _ in reader.full_scores("a b")]
    assert seen == pytest.approx([0, math.log10(2 / 3), 0], abs=1e-6)
    assert next(reader.full_scores("never"))[0] <= -99


@pytest.mark.parametrize("unknown", [None, 0])
def test_the_header_counts_what_is_written(unknown: int | None, tmp_path: Path) -> None:
    tokens = lines("a b\na b\na c")
    vocabulary = Vocabulary(["?", *sorted(set(tokens))], words=True, unknown_id=unknown)
    write_arpa(fit(vocabulary, tokens, order=2), vocabulary, tmp_path / "x.arpa")
    header, *orders = (tmp_path / "x.arpa").read_text().split("-grams:\n")
    said = [int(line.partition("=")[2]) for line in header.splitlines() if line.startswith("ngram ")]
    assert said == [sum("\t" in line for line in order.splitlines()) for order in orders]


def test_add_k_cannot_be_written(tmp_path: Path) -> None:
    tokens = lines("a b")
    vocabulary = Vocabulary(sorted(set(tokens)), words=True)
    model = fit(vocabulary, tokens, order=2, smoothing="add-k")
    with pytest.raises(ValueError, match="kneser-ney"):
        write_arpa(model, vocabulary, tmp_path / "x.arpa")


def test_kenlm_scores_penn_treebank_sentences_the_same(tmp_path: Path) -> None:
    folder = os.environ.get("LMLAB_BENCH_DATA")
    if not folder:
        pytest.skip("LMLAB_BENCH_DATA is not set: the real texts are not here")
    train, test = (lines(Path(folder, "ptb", f"ptb.{part}.txt").read_text("utf-8")) for part in ("valid", "test"))
    vocabulary = Vocabulary(["<unk>", *sorted({*train, *test} - {"<unk>"})], words=True, unknown_id=0)
    ids = {word: i for i, word in enumerate(vocabulary.pieces)}
    stream_ids = np.array([ids[t] for t in train], dtype=np.uint16)
    stream = TokenStream(ids=stream_ids, starts=np.array([0, len(stream_ids)]), bytes=0, chars=0, words=0)
    model = NGram.fit(NGram.Config(order=5), vocabulary, stream)
    reader = read_by_kenlm(model, vocabulary, tmp_path / "ptb.arpa")
    wanted = np.array(log10_scores(model, [ids[t] for t in test]))
    sentences = " ".join(test).replace(" \n ", "\n").rstrip().split("\n")
    got = np.array([score for line in sentences for score, _, _ in reader.full_scores(line.strip())])
    assert len(got) == len(wanted)
    assert np.abs(got - wanted).max() < 2e-5
