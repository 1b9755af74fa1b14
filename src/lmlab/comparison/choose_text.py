"""Which bytes are measured: how much of the test part there is time for, and how much of a training text compressors see.

How much there is time for follows from the speed of these very models: a sixteenth of every stretch is scored and timed. The
choice is between a few lengths, each twice the one before, so that one machine mostly measures one text.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from lmlab.comparison.entry_records import TextChoice
from lmlab.comparison.time_shares import LEAST_TEST_BYTES
from lmlab.interface import ContextPolicy
from lmlab.learn.run import Run
from lmlab.measure import Spread, score_part
from lmlab.measure.score import device_of
from lmlab.measure.spread_sample import HISTORY_BYTES, enough_history, word_end
from lmlab.text.corpus import Corpus
from lmlab.text.parts import Document, Part

USUAL_CONTEXT = 256  # tokens: the longest window that a model chooses by itself
SCORING = 0.35  # of the time for measuring; certificates, mixing and close looks take the rest
TRIED, WARMED = 1 / 16, 1 / 64  # of every stretch: scored to see how long it takes, after a little that does not count
LONG_S = 0.2  # for that on a GPU: the model seems to be asked for token by token, and is tried on the CPU too


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The texts that could be measured in a comparison: more or fewer bytes of the test part.

    tokenizers, contexts: of the models; they decide how much history is read before each stretch.
    """

    corpus: Corpus
    tokenizers: Sequence[str]
    contexts: Sequence[int] = ()  # windows, in tokens, that were asked for

    def choice(self, size: int) -> TextChoice:
        """About so many bytes, read with history enough for all models."""
        part, history = self.corpus.test, HISTORY_BYTES
        if size < part.bytes:
            window = ContextPolicy.last(max([USUAL_CONTEXT, *self.contexts]))
            history = enough_history((window, token_bytes(part, spec)) for spec in self.tokenizers)
        return TextChoice(part="test", bytes=size, history_bytes=history)

    def spread(self, size: int) -> Spread:
        """The bytes of that choice."""
        return self.choice(size).spread(self.corpus)


@dataclass(frozen=True, kw_only=True)
class ChosenText:
    """How many bytes are measured, and the runs that are measured on the CPU, where they are faster."""

    bytes: int
    on_cpu: frozenset[str]


def choose_text(texts: Texts, wanted: int, runs: Sequence[Run], device: str, time_s: float) -> ChosenText:
    """The wanted bytes, or twice, four times, half … as many, as the time allows for these models."""
    allowed_s, trial = SCORING * time_s, _Trial(device)
    chosen = texts.spread(wanted)
    seconds = trial.seconds(chosen, runs)
    while seconds > allowed_s and wanted > LEAST_TEST_BYTES:
        wanted = max(LEAST_TEST_BYTES, wanted // 2)
        fewer = texts.spread(wanted)
        seconds, chosen = seconds * fewer.part.bytes / chosen.part.bytes, fewer
    while not chosen.everything and 2 * seconds < allowed_s:
        more = texts.spread(2 * wanted)
        # All of a text may be one long row where its stretches were many short ones: that is another pace.
        tried_s = trial.seconds(more, runs) if more.everything else seconds * more.part.bytes / chosen.part.bytes
        if tried_s > allowed_s:
            break
        seconds, chosen, wanted = tried_s, more, 2 * wanted
    return ChosenText(bytes=wanted, on_cpu=frozenset(trial.on_cpu))


class _Trial:
    """Times scoring, each model where it is faster."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.on_cpu: set[str] = set()  # names of folders

    def seconds(self, text: Spread, runs: Sequence[Run]) -> float:
        """What scoring a text with these models will take, about."""
        some, few = _beginnings(text.part, TRIED), _beginnings(text.part, WARMED)
        taken_s = sum(self._fastest_s(run, some, few) for run in runs)
        return taken_s * text.part.bytes / some.bytes

    def _fastest_s(self, run: Run, some: Part, few: Part) -> float:
        here_s = _scoring_s(run, self.device, some, few)
        if here_s > LONG_S and device_of(run.model).type != "cpu":
            cpu_s = _scoring_s(run, "cpu", some, few)
            if cpu_s < here_s:
                self.on_cpu.add(run.folder.name)
                return cpu_s
        return here_s


def _scoring_s(run: Run, device: str, some: Part, few: Part) -> float:
    model = run.load(device)
    score_part(model, run.tokenizer, few)
    started = time.perf_counter()
    score_part(model, run.tokenizer, some)
    return time.perf_counter() - started


def _beginnings(part: Part, share: float) -> Part:
    """The beginnings of all documents of a part, cut where a word ends: as many rows, all shorter."""
    cut = [Document(d.path, d.start, d.start + word_end(d, max(1, int(share * d.size)))) for d in part.documents]
    return Part(part.name, [document for document in cut if document.size])


def token_bytes(part: Part, tokenizer: str) -> float:
    """About the bytes of a token, before there is a tokenizer; pieces of words are taken for words."""
    if tokenizer == "byte":
        return 1.0
    return part.bytes / max(1, part.chars if tokenizer == "char" else part.words)


def last_bytes(part: Part, limit: int = 8 << 20) -> bytes:
    """The last bytes of a part, about `limit` of them."""
    blocks: list[bytes] = []
    for document in reversed(part.documents):
        blocks.append(b"".join(document.blocks())[-limit:])
        limit -= len(blocks[-1])
        if limit <= 0:
            break
    return b"".join(reversed(blocks))
