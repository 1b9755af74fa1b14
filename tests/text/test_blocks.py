"""Held-out blocks: spread over the whole text, each byte in one part at most, with gaps, the same for every run."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from lmlab.config import Mistake
from lmlab.text.blocks import MOST_BLOCKS, blocks_of
from lmlab.text.corpus import Corpus, read

LINE = "the course of a text, in lines of {} words\n"
TEXT = "".join(LINE.format(i) for i in range(3000))
SPLITS = [(80, 10, 10), (90, 5, 5), (90, 0, 10), (70, 30, 0), (10, 45, 45)]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


def spans(corpus: Corpus) -> dict[str, list[tuple[int, int]]]:
    return {name: [(d.start, d.stop) for d in part.documents] for name, part in corpus.parts.items()}


@pytest.mark.parametrize("split", SPLITS)
def test_no_byte_is_in_two_parts_and_what_is_in_none_is_counted(path, split) -> None:
    corpus = read(path, split=split)
    every = sorted(span for part in spans(corpus).values() for span in part)
    assert all(end <= start for (_, end), (start, _) in pairwise(every))
    assert sum(part.bytes for part in corpus.parts.values()) + corpus.spec()["left_out"] == len(TEXT)


@pytest.mark.parametrize("split", SPLITS)
def test_held_out_parts_have_their_shares(path, split) -> None:
    corpus = read(path, split=split)
    for share, part in zip(split[1:], (corpus.valid, corpus.test), strict=True):
        assert part.bytes / len(TEXT) == pytest.approx(share / 100, rel=0.1)
        assert part.block_share == pytest.approx(part.bytes / len(TEXT))
    assert corpus.train.block_share is None


def test_blocks_lie_over_the_whole_text(path) -> None:
    middles = np.array([(start + stop) / 2 for start, stop in spans(read(path))["test"]]) / len(TEXT)
    assert len(middles) == blocks_of(len(TEXT) // 10)
    assert np.diff(np.concatenate([[0.0], middles, [1.0]])).max() < 3 / len(middles)


def test_blocks_begin_and_end_with_lines(path) -> None:
    for part in ("valid", "test"):
        assert all(TEXT[start - 1] == TEXT[stop - 1] == "\n" for start, stop in spans(read(path))[part])


def test_a_gap_lies_between_training_text_and_held_out_text(path) -> None:
    found = spans(read(path))
    held_out = sorted(found["valid"] + found["test"])
    edges = np.array([edge for span in found["train"] for edge in span])
    near = [np.abs(edges - edge).min() for span in held_out for edge in span if edge not in {s for s, _ in held_out}]
    assert min(near) >= 64


def test_text_without_lines_or_spaces_is_cut_between_characters(tmp_path) -> None:
    (tmp_path / "text.txt").write_text("語言模型" * 9000)
    corpus = read(tmp_path / "text.txt")
    assert {c for part in corpus.parts.values() for c in part.text()} == set("語言模型")


def test_every_run_on_a_text_has_the_same_blocks_whatever_its_seed(path) -> None:
    assert read(path, seed=1).test.sha256 == read(path, seed=2).test.sha256


def test_few_documents_are_dealt_in_blocks_and_many_go_whole(tmp_path) -> None:
    for i in range(140):
        (tmp_path / f"{i:03}.txt").write_text(TEXT[: 700 + i])
    assert read(tmp_path).divided_by == "documents"
    assert read(tmp_path / "00*.txt").divided_by == "blocks"
    assert read(tmp_path / "00*.txt", split_by="documents").divided_by == "documents"


def test_the_record_of_a_corpus_reads_the_same_blocks_again(path) -> None:
    corpus = read(path)
    again = Corpus.from_spec(json.loads(json.dumps(corpus.spec())))
    assert (again.test.sha256, again.test.block_share) == (corpus.test.sha256, corpus.test.block_share)
    assert again.division == corpus.division


def test_a_record_that_does_not_say_how_its_text_was_divided_is_of_the_tail(path) -> None:
    spec = read(path, split_by="tail").spec()
    del spec["divided_by"], spec["left_out"]
    assert Corpus.from_spec(spec).test.text() == TEXT[len(TEXT) * 9 // 10 :]


def test_what_cannot_be_divided_so_is_refused(path) -> None:
    with pytest.raises(Mistake, match="cannot go whole"):
        read(path, split_by="documents")
    with pytest.raises(Mistake, match="is one of auto"):
        read(path, split_by="halves")
    with pytest.raises(Mistake, match="leave one of them out"):
        read(path, valid=path, split_by="tail")


def test_the_number_of_blocks_grows_with_the_held_out_bytes() -> None:
    counts = [blocks_of(size) for size in (0, 300, 3_000, 6_144, 12_288, 20_000, 32_768, 10**9)]
    assert counts == [1, 1, 11, 24, 24, 39, MOST_BLOCKS, MOST_BLOCKS]
