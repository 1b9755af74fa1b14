"""Words as points: which lie near a word, and which complete an analogy. Nearness is the cosine of the angle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from lmlab.config import Mistake, an, nearest
from lmlab.disk.files import free_file
from lmlab.hardware.choice import choose_device
from lmlab.learn.run import Run
from lmlab.models.glove import GloVe
from lmlab.records import JsonRecord
from lmlab.text.vectors import read_all_vectors, write_vectors

A_MISSPELLING = 0.84  # how alike a word must be that was meant: "kings" is to "king", and "making" is not
COMPARED = 50_000  # words with which a misspelt one is compared whatever their first letter


@dataclass(frozen=True, kw_only=True)
class Neighbour(JsonRecord):
    """A word and the cosine of its angle to what was asked for, from -1 to 1."""

    word: str
    cosine: float


@dataclass(frozen=True)
class WordVectors:
    """Words, in the order of how frequent they are where that is known, and their vectors (float32). V words, X wide."""

    words: list[str]
    vectors_VX: np.ndarray
    source: str
    device: str = "cpu"

    def __repr__(self) -> str:
        return f"WordVectors({self.source!r}, {len(self.words)} words, {self.vectors_VX.shape[1]} wide)"

    @cached_property
    def _number(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    @cached_property
    def _directions_VX(self) -> torch.Tensor:
        vectors_VX = torch.from_numpy(self.vectors_VX).to(self.device)
        return vectors_VX / vectors_VX.norm(dim=1, keepdim=True).clamp(min=1e-12)

    def number(self, word: str) -> int:
        """Where a word stands; a Mistake with the nearest one if it has no vector. Lower case is tried too."""
        for written in (word, word.lower()):
            if written in self._number:
                return self._number[written]
        alike = self.words[:COMPARED] + [other for other in self.words[COMPARED:] if other[:1] == word[:1].lower()]
        hint = nearest(word.lower(), alike, A_MISSPELLING)
        raise Mistake(
            f"{self.source} has no vector for {word!r}; {hint if hint.endswith('?') else 'try another word'}",
            code="word-without-vector",
        )

    def neighbours(self, word: str, number: int = 10) -> list[Neighbour]:
        """The words whose vectors point most nearly where this one's does."""
        at = self.number(word)
        return self._near(self._directions_VX[at], number, {at})

    def analogy(self, a: str, b: str, c: str, number: int = 10) -> list[Neighbour]:
        """What is to c as b is to a: the words nearest to b - a + c (unit vectors), those three left out."""
        one, two, three = (self.number(word) for word in (a, b, c))
        wanted = self._directions_VX[two] - self._directions_VX[one] + self._directions_VX[three]
        return self._near(wanted / wanted.norm().clamp(min=1e-12), number, {one, two, three})

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write them in the GloVe text format; force: over a file that exists."""
        return write_vectors(free_file(path, force), self.words, self.vectors_VX)

    def _near(self, direction_X: torch.Tensor, number: int, without: set[int]) -> list[Neighbour]:
        if number < 1:
            raise Mistake(
                f"{{number}} of neighbours is 1 or more; got {number}",
                code="number-of-neighbours-below-one",
                number=None,
            )
        cosines_V = self._directions_VX @ direction_X
        best = torch.topk(cosines_V, min(number + len(without), len(self.words)))
        found = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [Neighbour(word=self.words[i], cosine=cosine) for i, cosine in found if i not in without][:number]


def of_run(run: Run, device: str = "cpu") -> WordVectors:
    """The vectors of a trained run, one for each word it knows."""
    model = run.saved
    if not isinstance(model, GloVe):
        raise Mistake(
            f"{run.folder} holds {an(run.record.model.name)}, no run of word vectors; train them: lmlab train glove TEXT",
            code="run-without-word-vectors",
        )
    known = [i for i in range(model.vocab_size) if i != run.tokenizer.unknown_id]
    words = [run.tokenizer.piece(i).strip(" ") for i in known]
    return WordVectors(words, model.vectors_VX.cpu().numpy()[known], str(run.folder), str(choose_device(device)))


def of_file(path: Path, device: str) -> WordVectors:
    """The vectors of a GloVe text file."""
    words, vectors_VX = read_all_vectors(path)
    return WordVectors(words, vectors_VX, str(path), str(choose_device(device)))
