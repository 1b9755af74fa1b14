"""What switching a head off is measured by, in the unit of the task: bits per byte, per masked token, per byte of a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lmlab.config import Mistake
from lmlab.inside.attention import Attention, attention_of, tokens_of
from lmlab.inside.encoder_attention import Pair, across, around
from lmlab.inside.passage import Passage, passage
from lmlab.measure.score import nats_of_tokens
from lmlab.page.numbers import counted
from lmlab.tasks.masked.measure import encoder_of, masked_units
from lmlab.tasks.translation.certificate import scored
from lmlab.tasks.translation.data import Encoded, refuse_long
from lmlab.tasks.translation.decoding import translator_of
from lmlab.text.sentence_pairs import Pairs, Rows, read_pairs
from lmlab.text.stream import TokenStream

if TYPE_CHECKING:
    from lmlab.learn.run import Run

OWN_BYTES = 20_000  # of the run's own test part: a few hundred tell nothing
SUMMARISED = 4_000  # characters from which the summaries of the heads are made
BEGINNING = f"the beginning of that text, at most {SUMMARISED:,} characters"
SUMMARISED_PAIRS = 60
STRETCH = 64  # tokens whose differences are taken for independent of the next ones'
MOST_ROWS, AT_ONCE = 200, 100  # of pairs


@dataclass(frozen=True, kw_only=True, eq=False)
class Measure:
    """nats: of the text, stretch by stretch, as the model is now. count: of what the unit is per. over: what was measured.

    told: what the summaries of the heads are made from.
    """

    unit: str
    over: str
    told: str
    count: float
    nats: Callable[[], np.ndarray]
    attention: Attention


def of_language_model(run: Run, text: str | Path | None, device: str) -> Measure:
    """Bits per byte of a text."""
    found, model = passage(text, run, OWN_BYTES), run.load(device)
    ids = np.array([id for id, _ in tokens_of(run, found)])
    starts, stretches = np.array([0, len(ids)]), np.arange(0, len(ids), STRETCH)

    def nats() -> np.ndarray:
        of_tokens = nats_of_tokens(model, ids, starts).astype(np.float64)
        return np.add.reduceat(of_tokens, stretches)

    looks = attention_of(run, _beginning(found), device=device)
    over = counted(found.bytes, "byte")
    return Measure(unit="bits per byte", over=over, told=BEGINNING, count=found.bytes, nats=nats, attention=looks)


def of_encoder(run: Run, text: str | Path | None, device: str) -> Measure:
    """Bits per masked token, the same tokens masked every time."""
    found, model, tokenizer = passage(text, run, OWN_BYTES), encoder_of(run, device), run.tokenizer
    ids = np.array([id for id, _ in tokens_of(run, found)])
    characters, words = len(found.text), len(found.text.split())
    stream = TokenStream(ids=ids, starts=np.array([0, len(ids)]), bytes=found.bytes, chars=characters, words=words)
    even_V = np.zeros(tokenizer.vocab_size)

    def units() -> tuple[np.ndarray, float]:
        made = masked_units(model, stream, even_V, np.random.default_rng(0))[0].units
        return made.nats_KU[0], float(made.bytes_KU[0].sum())

    count = units()[1]
    looks = around(run, _beginning(found), device=device)
    over = f"{counted(int(count), 'masked token')} of {counted(found.bytes, 'byte')}"
    unit, nats = "bits per masked token", lambda: units()[0]
    return Measure(unit=unit, over=over, told=BEGINNING, count=count, nats=nats, attention=looks)


def of_translator(run: Run, pairs: str | Path | None, device: str) -> Measure:
    """Bits per byte of targets given their sources, in all languages together."""
    own = Pairs.from_spec(run.record.inputs.corpus)
    rows: Rows = own.parts["test"]
    if pairs is not None:
        if not Path(pairs).exists():
            raise Mistake(
                f"there is no file {pairs}; a translator's heads are measured on pairs, such as test.tsv",
                code="pairs-file-not-found",
            )
        rows = read_pairs(pairs, split=(100, 0, 0), columns=own.languages).parts["train"]
    if not len(rows):
        raise Mistake(f"the test part of {own.name} is empty; name a file of pairs", code="part-without-sentence-pairs")
    rows = rows.chosen(np.arange(min(MOST_ROWS, len(rows))))
    model, encoded = translator_of(run, device), Encoded.of(run.tokenizer, rows)
    refuse_long(rows, encoded, model.context)
    languages = range(1, len(own.languages))
    batches = [np.arange(first, min(first + AT_ONCE, len(rows))) for first in range(0, len(rows), AT_ONCE)]

    def nats() -> np.ndarray:
        """Of each source all targets together: they are no independent witnesses."""
        of_rows = np.zeros(len(rows))
        for language in languages:
            starts = encoded.languages[language].starts_B[:-1]
            of_rows += np.add.reduceat(scored(model, encoded, batches, language), starts)
        return of_rows

    some = rows.texts[: max(1, SUMMARISED_PAIRS // len(languages))]
    looks = across(run, [Pair(row[0], row[k], k - 1) for row in some for k in languages], device=device)
    over = f"{counted(encoded.target_bytes, 'byte')} of {counted(len(rows) * len(languages), 'translation')}"
    unit, told = "bits per byte of the target", f"the first {counted(len(some) * len(languages), 'translation')}"
    return Measure(unit=unit, over=over, told=told, count=encoded.target_bytes, nats=nats, attention=looks)


def _beginning(found: Passage) -> Passage:
    return Passage(found.name, found.text[:SUMMARISED])
