"""Pairs of a text and of a table: what is real, what is exchanged, what is held out, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lmlab
from lmlab.learn.run import Run
from lmlab.tasks.word_pairs.data import data_of_run
from lmlab.tasks.word_pairs.data import of_text as pairs_of_text
from lmlab.tasks.word_pairs.labelled_pairs import CLASSES, Listed, Neighbouring, keys_of, occurs, read_table
from lmlab.tasks.word_pairs.simpler_ways import Simple
from mistakes import mistake


def test_a_pair_is_called_real_exactly_if_it_occurs() -> None:
    random = np.random.default_rng(0)
    words_B2 = random.integers(0, 12, (60, 2)).astype(np.int32)
    source = Neighbouring(words_B2, np.unique(keys_of(words_B2, 12)), 12)
    drawn = source.draw(random, 4000)
    real = {tuple(pair) for pair in words_B2.tolist()}
    assert [tuple(pair) in real for pair in drawn.words_B2.tolist()] == (
        drawn.labels_B == CLASSES.index("real")
    ).tolist()
    assert 0.5 <= drawn.labels_B.mean() < 0.6


def test_an_exchanged_word_is_drawn_as_often_as_it_occurs_on_that_side() -> None:
    words_B2 = np.array([[0, 5]] * 90 + [[1, 6]] * 10, dtype=np.int32)
    drawn = Neighbouring(words_B2, np.array([-1]), 7).draw(np.random.default_rng(1), 20_000)
    exchanged = drawn.words_B2[drawn.labels_B == 0]
    assert set(exchanged[:, 0]) <= {0, 1}
    assert (exchanged[:, 1] == 5).mean() == pytest.approx(0.9, abs=0.02)


def test_real_pairs_that_are_held_out_do_not_occur_in_the_training_part(of_text: Run) -> None:
    material = data_of_run(of_text).material
    assert isinstance(material.train, Neighbouring)
    size = of_text.tokenizer.vocab_size
    for part in (material.valid, material.test):
        real_B2 = part.words_B2[part.labels_B == CLASSES.index("real")]
        assert len(real_B2)
        assert not occurs(real_B2, material.train.known, size).any()


def test_a_pair_that_is_held_out_is_drawn_once_at_most() -> None:
    words_B2 = np.arange(80, dtype=np.int32).reshape(-1, 2)
    source = Neighbouring(words_B2, np.unique(keys_of(words_B2, 100)), 100)
    drawn = source.draw_once(np.random.default_rng(0), 1000)
    real = drawn.words_B2[drawn.labels_B == CLASSES.index("real")]
    assert sorted(map(tuple, real.tolist())) == list(map(tuple, words_B2.tolist()))
    assert len(drawn) == 80
    fewer = source.draw_once(np.random.default_rng(0), 20)
    assert len(fewer) == 20
    assert len(np.unique(fewer.words_B2[1::2], axis=0)) == 10
    assert len(Neighbouring(words_B2[:0], source.known, 100).draw_once(np.random.default_rng(0), 20)) == 0


def test_a_pair_that_a_table_has_twice_is_learned_or_held_out_and_never_both(of_table: Run) -> None:
    material, size = data_of_run(of_table).material, of_table.tokenizer.vocab_size
    assert isinstance(material.train, Listed)
    parts = [keys_of(pairs.words_B2, size) for pairs in (material.train.pairs, material.valid, material.test)]
    assert sum(map(len, parts)) == 240
    assert sum(len(np.unique(keys)) for keys in parts) == len(np.unique(np.concatenate(parts))) < 240


def test_another_table_says_how_many_of_its_pairs_were_learned(of_table: Run, table: tuple[Path, Path]) -> None:
    assert "of these 240 pairs were learned from" in " ".join(lmlab.evaluate(of_table, table[0]).notes)


def test_pairs_of_another_text_are_none_that_were_learned(of_text: Run, text: Path, tmp_path: Path) -> None:
    material = data_of_run(of_text).material
    assert isinstance(material.train, Neighbouring)
    tokenizer, has_V = of_text.tokenizer, np.ones(of_text.tokenizer.vocab_size, dtype=bool)
    words = text.read_text().split()[:600]
    (tmp_path / "other.txt").write_text(" ".join(np.random.default_rng(7).permutation(words).tolist()))
    other = lmlab.read(tmp_path / "other.txt", split=(100, 0, 0)).train
    pairs = pairs_of_text(other, tokenizer, has_V, material.train.known, 0)
    assert set(pairs.labels_B.tolist()) == {0, 1}
    assert not occurs(pairs.words_B2, material.train.known, tokenizer.vocab_size).any()
    (tmp_path / "learned.txt").write_text(text.read_text()[:300])
    with mistake("text-without-new-pairs"):
        lmlab.evaluate(of_text, tmp_path / "learned.txt")


def test_addition_and_the_linear_map_are_the_best_of_their_kind() -> None:
    random = np.random.default_rng(0)
    x_NX2 = random.normal(size=(500, 8)) * np.arange(1, 9)
    labels_N = (x_NX2[:, 7] > 0).astype(np.int64)
    linear = Simple.fit("linear", x_NX2, labels_N, 3, 2)
    centred = x_NX2 - x_NX2.mean(0)
    least = (np.linalg.svd(centred, compute_uv=False)[3:] ** 2).sum()  # Eckart and Young
    assert ((linear.brought_back(x_NX2) - x_NX2) ** 2).sum() == pytest.approx(least, rel=1e-6)
    assert (linear.probabilities(x_NX2).argmax(1) == labels_N).mean() > 0.95
    added = Simple.fit("addition", x_NX2, labels_N, 3, 2)
    assert added.map_X2F.shape == (8, 4)
    np.testing.assert_allclose(x_NX2 @ added.map_X2F, x_NX2[:, :4] + x_NX2[:, 4:])


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("a\tb\tx\nc\td\n", "line 2: 2 columns"),
        ("a\tb\tx\n\nc d\te\ty\n", "line 3: 'c d' is not one word"),
        ("a\tb\tx\na\tb\t \n", "line 2: the label is empty"),
        ("a\tb\tx\nc\td\tx\n", "one label only, x"),
        ("", "is empty"),
    ],
)
def test_a_bad_line_of_a_table_is_named(lines: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(lines)
    with mistake(says):
        read_table(tmp_path / "pairs.tsv")


def test_what_cannot_be_learned_from_is_refused(table: tuple[Path, Path], text: Path, tmp_path: Path) -> None:
    def says(words: str, data: Path, **changed: object) -> None:
        with mistake(words):
            lmlab.train("autoencoder", data, out=tmp_path / "run", budget="1steps", **changed)  # type: ignore[arg-type]
        assert not (tmp_path / "run").exists()

    says("table-without-vectors", table[0])
    says("combiner-vectors-width", table[0], settings={"vectors": str(table[1]), "width": 5})
    says("none of the", text, settings={"vectors": str(table[1])})
    says("words or words:N", text, tokenizer="bpe:300")
    says("divided by", table[0], test="other.tsv", settings={"vectors": str(table[1])})
    (tmp_path / "short.txt").write_text("one two three\n")
    says("too short", tmp_path / "short.txt")
    (tmp_path / "other.tsv").write_text("w1\tw2\tnew\nw3\tw4\talpha\n")
    run = lmlab.train("autoencoder", table[0], out=tmp_path / "r", budget="1steps", settings={"vectors": str(table[1])})
    with mistake("pair-label-unknown", "line 1"):
        lmlab.evaluate(run, tmp_path / "other.tsv")
