"""Word vectors in the GloVe text format: a word and its numbers on each line, between single spaces."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from lmlab.config import Mistake
from lmlab.disk.files import atomic_file

RUN_FILE = "vectors.txt"  # in the folder of a run of word vectors


def read_vectors(path: Path | str, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """(vectors, found): a float32 row for each of `words`, zero where the file has none, and which were found.

    The file is plain or gzip, or the folder of a run of word vectors. Words are compared as they are written: most GloVe
    files are in lower case throughout. A first line of two whole numbers (the word2vec text format has it) is passed over.
    """
    rows, size = _rows(Path(path), set(words))
    found = np.array([word in rows for word in words], dtype=bool)
    vectors = np.zeros((len(words), size), dtype=np.float32)
    for i in np.flatnonzero(found):
        vectors[i] = rows[words[int(i)]]
    return vectors, found


def read_all_vectors(path: Path | str) -> tuple[list[str], np.ndarray]:
    """Every word of the file, in its order, and their vectors (float32). Of a word that comes twice, the last."""
    rows, _ = _rows(Path(path), None)
    return list(rows), np.stack(list(rows.values()))


def write_vectors(path: Path, words: Sequence[str], vectors_VX: np.ndarray) -> Path:
    """Write a GloVe text file, whole or not at all; every number with the digits that bring a float32 back exactly."""
    with atomic_file(path) as file:
        for word, row in zip(words, vectors_VX.astype(np.float32), strict=True):
            file.write(f"{word} {' '.join(map(str, row))}\n".encode())
    return path


def _rows(path: Path, wanted: set[str] | None) -> tuple[dict[str, np.ndarray], int]:
    """The vectors of these words (None: of all), and their width."""
    rows: dict[str, np.ndarray] = {}
    size = 0
    with closing(_lines(path / RUN_FILE if path.is_dir() and (path / RUN_FILE).exists() else path)) as lines:
        for number, line in lines:
            line = line.rstrip("\n").rstrip(" ")
            fields = line.count(" ")
            if number == 1 and fields == 1 and line.replace(" ", "").isdigit():
                continue
            size = size or fields
            if fields < size or size == 0:
                raise Mistake(
                    f"{path}, line {number}: {fields} numbers after the word, where the first line has {size}",
                    code="vectors-line-length",
                )
            word, *numbers = line.rsplit(" ", size)  # from the right: some published files have words with spaces
            if wanted is None or word in wanted or fields > size:
                try:
                    row = np.array(numbers, dtype=np.float32)
                except ValueError:
                    raise Mistake(
                        f"{path}, line {number}: not {size} numbers after the word {word!r}",
                        code="vectors-line-not-numbers",
                    ) from None
                if wanted is None or word in wanted:
                    rows[word] = row
    if size == 0:
        raise Mistake(
            f"{path} holds no vectors; each line should be a word and its numbers, as in GloVe text files",
            code="vectors-empty",
        )
    return rows, size


def _lines(path: Path) -> Generator[tuple[int, str], None, None]:
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8", newline="\n") as file:
            yield from enumerate(file, start=1)
    except FileNotFoundError:
        raise Mistake(
            f"there is no file {path}; word vectors are read from a GloVe text file, plain or .gz",
            code="vectors-not-found",
        ) from None
    except UnicodeDecodeError:
        raise Mistake(
            f"{path} is not UTF-8 text; word vectors are read from a GloVe text file", code="vectors-not-utf8"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Mistake(f"{path} is a damaged gzip file: {error}", code="vectors-gzip-damaged") from None
    except IsADirectoryError:
        raise Mistake(
            f"{path} is a folder; word vectors are read from a GloVe text file, plain or .gz", code="vectors-is-folder"
        ) from None
