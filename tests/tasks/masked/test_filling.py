"""Filling blanks: the right words, several at once, whatever the tokenizer; and what cannot be filled."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import lmlab
from lmlab.config import Mistake
from lmlab.learn.run import Run
from lmlab.models.bert import BERT
from lmlab.tasks.masked.verbs import with_blanks
from mistakes import mistake


def test_a_word_that_follows_from_the_others_is_found(encoder: Run) -> None:
    (one,) = lmlab.fill(encoder, "The [MASK] likes milk.\nThe dog likes bones.")
    assert one.blanks[0][0].text == "cat"
    assert one.filled == "The cat likes milk.\nThe dog likes bones."
    assert sum(c.p for c in one.blanks[0]) <= 1 + 1e-6
    assert [c.p for c in one.blanks[0]] == sorted((c.p for c in one.blanks[0]), reverse=True)


def test_several_blanks_are_filled_so_that_they_go_together(encoder: Run) -> None:
    (one,) = lmlab.fill(encoder, "The [MASK] likes [MASK]\nThe cat likes milk.", top=3)
    assert [len(candidates) for candidates in one.blanks] == [3, 3]
    animal, food = one.filled.split("\n")[0].split()[1::2]
    assert {"cat": "milk.", "dog": "bones.", "horse": "hay.", "bird": "seeds."}[animal] == food


def test_ways_to_fill_all_blanks_are_as_likely_as_guessing_them_in_turn_says(encoder: Run) -> None:
    text = "The [MASK] likes [MASK]\nThe cat likes milk."
    (one,) = lmlab.fill(encoder, text, top=6)
    assert one.filled == one.wholes[0].text
    assert [whole.p for whole in one.wholes] == sorted((whole.p for whole in one.wholes), reverse=True)
    first = int(one.blanks[1][0].p > one.blanks[0][0].p)  # the surest blank
    for whole in one.wholes:
        found = whole.text.split("\n")[0].removeprefix("The ").split(" likes ")
        begun = text.replace("[MASK]", "{}").format(*(found[n] if n == first else "[MASK]" for n in range(2)))
        p = {c.text: c.p for c in lmlab.fill(encoder, text, top=999)[0].blanks[first]}[found[first]]
        then = {c.text: c.p for c in lmlab.fill(encoder, begun, top=999)[0].blanks[0]}[found[1 - first]]
        assert whole.p == pytest.approx(p * then, rel=1e-4)
    assert lmlab.fill(encoder, "The [MASK] likes hay.", top=2)[0].wholes[1].p == pytest.approx(
        lmlab.fill(encoder, "The [MASK] likes hay.", top=2)[0].blanks[0][1].p, rel=1e-4
    )


def test_several_texts_and_a_run_by_its_folder(encoder: Run) -> None:
    found = lmlab.fill(str(encoder.folder), ["The [MASK] likes hay.", "The bird [MASK] seeds."], top=1)
    assert [len(one.blanks[0]) for one in found] == [1, 1]
    assert found[1].filled == "The bird likes seeds."


@pytest.mark.parametrize(("asked", "words"), [("The cat", "write [MASK]"), ("[MASK] " * 40, "blanks-too-long")])
def test_what_cannot_be_filled_is_refused(encoder: Run, asked: str, words: str) -> None:
    with mistake(words):
        lmlab.fill(encoder, asked)
    with pytest.raises(Mistake, match="from 1 up"):
        lmlab.fill(encoder, "The [MASK]", top=0)


@pytest.mark.parametrize("tokenizer", ["bpe:280", "char", "words"])
def test_without_blanks_the_tokens_are_those_of_the_text(tokenizer: str, text: Path, tmp_path: Path) -> None:
    run = lmlab.train(
        "bert", text, out=tmp_path / "run", tokenizer=tokenizer, budget="1steps", device="cpu",
        settings={"layers": 1, "width": 8, "heads": 1, "context": 40},
    )  # fmt: skip
    model, tokens = run.saved, run.tokenizer
    assert isinstance(model, BERT)
    whole = tokens.encode("The cat likes milk.").ids.tolist()
    for word, left, right in (("cat", "The ", " likes milk."), ("likes", "The cat ", " milk.")):
        ids, (blank,), (spaced,) = with_blanks(model, tokens, [left, right])
        piece = word if tokenizer == "words" else f" {word}" * spaced or word
        ids[blank : blank + 1] = tokens.encode(piece).ids.tolist()
        assert ids == whole
    if tokenizer != "words":
        (one,) = lmlab.fill(run, "The [MASK] likes", top=400)
        starts_with_space = [c for c in one.blanks[0] if c.text.startswith(" ")]
        assert not starts_with_space or tokenizer == "char"
        assert all(c.text for c in one.blanks[0])  # a space alone would leave it a blank
        assert sum(c.p for c in one.blanks[0]) == pytest.approx(1, abs=1e-4)


def test_another_run_fills_no_blanks(text: Path, tmp_path: Path) -> None:
    ngram = lmlab.train("ngram", text, out=tmp_path / "ngram")
    with pytest.raises(Mistake, match="fills no blanks"):
        lmlab.fill(ngram, "The [MASK]")


def test_filling_leaves_the_weights_alone(encoder: Run) -> None:
    before = {name: weight.cpu().clone() for name, weight in encoder.saved.tensors().items()}
    lmlab.fill(encoder, "The [MASK] likes hay.")  # where there is a GPU, the weights are there afterwards
    assert all(torch.equal(weight.cpu(), before[name]) for name, weight in encoder.saved.tensors().items())
