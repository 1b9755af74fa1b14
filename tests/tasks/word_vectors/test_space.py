"""Neighbours, analogies and maps by hand, and files that go out and come in again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lmlab
from lmlab.config import Mistake
from lmlab.learn.run import Run
from lmlab.tasks.word_vectors.space import WordVectors
from mistakes import mistake

PLANE = WordVectors(
    ["man", "woman", "king", "queen", "tree"],
    np.array([[1, 0, 0], [1, 1, 0], [1, 0, 3], [1, 1, 3], [-2, 0, 0.1]], dtype=np.float32),
    "plane",
)


def test_neighbours_are_by_angle_and_a_word_is_not_its_own() -> None:
    near = lmlab.neighbours(PLANE, "man", number=4)
    assert [one.word for one in near] == ["woman", "king", "queen", "tree"]
    assert near[0].cosine == pytest.approx(1 / np.sqrt(2))
    assert near[-1].cosine == pytest.approx(-1, abs=0.01)


def test_an_analogy_adds_the_difference_and_leaves_out_the_three() -> None:
    found = lmlab.analogy(PLANE, "man", "woman", "king")
    assert found[0].word == "queen"
    assert {one.word for one in found} == {"queen", "tree"}


def test_lower_case_is_tried_and_a_word_never_seen_is_answered_with_the_nearest() -> None:
    assert PLANE.number("King") == 2
    with mistake("word-without-vector", "did you mean 'king'"):
        PLANE.neighbours("kings")


def test_what_is_saved_comes_back_to_the_bit(vectors_run: Run, tmp_path: Path) -> None:
    before = lmlab.vectors(vectors_run)
    after = lmlab.vectors(before.save(tmp_path / "v.txt"))
    assert after.words == before.words
    assert np.array_equal(after.vectors_VX, before.vectors_VX)
    assert (vectors_run.folder / "vectors.txt").read_bytes() == (tmp_path / "v.txt").read_bytes()


def test_a_file_whose_lines_are_not_equally_wide_is_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("a 1 2 3\nb 1 2\n")
    with mistake("vectors-line-length", "line 2"):
        lmlab.vectors(tmp_path / "v.txt")


def test_a_map_keeps_distances_where_the_words_lie_in_a_plane(tmp_path: Path) -> None:
    flat = WordVectors(["a", "b", "c", "d"], np.array([[1, 0], [0, 1], [-1, 0], [0.6, 0.8]], np.float32), "flat")
    places = lmlab.word_map(flat, ["a"], around=3, out=tmp_path / "map.svg")
    assert {place.group for place in places} == {"a"}
    at = {place.word: np.array([place.x, place.y]) for place in places}
    unit = dict(zip(flat.words, flat.vectors_VX, strict=True))
    for one in flat.words:
        for other in flat.words:
            assert np.linalg.norm(at[one] - at[other]) == pytest.approx(
                np.linalg.norm(unit[one] - unit[other]), abs=1e-5
            )
    assert ">a<" in (tmp_path / "map.svg").read_text()
    lmlab.word_map(flat, ["a"], out=tmp_path / "map.html")
    assert "100% of what sets these words apart" in (tmp_path / "map.html").read_text()


def test_maps_that_cannot_be_drawn_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"ends in \.html or \.svg"):
        lmlab.word_map(PLANE, ["man"], out=tmp_path / "map.png")
    with pytest.raises(Mistake, match="three words or more"):
        lmlab.word_map(PLANE, ["man"], around=1)


def test_a_word_that_merely_contains_another_is_not_what_was_meant() -> None:
    space = WordVectors(words=["making", "the"], vectors_VX=np.eye(2, dtype=np.float32), source="a run")
    with mistake("word-without-vector", "try another word"):
        space.number("king")
