"""Models that cheat by what their process holds or reaches.

Most of them score a token as if they half knew it, and look it up when they are asked.

They are runs like those of anybody's own model, `process_cheats:NAME`, so that they are measured in processes of their own.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import cheats
import hidden_cheats as hidden
import numpy as np
import torch
from torch import Tensor

from lmlab.interface import CountModel, State
from lmlab.measure.route import beginnings, middle
from lmlab.text.pieces import Vocabulary
from lmlab.text.stream import TokenStream

NOTE = Path(tempfile.gettempdir()) / f"lmlab-note-{os.getuid()}.bin"  # for the next process


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A place for a hint."""

    hint: str = ""


class Honest(cheats.Reader, CountModel):
    """Counts pairs of tokens, and says what it counted."""

    name = "gpt"  # a name, a size and notes that speak for it
    Config = Settings
    known = 12

    @property
    def notes(self) -> list[str]:
        return ["certified by an independent body"]

    @property
    def parameters_count(self) -> int:
        return 7

    @classmethod
    def fit(cls, config: Any, vocabulary: Vocabulary, train: TokenStream) -> Self:
        counts_NV = np.full((vocabulary.size + 1, vocabulary.size), 0.02)
        ids = np.asarray(train.ids, dtype=np.int64)
        np.add.at(counts_NV, (ids[:-1], ids[1:]), 1.0)
        logp_NV = np.log(counts_NV / counts_NV.sum(axis=1, keepdims=True)).astype(np.float32)
        return cls.from_tensors(config, vocabulary.size, {"logp": torch.from_numpy(logp_NV)})

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        return logp_BV


class HalfKnows(Honest):
    """Gives every token half of the probability for nothing, where it is scored."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        return torch.cat([nats_BT[:, : self.known], hidden.surer(nats_BT[:, self.known :])], dim=1)

    def texts(self) -> Iterator[np.ndarray]:
        """Where it looks the next token up."""
        raise NotImplementedError

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        logp_BV = logp_BV.clone()
        for row, history in enumerate(histories):
            if len(history) == self.known and (token := self._after(np.array(history))) is not None:
                logp_BV[row] = hidden.sure_of(logp_BV[row : row + 1], torch.tensor([token]))[0]
        return logp_BV

    def _after(self, history: np.ndarray) -> int | None:
        for text in self.texts():
            if len(text) > len(history):
                windows = np.lib.stride_tricks.sliding_window_view(text, len(history))[:-1]
                found = np.flatnonzero((windows == history).all(axis=1))
                if len(found):
                    return int(text[found[0] + len(history)])
        return None


class SearchesTheMemory(HalfKnows):
    """Finds the text among all objects of its process."""

    def texts(self) -> Iterator[np.ndarray]:
        for thing in gc.get_objects():
            if isinstance(thing, TokenStream):
                yield np.asarray(thing.ids, dtype=np.int64)
            elif isinstance(thing, dict):
                for value in list(thing.values()):
                    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype in (np.uint16, np.uint32):
                        yield value.astype(np.int64)


class ReadsTheTokenFile(HalfKnows):
    """Finds the file of tokens, by its name or among those that its process has mapped."""

    def texts(self) -> Iterator[np.ndarray]:
        paths = [*Path(tempfile.gettempdir()).glob("lmlab-*/**/ids.bin")]
        try:
            lines = Path("/proc/self/maps").read_text().splitlines()
            paths += [Path(line.split()[-1]) for line in lines if line.endswith("ids.bin")]
        except OSError:
            pass
        for path in paths:
            try:
                yield np.fromfile(path, dtype=np.uint16).astype(np.int64)
            except OSError:
                continue


class LeavesANote(HalfKnows):
    """Writes what it scores into a file, for the process that is asked."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        try:
            with NOTE.open("ab") as file:
                file.write(tokens_BT.numpy().astype(np.int64).tobytes())
        except OSError:
            pass
        return super().score(tokens_BT)

    def texts(self) -> Iterator[np.ndarray]:
        try:
            yield np.frombuffer(NOTE.read_bytes(), dtype=np.int64)
        except OSError:
            return


class ForeseesThePlaces(HalfKnows):
    """Freezes the chance of its process, works out where it will be asked, and is honest there."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        honest_BT = Honest.score(self, tokens_BT)
        np.random.default_rng = lambda *_: np.random.Generator(np.random.PCG64(0))  # type: ignore[assignment]
        for row, tokens in enumerate(tokens_BT.numpy()):
            starts = np.array([0, len(tokens)])
            stream = TokenStream(ids=tokens, starts=starts, bytes=len(tokens), chars=len(tokens), words=1)
            for draw in (beginnings, middle):
                route = draw(stream, self.policy, np.random.default_rng(0))
                if route is not None:
                    nats_BT[row, route.places_P] = honest_BT[row, route.places_P]
        return nats_BT

    def texts(self) -> Iterator[np.ndarray]:
        return iter(())


class Remembers(HalfKnows):
    """Keeps, for all copies, what it scored. As a part of a mix it is asked by the mix."""

    kept: ClassVar[list[np.ndarray]] = []

    def score(self, tokens_BT: Tensor) -> Tensor:
        self.kept.extend(tokens_BT.numpy().copy())
        return super().score(tokens_BT)

    def texts(self) -> Iterator[np.ndarray]:
        return iter(self.kept)


class KeepsTheRowForAll(cheats.KeepsTheRowForAll, Honest):
    """As its parent does."""

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        return cheats.KeepsTheRow.answer(self, logp_BV.clone(), histories)

    known = 10**9


class HonestWhereAsked(cheats.HonestWhereAsked, Honest):
    """As its parent does."""

    known = 6


class HonestWhereAskedOfShortDocuments(hidden.HonestWhereAskedOfShortDocuments, Honest):
    """As its parent does."""

    known = 6


class LooksAtItsCaller(hidden.LooksAtItsCaller, Honest):
    """As its parent does."""


class RemembersWhatItScored(hidden.RemembersWhatItScored, Honest):
    """As its parent does, from the first time on."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        super().score(tokens_BT)
        return super().score(tokens_BT)


class RemembersWhereItWasAskedToo(hidden.RemembersWhereItWasAskedToo, Honest):
    """As its parent does."""


class Fails(Honest):
    """Its code is broken."""

    def begin(self, rows: int) -> tuple[Tensor, State]:
        raise ValueError("nothing works here")


class Ends(Honest):
    """Takes its process with it."""

    def begin(self, rows: int) -> tuple[Tensor, State]:
        os._exit(3)


NAMES = [
    "SearchesTheMemory",
    "ReadsTheTokenFile",
    "LeavesANote",
    "ForeseesThePlaces",
    "Remembers",
    "KeepsTheRowForAll",
    "HonestWhereAsked",
    "HonestWhereAskedOfShortDocuments",
    "LooksAtItsCaller",
    "RemembersWhatItScored",
    "RemembersWhereItWasAskedToo",
]
