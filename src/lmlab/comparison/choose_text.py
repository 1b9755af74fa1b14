"""Chooses which bytes are scored: how many of the test part, and how many training bytes the compressors read.

The choice depends on the speed of the compared models: a sixteenth of every stretch is scored and timed. The number of
bytes is a power of two times the usual number, so that repeated runs on one machine mostly score the same text.
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
from lmlab.text.parts import Part

USUAL_CONTEXT = 256  # tokens: the longest default context window
SCORING = 0.35  # share of the time after training; certificates, mixing and examinations take the rest
TRIED, WARMED = 1 / 16, 1 / 64  # shares of every stretch: scored and timed; scored before that as a warm-up
LONG_S = 0.2  # seconds of a trial on a GPU above which the CPU is tried too: the model probably scores token by token


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The samples of the test part, by size, that a comparison can score.

    tokenizers, contexts: of the models; they decide how many context bytes are read before each stretch.
    """

    corpus: Corpus
    tokenizers: Sequence[str]
    contexts: Sequence[int] = ()  # requested context windows, in tokens

    def choice(self, size: int) -> TextChoice:
        """Return the choice of about `size` test bytes, with enough context bytes before each stretch for all models."""
        part, history = self.corpus.test, HISTORY_BYTES
        if size < part.bytes:
            window = ContextPolicy.last(max([USUAL_CONTEXT, *self.contexts]))
            history = enough_history((window, token_bytes(part, spec)) for spec in self.tokenizers)
        return TextChoice(part="test", bytes=size, history_bytes=history)

    def spread(self, size: int) -> Spread:
        """Return the sample of about `size` test bytes."""
        return self.choice(size).spread(self.corpus)


@dataclass(frozen=True, kw_only=True)
class ChosenText:
    """The number of bytes to score, and the runs that are scored on the CPU because they are faster there."""

    bytes: int
    on_cpu: frozenset[str]


def choose_text(texts: Texts, wanted: int, runs: Sequence[Run], device: str, time_s: float) -> ChosenText:
    """Choose how many bytes to score: double or halve `wanted` to fit the time that scoring with these models takes.

    Args:
        texts: the samples to choose from.
        wanted: the usual number of bytes.
        runs: the trained runs to be scored.
        device: the device of the comparison; a model that is faster on the CPU is scored there.
        time_s: seconds for all that follows training; scoring may take a fixed share of them.
    """
    allowed_s, trial = SCORING * time_s, _Trial(device)
    chosen = texts.spread(wanted)
    seconds = trial.seconds(chosen, runs)
    while seconds > allowed_s and wanted > LEAST_TEST_BYTES:
        wanted = max(LEAST_TEST_BYTES, wanted // 2)
        fewer = texts.spread(wanted)
        seconds, chosen = seconds * fewer.part.bytes / chosen.part.bytes, fewer
    while not chosen.everything and 2 * seconds < allowed_s:
        more = texts.spread(2 * wanted)
        # A whole text may be one long row instead of many short stretches, which changes the speed.
        tried_s = trial.seconds(more, runs) if more.everything else seconds * more.part.bytes / chosen.part.bytes
        if tried_s > allowed_s:
            break
        seconds, chosen, wanted = tried_s, more, 2 * wanted
    return ChosenText(bytes=wanted, on_cpu=frozenset(trial.on_cpu))


class _Trial:
    """Times scoring of a text sample by each model, and selects GPU or CPU per model, whichever is faster."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.on_cpu: set[str] = set()  # names of folders

    def seconds(self, text: Spread, runs: Sequence[Run]) -> float:
        """Estimate the seconds that scoring a text takes with these runs together."""
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
    """Return the beginning of every document, cut at the end of a word: as many rows as the part has, all shorter."""
    cut = [d.piece(0, word_end(d, max(1, int(share * d.size)))) for d in part.documents]
    return Part(part.name, [document for document in cut if document.size])


def token_bytes(part: Part, tokenizer: str) -> float:
    """Estimate the bytes per token before the tokenizer is trained; a subword token counts as a word."""
    if tokenizer == "byte":
        return 1.0
    return part.bytes / max(1, part.chars if tokenizer == "char" else part.words)


def last_bytes(part: Part, limit: int = 8 << 20) -> bytes:
    """Return about the last `limit` bytes of a part."""
    blocks: list[bytes] = []
    for document in reversed(part.documents):
        blocks.append(b"".join(document.blocks())[-limit:])
        limit -= len(blocks[-1])
        if limit <= 0:
            break
    return b"".join(reversed(blocks))
