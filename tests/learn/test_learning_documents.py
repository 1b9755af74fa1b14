"""Learning from many documents: the end of each is a token like others, and no prediction sees another document."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import lmlab
from lmlab.learn.run import Run
from lmlab.measure import Result
from lmlab.text.corpus import read
from lmlab.text.document_windows import DocumentWindows
from lmlab.text.stream import TokenStream, tokenize
from lmlab.text.tokenizers import Tokenizer, tokenizer_for
from mistakes import mistake
from some_documents import invented_names, list_of_names

SMALL = {
    "gpt": {"layers": 1, "width": 16, "heads": 1, "context": 16},
    "lstm": {"layers": 1, "width": 8},
    "cnn": {"layers": 1, "width": 8},
    "feedforward": {"width": 8, "embedding_width": 4},
}


def trained(kind: str, text: Path, out: Path, *, steps: int = 2, **more: object) -> Run:
    """A small model of this kind, trained for a moment."""
    return lmlab.train(kind, text, documents="lines", out=out, budget=f"{steps}steps", settings=SMALL.get(kind), **more)  # type: ignore[arg-type]


def stream_of(*sizes: int) -> TokenStream:
    """Documents of these sizes, whose tokens are numbered."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ids = np.arange(starts[-1], dtype=np.uint16)
    return TokenStream(ids=ids, starts=starts, bytes=len(ids), chars=len(ids), words=1, has_ends=True)


@pytest.mark.parametrize("kind", ["uniform", "bag", "ngram", "feedforward", "cnn", "lstm", "gpt"])
def test_every_kind_pays_for_ends_and_is_certified(kind: str, tmp_path: Path) -> None:
    run = trained(kind, list_of_names(tmp_path), tmp_path / "run")
    result = lmlab.evaluate(run)
    assert isinstance(result, Result)
    assert result.certificate.passed, [vars(check) for check in result.certificate.checks if not check.passed]
    lines = run.corpus.test.text().splitlines()
    assert result.scored.bytes == result.scored.tokens == sum(map(len, lines)) + len(lines)
    assert run.model.end_id == run.tokenizer.end_id == run.model.vocab_size - 1
    assert result.scored.total_nats == pytest.approx(
        math.log(2) * sum(text.bits for text in lmlab.score(run, lines)), rel=1e-4
    )


def test_the_score_of_a_string_is_its_probability_as_a_document(tmp_path: Path) -> None:
    run = trained("ngram", list_of_names(tmp_path), tmp_path / "run")
    logp_BV, state = run.model.begin(1)
    expected = 0.0
    for id in [*run.tokenizer.encode("bara").ids.tolist(), run.tokenizer.end_id]:
        expected -= float(logp_BV[0, id]) / math.log(2)
        logp_BV, state = run.model.advance(torch.tensor([[id]]), state)
    scored, begun = lmlab.score(run, "bara"), lmlab.score(run, "bara", end=False)
    assert scored.bits == pytest.approx(expected, rel=1e-5)
    assert scored.words[-1].text == "<|end|>"
    assert scored.bits == pytest.approx(begun.bits + scored.words[-1].bits)
    assert (scored.bytes, begun.bytes) == (5, 4)


@pytest.mark.parametrize("kind", ["ngram", "gpt", "lstm"])
def test_generation_stops_at_the_end_of_a_document(kind: str, tmp_path: Path) -> None:
    run = trained(kind, list_of_names(tmp_path), tmp_path / "run", steps=60)
    found = lmlab.generate(run, samples=20)
    assert {text.finish for text in found} == {"end"}
    end = run.tokenizer.end_id
    assert all(text.ids[-1] == end and end not in text.ids[:-1] for text in found)
    assert [text.text for text in found] == [run.tokenizer.decode(text.ids[:-1], text.spellings) for text in found]
    assert lmlab.generate(run, samples=1)[0].text == found[0].text
    if kind == "ngram":  # others are hardly trained, and a beam may like a long repetition better
        assert lmlab.generate(run, "ba", method="beam")[0].finish == "end"


def test_a_sorted_list_is_learned_as_well_as_a_shuffled_one(tmp_path: Path) -> None:
    names = invented_names(600)
    scores = []
    for number, order in enumerate((names, [names[i] for i in np.random.default_rng(1).permutation(len(names))])):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "names.txt").write_text("\n".join(order))
        run = trained("ngram", folder / "names.txt", folder / "run")
        assert run.model.config.order > 2  # type: ignore[attr-defined]
        scores.append(lmlab.evaluate(run).bits_per_byte)  # type: ignore[union-attr]
    assert scores[0] == scores[1]


def test_a_round_of_windows_predicts_every_token_once_and_mixes_no_documents() -> None:
    stream = stream_of(3, 30, 5, 1, 8, 64, 2)
    windows = DocumentWindows(stream, 8)
    assert windows.length == 8
    for turn in range(3):
        batches = [windows.draw(1, 0, turn * windows.count + step) for step in range(windows.count)]
        seen = []
        for batch in batches:
            assert batch.mask_BT is not None
            held = batch.tokens_BT[0][batch.mask_BT[0]]
            document = np.searchsorted(stream.starts, held.numpy(), side="right")
            assert len(set(document.tolist())) == 1
            seen += held.tolist()
            assert bool(batch.mask_BT[0, 0]) == (
                int(batch.tokens_BT[0, 0]) in stream.starts
            )  # else it is not predicted
        inside = windows.count - (len(stream.starts) - 1)
        assert len(seen) == len(set(seen)) == stream.tokens - inside


def test_every_window_predicts_something_even_where_one_token_is_left_of_a_document() -> None:
    windows = DocumentWindows(stream_of(9, 9, 9), 8)
    batches = [windows.draw(1, 0, step) for step in range(20 * windows.count)]
    assert min(batch.count for batch in batches) == 1


def test_batches_of_documents_depend_on_seed_and_step_alone_and_one_long_line_does_not_pad_the_rest() -> None:
    stream = stream_of(*[5, 7, 6] * 60, 500)
    windows = DocumentWindows(stream, 256)
    assert windows.length == 8
    first, again, other = (windows.draw(16, 0, step).tokens_BT for step in (4, 4, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(windows.even(64).tokens_BT, DocumentWindows(stream, 256).even(64).tokens_BT)


@pytest.mark.parametrize("spec", ["byte", "char", "words", "bpe:300"])
def test_tokens_of_documents_are_those_of_their_text_and_an_end(spec: str, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join([*invented_names(300), " two words ", "", "\u00e9t\u00e9"] * 2))
    corpus = read(text, documents="lines", split=(100, 0, 0))
    tokenizer = tokenizer_for(corpus, spec)
    stream = tokenize(corpus.train, tokenizer, tmp_path / "streams")
    assert stream.has_ends
    assert stream.documents == len(corpus.train.documents)
    for index, document in enumerate(corpus.train.documents):
        ids, spelled = stream.document(index), stream.spellings[slice(*stream.spelling_bounds(index))]
        content = "".join(document.pieces())
        assert ids[-1] == tokenizer.end_id
        assert (ids == tokenizer.end_id).sum() == 1
        assert tokenizer.decode(ids, spelled) == content
        assert tokenizer.token_bytes(ids, spelled).sum() == document.size
    tokenizer.save(tmp_path / "saved")
    again = Tokenizer.load(tmp_path / "saved")
    assert (again.hash, again.end_id, again.separator) == (tokenizer.hash, tokenizer.end_id, "\n")
    assert again.hash != tokenizer_for(read(text, split=(100, 0, 0)), spec).hash
    assert again.backend.get_vocab_size() == tokenizer.vocab_size
    assert again.backend.token_to_id("<|end|>") == tokenizer.end_id


def test_training_text_is_known_again_by_whole_documents(tmp_path: Path) -> None:
    run = trained("ngram", list_of_names(tmp_path), tmp_path / "run")
    seen = lmlab.evaluate(run, part="train")
    assert isinstance(seen, Result)
    assert seen.certificate.failures == ["held_out"]
    upper = tmp_path / "upper.txt"
    upper.write_text("\n".join(run.corpus.train.text().upper().splitlines()))
    copied = lmlab.evaluate(run, upper)
    assert isinstance(copied, Result)
    assert copied.certificate.failures == ["held_out"]


def test_a_model_goes_on_only_with_documents_like_those_it_learned(tmp_path: Path) -> None:
    names = list_of_names(tmp_path)
    ended = trained("gpt", names, tmp_path / "ended")
    plain = lmlab.train("gpt", names, documents="none", out=tmp_path / "plain", budget="2steps", settings=SMALL["gpt"])
    assert plain.tokenizer.end_id is None
    assert plain.model.end_id is None
    tuned = lmlab.fine_tune(ended, names, out=tmp_path / "tuned", budget="2steps")
    assert tuned.rule == ended.rule
    with mistake("from-other-documents"):
        lmlab.fine_tune(ended, names, documents="none", out=tmp_path / "wrong", budget="2steps")
    with mistake("from-other-documents"):
        lmlab.fine_tune(plain, names, documents="lines", out=tmp_path / "wrong", budget="2steps")
    with mistake("documents-without-language-model"):
        lmlab.train("bert", names, documents="lines", out=tmp_path / "wrong", budget="2steps")


def test_a_stopped_run_of_documents_ends_with_the_bits_of_an_undisturbed_one(tmp_path: Path) -> None:
    names = list_of_names(tmp_path)
    first = trained("lstm", names, tmp_path / "first", steps=6)
    recipe = lmlab.recipe(tmp_path / "first")
    assert recipe["documents"] == "lines"
    again = lmlab.train(**recipe, out=tmp_path / "again")
    assert again.record.model.sha256 == first.record.model.sha256


def test_models_of_documents_are_mixed_and_the_mix_ends_them_too(tmp_path: Path) -> None:
    names = list_of_names(tmp_path, 800)
    parts = [trained(kind, names, tmp_path / kind) for kind in ("ngram", "feedforward")]
    mixed = lmlab.mix(parts, out=tmp_path / "mix")
    again = lmlab.load(tmp_path / "mix")
    assert again.model.end_id == parts[0].tokenizer.end_id
    result = lmlab.evaluate(again)
    assert isinstance(result, Result)
    assert result.certificate.passed
    assert result.bits_per_byte <= lmlab.evaluate(parts[0]).bits_per_byte + 0.01  # type: ignore[union-attr]
    assert {text.finish for text in lmlab.generate(mixed, samples=5)} == {"end"}
