"""Strings: their bits are the model's, token by token and word by word, alone and among thousands."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lmlab as lab
from lmlab.config import Mistake
from lmlab.measure.score import batches, in_turn
from lmlab.measure.strings import ScoredTexts, score_texts
from lmlab.text import word_coding
from lmlab.text.tokenizers import train_tokenizer
from thinning import examples

Lmlab = Callable[..., tuple[int, str, str]]
WORDS = "the cat sat on the mat and the dog sat on a log where the wind blows the grass bends"
LINES = ["the cat sat on the mat", "a dog", "where the wind blows the  grass", " led by a space ", "", "naïve zebra"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model over each kind of tokenizer."""
    folder = tmp_path_factory.mktemp("runs")
    text = folder / "text.txt"
    words = WORDS.split()
    rng = random.Random(0)
    text.write_text("\n".join(" ".join(rng.choices(words, k=rng.randint(2, 9))) for _ in range(400)) + "\n")
    specs = {"words": "words", "char": "char", "byte": "byte", "bpe": "bpe:280"}
    for name, spec in specs.items():
        lab.train("ngram", text, out=folder / name, tokenizer=spec, settings={"order": 4})
    small = {"layers": 1, "width": 16, "heads": 2, "context": 8}
    lab.train("gpt", text, out=folder / "gpt", tokenizer="char", budget="3steps", settings=small, device="cpu")
    return {name: folder / name for name in (*specs, "gpt")}


@pytest.mark.parametrize("name", ["words", "char", "byte", "bpe", "gpt"])
def test_a_string_among_others_costs_what_it_costs_as_a_text_by_itself(runs: dict[str, Path], name: str) -> None:
    run = lab.load(runs[name])
    scored = lab.score(run, LINES)
    model = run.load_again("cpu")  # one of its own: scoring takes the run's to a GPU where there is one
    for line, bits, text in zip(LINES, scored.bits, scored, strict=True):
        encoded = run.tokenizer.encode(line)
        nats = model.score(torch.tensor([encoded.ids.tolist()])).double().sum() if len(encoded.ids) else 0.0
        if encoded.spellings:
            nats += run.tokenizer.spelling.nats(encoded.spellings).sum()
        assert bits == pytest.approx(float(nats) / math.log(2), rel=1e-5)
        assert text.bits == pytest.approx(bits, rel=1e-6)
        assert text.text == line
        assert [word.text for word in text.words] == (line.split() or [])
        assert lab.score(run, line) == text


def test_words_add_up_their_tokens_with_the_space_before_them(runs: dict[str, Path]) -> None:
    scored = lab.score(runs["char"], "a dog")
    assert ["".join(token.text for token in word.tokens) for word in scored.words] == ["a", " dog"]
    assert [token.text for token in scored.tokens] == list("a dog")
    assert math.fsum(word.bits for word in scored.words) == pytest.approx(scored.bits)
    unknown = lab.score(runs["words"], "a zebra").words[1]
    assert unknown.tokens[0].text == "zebra"
    assert unknown.bits > 20  # its symbol and its spelling
    trailing = lab.score(runs["char"], "dog  ")
    assert ["".join(token.text for token in word.tokens) for word in trailing.words] == ["dog  "]
    assert lab.score(runs["char"], " ").words[0].text == " "


@pytest.mark.parametrize("order", [2, 5])
def test_an_n_gram_says_what_kenlm_says_of_the_same_model(tmp_path: Path, order: int) -> None:
    kenlm = pytest.importorskip("kenlm")
    rng = random.Random(1)
    words = [f"w{i}" for i in range(60)]
    lines = [" ".join(rng.choices(words, weights=range(60, 0, -1), k=rng.randint(1, 12))) for _ in range(1500)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    run = lab.train(
        "ngram",
        tmp_path / "text.txt",
        out=tmp_path / "run",
        tokenizer="words",
        split=(50, 0, 50),
        settings={"order": order},
    )
    lab.export(run, out=tmp_path / "model.arpa")
    config = kenlm.Config()
    config.show_progress = False
    reader = kenlm.Model(str(tmp_path / "model.arpa"), config)
    known = set(run.tokenizer.vocabulary.pieces)
    chosen = [line for line in lines if known.issuperset(line.split())]
    assert len(chosen) > 1000
    wanted = [-reader.score(line, bos=True, eos=False) * math.log2(10) for line in chosen]
    assert lab.score(run, chosen).bits == pytest.approx(wanted, abs=1e-4)


@given(
    texts=st.lists(st.text(alphabet="ab \n\t\u00a0é", max_size=8) | st.sampled_from(["a b", "abé a"]), max_size=6),
    spaced=st.booleans(),
)
@settings(max_examples=examples(100), deadline=None)
@pytest.mark.parametrize(("lines", "worth_it"), [(4096, 2000), (4096, 0), (2, 0)])
def test_many_texts_have_the_tokens_of_each(lines: int, worth_it: int, texts: list[str], spaced: bool) -> None:
    training = " a b \n ab a \n" if spaced else "a b\nab a\n"
    tokenizer = train_tokenizer("words", [training * 20])
    with mock.patch.multiple(word_coding, LINES=lines, WORTH_IT=worth_it):
        encoded, lengths = tokenizer.encode_each(texts)
    starts = [0, *np.cumsum(lengths).tolist()]
    spellings = iter(encoded.spellings)
    for text, first, last in zip(texts, starts, starts[1:], strict=False):
        ids = encoded.ids[first:last]
        spelled = [next(spellings) for id in ids if id == tokenizer.unknown_id]
        decoded = tokenizer.decode(ids, spelled)
        if spaced:  # a space before the line, and after its break, goes without saying
            assert decoded.removeprefix(" ") == text.removeprefix(" ") or decoded == text or text.endswith("\n ")
        else:
            assert decoded == text
            assert ids.tolist() == tokenizer.encode(text).ids.tolist()


@given(st.lists(st.integers(0, 60), max_size=60), st.integers(1, 200))
@settings(deadline=None)
def test_documents_in_turn_are_all_there_in_order_and_stay_within_bounds(lengths: list[int], most: int) -> None:
    found = list(in_turn(np.array(lengths, dtype=np.int64), most))
    assert [int(d) for batch in found for d in batch] == [i for i, n in enumerate(lengths) if n]
    assert all(len(batch) == 1 or sum(lengths[d] for d in batch) <= most for batch in found)


@given(st.lists(st.integers(0, 60), max_size=60), st.integers(1, 200))
@settings(deadline=None)
def test_batches_hold_every_document_once_and_stay_within_bounds(lengths: list[int], most: int) -> None:
    found = list(batches(np.array(lengths, dtype=np.int64), most))
    assert sorted(int(d) for batch in found for d in batch) == [i for i, n in enumerate(lengths) if n]
    for batch in found:
        of_batch = [lengths[d] for d in batch]
        assert len(batch) == 1 or max(of_batch) * len(batch) <= most
        assert max(of_batch) <= min(of_batch) + min(of_batch) // 4 + 16


def test_nothing_is_scored_in_no_time(runs: dict[str, Path]) -> None:
    scored = lab.score(runs["words"], [])
    assert isinstance(scored, ScoredTexts)
    assert (len(scored), scored.bits, list(scored)) == (0, [], [])


@pytest.mark.parametrize("wrong", [[1], ["a", None], ["\ud800"]])
def test_what_is_no_text_is_a_mistake(runs: dict[str, Path], wrong: list[str]) -> None:
    with pytest.raises(Mistake, match=r"list of texts|valid Unicode"):
        lab.score(runs["char"], wrong)


def test_impossible_words_cost_infinitely_many_bits_and_json_says_null(small_text: Path, tmp_path: Path) -> None:
    run = lab.train("ngram", small_text, out=tmp_path / "ml", settings={"smoothing": "ml", "order": 2})
    scored = score_texts(run.model, run.tokenizer, ["the cat", "qq"])
    assert scored.bits[1] == math.inf
    assert scored.bits[0] < math.inf
    assert json.loads(json.dumps(scored[1].to_json(), allow_nan=False))["bits"] is None


def test_the_command_shows_words_and_tokens(lmlab: Lmlab, runs: dict[str, Path]) -> None:
    code, out, err = lmlab("score", runs["char"], "the cat")
    assert code == 0, err
    total = lab.score(runs["char"], "the cat").bits
    assert f"{total:.2f} bits in all: {total / 2:.2f} a word" in out
    assert "␣" in out
    code, out, _ = lmlab("score", runs["words"], "the cat", "a dog", "--json")
    assert [text["text"] for text in json.loads(out)] == ["the cat", "a dog"]


def test_the_command_scores_lines_of_a_file_and_of_standard_input(
    lmlab: Lmlab, runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lines.txt").write_text("the cat\n\na dog\n")
    _, out, _ = lmlab("score", runs["words"], "--lines", "lines.txt")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[2] for row in rows] == ["the cat", "", "a dog"]
    assert [float(row[0]) for row in rows] == pytest.approx(
        lab.score(runs["words"], ["the cat", "", "a dog"]).bits, abs=1e-4
    )
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"the cat\n\na dog\n")))
    assert lmlab("score", runs["words"], "--lines", "-")[1] == out


def test_the_end_of_a_line_is_no_part_of_it_whoever_wrote_the_file(
    lmlab: Lmlab, runs: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "lines.txt").write_bytes(b"the cat\n\na dog\n")
    (tmp_path / "windows.txt").write_bytes(b"the cat\r\n\r\na dog\r\n")
    for run in runs.values():
        plain, windows = (lmlab("score", run, "--lines", name)[1] for name in ("lines.txt", "windows.txt"))
        assert plain == windows


@pytest.mark.parametrize("arguments", [[], ["a dog", "--lines", "-"], ["--lines", "nowhere.txt"]])
def test_a_call_without_something_to_score_is_answered_in_one_line(
    lmlab: Lmlab, runs: dict[str, Path], arguments: list[str]
) -> None:
    code, out, err = lmlab("score", runs["words"], *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_name_of_a_file_is_scored_as_words_and_said_to_be(
    lmlab: Lmlab, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a dog.txt").write_text("a dog\n")
    _, out, err = lmlab("score", runs["words"], "a dog.txt")
    assert "a word" in out
    assert "--lines 'a dog.txt' scores" in err
    code, of_lines, err = lmlab("score", runs["words"], "--lines", "a dog.txt")
    assert (code, err) == (0, "")
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"a dog\n")))
    assert lmlab("score", runs["words"], "-")[1] == of_lines
