"""Measuring all models on the same bytes, in the time that is left when they are trained.

How much text that is follows from the speed of these very models: a sixteenth of every stretch is scored first, and timed. The
choice is between a few lengths, each twice the one before, so that one machine mostly measures one text. What time is left
after scoring goes into close looks, and at last into proofs: as much of the text as there is time for is compressed and opened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import torch

from lmlab.comparison.close_look import EXCERPT_BYTES, SAMPLE_CHARACTERS, CloseLook, look_closely
from lmlab.comparison.contender import Contender, mean_result
from lmlab.comparison.measure_run import measure_run
from lmlab.comparison.text_to_measure import measured_text
from lmlab.comparison.time_shares import LEAST_TEST_BYTES
from lmlab.hardware.rates import settle
from lmlab.interface import LanguageModel, Learner
from lmlab.learn.run import Run
from lmlab.measure import Result, Spread, score_part
from lmlab.measure.score import device_of, evaluating
from lmlab.measure.spread_sample import word_end
from lmlab.text.parts import Document, Part

SCORING = 0.35  # of the time for measuring; certificates, mixing and close looks take the rest
TRIED, WARMED = 1 / 16, 1 / 64  # of every stretch: scored to see how long it takes, after a little that does not count
LONG_S = 0.2  # for that on a GPU: the model seems to be asked for token by token, and is tried on the CPU too
LOOKING = 0.35  # of the time for close looks: reading and writing a paragraph; the rest is for proofs
LEAST_LOOK = 0.1  # of the usual paragraphs
PROBED_STEPS = 12  # of one token, after as many that do not count


@dataclass(kw_only=True)
class Measuring:
    """Measures the entries of one comparison."""

    part: Part
    name: str  # of the corpus
    tokenizers: Sequence[str]
    contexts: Sequence[int]  # windows, in tokens, that were asked for
    wanted_bytes: int
    device: str
    seed: int
    beside: set[Path] = field(default_factory=set)  # runs that are measured on the CPU, where they are faster

    @cached_property
    def text(self) -> Spread:
        """What all models are measured on: the wanted bytes, until `choose` has found out how many there is time for."""
        return self._spread(self.wanted_bytes)

    def choose(self, entries: Sequence[Contender], time_s: float) -> None:
        """Measure the wanted bytes, or twice, four times, half … as many, as the time allows for these models.

        Entries that were measured on other bytes are so no longer.
        """
        allowed_s, wanted = SCORING * time_s, self.wanted_bytes
        runs = [run for entry in entries for run in entry.runs]
        chosen = self.text
        seconds = self._seconds(chosen, runs)
        while seconds > allowed_s and wanted > LEAST_TEST_BYTES:
            wanted = max(LEAST_TEST_BYTES, wanted // 2)
            fewer = self._spread(wanted)
            seconds, chosen = seconds * fewer.part.bytes / chosen.part.bytes, fewer
        while not chosen.everything and 2 * seconds < allowed_s:
            more = self._spread(2 * wanted)
            # All of a text may be one long row where its stretches were many short ones: that is another pace.
            tried_s = self._seconds(more, runs) if more.everything else seconds * more.part.bytes / chosen.part.bytes
            if tried_s > allowed_s:
                break
            seconds, chosen, wanted = tried_s, more, 2 * wanted
        if chosen is self.text:
            return
        self.text, self.wanted_bytes = chosen, wanted
        for entry in entries:
            entry.status, entry.result, entry.seed_results = "trained", None, []

    def measure(self, entry: Contender) -> None:
        """The numbers of one entry, of all its seeds."""
        entry.seed_results += map(self.result, entry.runs)
        entry.result = mean_result(entry.seed_results)
        entry.status = "ranked" if entry.result.certified else "unranked"

    def result(self, run: Run) -> Result:
        """The numbers of one run."""
        device = "cpu" if run.folder in self.beside else self.device
        return measure_run(run, self.text, name=self.name, seed=self.seed, device=device)

    def in_one_place(self, entries: Sequence[Contender]) -> list[Contender]:
        """Those that are measured where it was asked for, as all parts of a mix must be."""
        return [entry for entry in entries if not any(run.folder in self.beside for run in entry.runs)]

    def looks(
        self, entries: Sequence[Contender], until_s: float | None
    ) -> Iterator[tuple[Contender, Callable[[], CloseLook]]]:
        """Close looks at these entries, to be taken one after another.

        until_s: when they end together, by time.perf_counter; None: they are as long as usual.
        """
        share = 1.0
        usual_s = sum(map(self._place_for_steps, entries)) * (EXCERPT_BYTES + SAMPLE_CHARACTERS)
        if until_s is not None:
            fits = LOOKING * (until_s - time.perf_counter()) / max(usual_s, 1e-9)
            share = min(1.0, max(LEAST_LOOK, fits))
        for place, entry in enumerate(entries):
            now, run, result = time.perf_counter(), entry.runs[0], entry.seed_results[0]
            mine_until_s = None if until_s is None else now + (until_s - now) / (len(entries) - place)
            look = partial(look_closely, run.model, run.tokenizer, result, self.seed)
            yield entry, partial(look, share=share, until_s=mine_until_s)

    def _spread(self, limit: int) -> Spread:
        return measured_text(self.part, limit, self.tokenizers, self.contexts)

    def _seconds(self, text: Spread, runs: Sequence[Run]) -> float:
        """What scoring a text with these models will take, about, each where it is faster."""
        some, few = _beginnings(text.part, TRIED), _beginnings(text.part, WARMED)

        def tried_s(run: Run, device: str) -> float:
            model = run.load(device)
            score_part(model, run.tokenizer, few)
            started = time.perf_counter()
            score_part(model, run.tokenizer, some)
            return time.perf_counter() - started

        taken_s = 0.0
        for run in runs:
            here_s = tried_s(run, self.device)
            if here_s > LONG_S and device_of(run.model).type != "cpu" and (cpu_s := tried_s(run, "cpu")) < here_s:
                self.beside.add(run.folder)
                here_s = cpu_s
            taken_s += here_s
        return taken_s * text.part.bytes / some.bytes

    def _place_for_steps(self, entry: Contender) -> float:
        """Put its model where single tokens take least time, and say how long one of them takes there, in seconds.

        A GPU that is asked for one token at a time mostly waits to be asked: a small model is faster on a CPU.
        """
        model = entry.runs[0].model
        here_s = _step_s(model)
        if isinstance(model, Learner) and device_of(model).type != "cpu":
            there = device_of(model)
            beside_s = _step_s(model.to("cpu"))
            if here_s < beside_s:
                model.to(there)
            return min(here_s, beside_s)
        return here_s


def _beginnings(part: Part, share: float) -> Part:
    """The beginnings of all documents of a part, cut where a word ends: as many rows, all shorter."""
    cut = [Document(d.path, d.start, d.start + word_end(d, max(1, int(share * d.size)))) for d in part.documents]
    return Part(part.name, [document for document in cut if document.size])


def _step_s(model: LanguageModel) -> float:
    """Seconds of one token at a time."""
    with evaluating(model), torch.no_grad():
        _, state = model.begin(1)
        token_11 = torch.zeros(1, 1, dtype=torch.int64, device=device_of(model))
        started = 0.0
        for step in range(2 * PROBED_STEPS):
            if step == PROBED_STEPS:
                settle(device_of(model))
                started = time.perf_counter()
            _, state = model.advance(token_11, state)
        settle(device_of(model))
        return (time.perf_counter() - started) / PROBED_STEPS
