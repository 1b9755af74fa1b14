"""Surprisal of a text: the bits that `eval` and `score` count, what was expected, and several models side by side."""

from __future__ import annotations

import json
import math
import random
import xml.etree.ElementTree
from pathlib import Path

import pytest
import torch

import lmlab
from command_line import Lmlab, done
from lmlab.config import Mistake
from lmlab.inside.surprisal import FAVOURITES
from mistakes import mistake

SENTENCE = "the cat sat on the naïve log & <b>\n"
NEURAL = ("gpt", "lstm", "attention")


@pytest.mark.parametrize("name", ["ngram", *NEURAL, "words", "byte"])
def test_the_total_is_that_of_eval_and_score(runs: dict[str, Path], name: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(SENTENCE)
    (reading,) = lmlab.explain(runs[name], SENTENCE).readings
    measured = lmlab.evaluate(runs[name], tmp_path / "text.txt")
    assert reading.bits_per_byte == measured.bits_per_byte  # type: ignore[union-attr]
    assert reading.bits == pytest.approx(lmlab.score(runs[name], SENTENCE).bits, rel=1e-6)
    assert math.fsum(token.bits for token in reading.tokens) == pytest.approx(reading.bits, rel=1e-6)
    assert b"".join(SENTENCE.encode()[t.start : t.end] for t in reading.tokens) == SENTENCE.encode()


@pytest.mark.parametrize("name", ["ngram", *NEURAL])
def test_what_was_expected_is_what_the_model_says_next(runs: dict[str, Path], name: str) -> None:
    run = lmlab.load(runs[name])
    reading = lmlab.explain(run, "the cat sat on").readings[0]
    ids = torch.from_numpy(run.tokenizer.encode("the cat").ids.astype("int64"))[None]
    model = run.load("cpu")
    logp_V = model.advance(ids, model.begin(1)[1])[0][0]
    token = reading.tokens[ids.shape[1]]
    best = logp_V.topk(FAVOURITES)
    assert [piece for piece, _ in token.favourites] == [run.tokenizer.piece(i) for i in best.indices.tolist()]
    assert [p for _, p in token.favourites] == pytest.approx(best.values.exp().tolist(), rel=1e-4)
    p_V = logp_V.double().exp()
    assert token.entropy == pytest.approx(float(-(p_V * p_V.log2()).sum()), rel=1e-4)
    space = int(run.tokenizer.encode(" ").ids[0])
    assert token.bits == pytest.approx(-float(logp_V[space]) / math.log(2), rel=1e-4)
    assert token.rank == 1 + int((logp_V > logp_V[space]).sum())


def test_the_order_is_that_of_the_longest_counted_ngram(runs: dict[str, Path]) -> None:
    training = lmlab.load(runs["ngram"]).corpus.train.text()
    text = "the cat xq dogs"
    for place, token in enumerate(lmlab.explain(runs["ngram"], text).readings[0].tokens):
        seen = [n for n in (2, 3) if n <= place + 1 and text[place + 1 - n : place + 1] in training]
        if place > 2:  # before that the beginning of the text is part of the n-gram
            assert token.order == max([1, *seen])


def test_models_of_different_tokens_are_aligned_on_whole_tokens_of_all(runs: dict[str, Path]) -> None:
    found = lmlab.explain([runs["words"], runs["ngram"], runs["byte"]], SENTENCE)
    assert "".join(span.text for span in found.spans) == SENTENCE
    for index, reading in enumerate(found.readings):
        assert math.fsum(span.bits[index] for span in found.spans) == pytest.approx(reading.bits, rel=1e-6)
    assert len(found.spans) <= len(found.readings[0].tokens)
    assert len(lmlab.explain([runs["ngram"], runs["byte"]], SENTENCE).spans) == len(SENTENCE)


def test_a_text_longer_than_the_context_says_how_windows_are_cut(runs: dict[str, Path]) -> None:
    reading = lmlab.explain(runs["gpt"], "the cat sat on the mat").readings[0]
    assert reading.windows == (8, 12, 16, 20)
    assert "new windows were read from token 8, 12, 16, 20 on" in reading.note
    assert "at most the last 2 tokens" in lmlab.explain(runs["ngram"], "the cat").readings[0].note
    assert lmlab.explain(runs["lstm"], "the cat sat on the mat").readings[0].note == ""


def test_without_a_text_a_piece_of_the_test_part_is_read(runs: dict[str, Path]) -> None:
    found = lmlab.explain(runs["ngram"])
    assert found.text in lmlab.load(runs["ngram"]).corpus.test.text()
    assert found.name.startswith("the test part of")


def test_a_text_that_was_learned_from_is_marked(tmp_path: Path) -> None:
    words = random.Random(0).choices([a + b + c for a in "bcdfg" for b in "aeiou" for c in "lmnrst"], k=4000)
    run = lmlab.train("ngram", " ".join(words) + "\n", out=tmp_path / "run", settings={"order": 3})
    assert lmlab.explain(run, run.corpus.train.text()[:3000]).readings[0].held_out == "not held out"
    assert lmlab.explain(run, run.corpus.test.text()[:1000]).readings[0].held_out == "held out"


def test_what_cannot_be_explained_is_said_in_one_line(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="the text is empty"):
        lmlab.explain(runs["ngram"], "")
    with mistake("passage-too-long"):
        lmlab.explain(runs["ngram"], "x" * 40_001)
    with pytest.raises(Mistake, match="name a run"):
        lmlab.explain([], "text")
    old = tmp_path / "old"
    old.mkdir()
    (old / "run.json").write_text('{"format": 0}')
    with mistake("record-of-another-version"):
        lmlab.explain(old, "text")


def test_the_command_shows_and_writes_json(runs: dict[str, Path], lmlab: Lmlab) -> None:
    code, out, _ = lmlab("explain", runs["ngram"], runs["words"], "the cat", "--json")
    document = json.loads(out)
    assert code == 0
    assert [span["text"] for span in document["spans"]] == ["the", " cat"]
    assert document["readings"][0]["tokens"][3]["order"] == 3
    out = done(lmlab("explain", runs["ngram"], "the cat"))
    assert "n-gram" in out
    code, out, err = lmlab("explain", runs["ngram"], "")
    assert (code, out) == (2, "")
    assert err.startswith("lmlab: the text is empty")
    assert lmlab("explain", "nowhere", "the cat")[2].startswith("lmlab: there is no run nowhere")


def test_the_picture_holds_every_word_of_the_text(runs: dict[str, Path], tmp_path: Path) -> None:
    lmlab.explain([runs["ngram"], runs["words"]], "the cat & <b>\n", svg=tmp_path / "text.svg")
    picture = xml.etree.ElementTree.parse(tmp_path / "text.svg").getroot()
    texts = [element.text or "" for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    second = texts.index(next(text for text in texts if text.startswith("words:")))
    assert texts[0].startswith("ngram: ")
    assert "".join(texts[1:second]) == "".join(texts[second + 1 :]) == "the cat & <b>"


@pytest.mark.parametrize(("verb", "name"), [("explain_attention", "gpt"), ("explain_gates", "gru")])
def test_attention_and_gates_have_a_picture(runs: dict[str, Path], verb: str, name: str, tmp_path: Path) -> None:
    getattr(lmlab, verb)(runs[name], SENTENCE * 2, svg=tmp_path / "picture.svg")
    assert xml.etree.ElementTree.parse(tmp_path / "picture.svg").getroot().tag.endswith("svg")


def test_a_notebook_shows_the_text_in_colours_and_no_page_of_numbers(runs: dict[str, Path]) -> None:
    found = lmlab.explain([runs["ngram"], runs["gpt"]], SENTENCE)
    shown = found._repr_html_()
    assert "<svg" in shown
    assert "bits per byte" in shown
    assert len(repr(found)) < 400
    assert len(repr(found.readings[0])) < 600
    assert "<table>" in found.readings[0]._repr_html_()


@pytest.mark.parametrize("verb", [lmlab.explain_attention, lmlab.explain_gates, lmlab.explain_heads])
def test_what_else_is_looked_into_is_a_picture_in_a_notebook(runs: dict[str, Path], verb: object) -> None:
    run = runs["lstm" if verb is lmlab.explain_gates else "gpt"]
    found = verb(run, SENTENCE)  # type: ignore[operator]
    assert "<svg" in found._repr_html_()
    assert len(repr(found)) < 600
