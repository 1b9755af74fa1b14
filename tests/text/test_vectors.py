"""Reading GloVe text files."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from lmlab.text.vectors import read_vectors
from mistakes import mistake

GLOVE = "the 0.5 -1 2\ncat 1 2 3\n. . . 7 8 9\ncafé 4 5 6\n"


def write(path, text: str, packed: bool = False):
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_rows_stand_in_the_order_of_the_words(tmp_path, packed: bool) -> None:
    vectors, found = read_vectors(write(tmp_path / "v.txt", GLOVE, packed), ["café", "dog", "the", ". . .", "\n"])
    assert found.tolist() == [True, False, True, True, False]
    assert vectors.tolist() == [[4, 5, 6], [0, 0, 0], [0.5, -1, 2], [7, 8, 9], [0, 0, 0]]
    assert vectors.dtype == np.float32


def test_a_first_line_with_sizes_is_passed_over(tmp_path) -> None:
    vectors, found = read_vectors(write(tmp_path / "v.txt", "4 3\n" + GLOVE), ["cat", "4"])
    assert vectors.tolist() == [[1, 2, 3], [0, 0, 0]]
    assert found.tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("the 1 2 3\ncat 1 2\n", "line 2: 2 numbers"),
        ("the 1 2 3\ncat 1 x 3\n", "line 2: not 3 numbers"),
        ("the 1 2 3\nother 1 2 3 4\nmore 1 x 2 3 y\n", "line 3: not 3 numbers"),
        ("justaword\n", "line 1: 0 numbers"),
        ("", "holds no vectors"),
    ],
)
def test_a_ragged_file_is_reported_with_its_line(tmp_path, text: str, says: str) -> None:
    with mistake(says):
        read_vectors(write(tmp_path / "v.txt", text), ["the", "cat"])


def test_files_that_cannot_be_read_are_reported(tmp_path) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        read_vectors(tmp_path / "none.txt", ["the"])
    with pytest.raises(ValueError, match="is a folder"):
        read_vectors(tmp_path, ["the"])
    (tmp_path / "latin.txt").write_bytes("größe 1 2\n".encode("latin-1"))
    with pytest.raises(ValueError, match="not UTF-8"):
        read_vectors(tmp_path / "latin.txt", ["the"])
    (tmp_path / "cut.gz").write_bytes(gzip.compress(GLOVE.encode() * 100)[:-30])
    with pytest.raises(ValueError, match="damaged gzip"):
        read_vectors(tmp_path / "cut.gz", ["the"])


def test_published_vectors_cover_common_words() -> None:
    data = os.environ.get("LMLAB_BENCH_DATA")
    if not data:
        pytest.skip("LMLAB_BENCH_DATA is not set")
    vectors, found = read_vectors(f"{data}/glove/glove.6B.50d.top30k.txt.gz", ["king", "queen", "cabbage", "zzzqqq"])
    assert found.tolist() == [True, True, True, False]
    king, queen, cabbage, _ = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    assert king @ queen > 0.7 > king @ cabbage
