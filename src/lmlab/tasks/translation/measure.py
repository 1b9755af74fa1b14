"""Measuring a trained translator: what its searches write against what people wrote, and what people's targets cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmlab.config import Mistake
from lmlab.learn.run import Run, opened
from lmlab.learn.run_advice import weights_warning
from lmlab.models.translator import Translator
from lmlab.tasks.translation.certificate import certify, scored
from lmlab.tasks.translation.data import Encoded, refuse_long
from lmlab.tasks.translation.decoding import translations, translator_of
from lmlab.tasks.translation.scores import (
    MISSING,
    Against,
    Compared,
    Into,
    TranslationResult,
    WithoutCopies,
    bits_per_byte,
    bleu_and_chrf,
    has_sacrebleu,
    plain_scores,
)
from lmlab.text.sentence_pairs import Pairs, Rows, read_pairs

BEAM, LENGTH_PENALTY = 5, 1.0
AT_ONCE = 128  # rows that are scored together


@dataclass(frozen=True)
class Measured:
    """What one run makes of rows: of every language what it writes, how much of that did not end, and what targets cost."""

    encoded: Encoded
    written: list[list[str]]
    unended: list[int]
    nats: list[np.ndarray]  # of every token and end, as the ids lie

    def sentence_nats(self, language: int) -> np.ndarray:
        """Of every target of the language with this number, from 0."""
        return np.add.reduceat(self.nats[language], self.encoded.languages[language + 1].starts_B[:-1])


def evaluate(
    run: Run,
    data: str | Path | None = None,
    *,
    part: str = "test",
    seed: int = 0,
    device: str = "auto",
    against: Run | str | Path | None = None,
) -> TranslationResult:
    """BLEU, chrF and bits per byte in every language, with intervals and a certificate.

    data: other pairs with the same languages, used whole; without it a part of the run's own. against: another run that
    translates the same languages, which is measured on the same sentences and compared sentence by sentence.
    """
    other = None if against is None else opened(against)
    if other is not None and not has_sacrebleu():
        raise Mistake(MISSING, code="sacrebleu-missing")
    pairs = Pairs.from_spec(run.record.inputs.corpus)
    if data is None:
        name, rows = pairs.name, pairs.parts[part]
    else:
        given = read_pairs(data, split=(100, 0, 0), columns=pairs.languages)
        name, rows = given.name, given.parts["train"]
    if not len(rows):
        raise Mistake(
            f"the {part} part of {name} is empty; choose another {{part}}, or name pairs", code="part-empty", part=None
        )
    found = measured(run, rows, device)
    theirs = None if other is None else _of_the_other(other, pairs, rows, device)
    signatures: dict[str, str] = {}
    copy_B, copied = pairs.copied(rows)
    into = [
        _into(language, k, rows, found, theirs, signatures, copy_B) for k, language in enumerate(pairs.languages[1:])
    ]
    notes = [note for note in (weights_warning(run), "" if has_sacrebleu() else MISSING) if note]
    return TranslationResult(
        model=run.record.model.name,
        data=name,
        part=part if data is None else "whole",
        source=pairs.languages[0],
        sentences=len(rows),
        into=tuple(into),
        beam=BEAM,
        length_penalty=LENGTH_PENALTY,
        signatures=signatures,
        certificate=certify(run, copied, rows, found.encoded, found.nats, device),
        copied=copied,
        against=None if other is None else str(other.folder),
        notes=tuple(notes),
    )


def measured(run: Run, rows: Rows, device: str = "auto") -> Measured:
    """Translate and score rows."""
    model = translator_of(run, device)
    encoded = Encoded.of(run.tokenizer, rows)
    refuse_long(rows, encoded, model.context)
    languages = range(len(encoded.languages) - 1)
    found = translations(model, run.tokenizer, rows.of(0), languages, beam=BEAM, length_penalty=LENGTH_PENALTY)
    return Measured(
        encoded=encoded,
        written=[[best[0].text for best in of_language] for of_language in found],
        unended=[sum(best[0].finish != "end" for best in of_language) for of_language in found],
        nats=[_nats(model, encoded, k + 1) for k in languages],
    )


def _nats(model: Translator, encoded: Encoded, language: int) -> np.ndarray:
    """Of every token of a language, in order; similar lengths are scored together."""
    sentences = encoded.languages[language]
    order = np.argsort(encoded.lengths_BL.max(axis=1), kind="stable")
    batches = [order[first : first + AT_ONCE] for first in range(0, len(order), AT_ONCE)]
    nats, at = scored(model, encoded, batches, language), 0
    found_N = np.full(len(sentences.ids_N), np.nan)
    for i in order.tolist():
        size = int(sentences.lengths_B[i])
        found_N[sentences.starts_B[i] : sentences.starts_B[i + 1]] = nats[at : at + size]
        at += size
    return found_N


def _of_the_other(run: Run, pairs: Pairs, rows: Rows, device: str) -> Measured:
    theirs = tuple(run.record.inputs.corpus.get("languages", ()))
    if theirs != pairs.languages:
        ours = _ways(pairs.languages)
        raise Mistake(
            f"{run.folder} translates {_ways(theirs)}, and this one {ours}: they cannot be compared"
            if theirs
            else f"{run.folder} holds no translator; name a run that translates {ours}",
            code="translators-of-other-languages",
        )
    return measured(run, rows, device)


def _ways(languages: Sequence[str]) -> str:
    """Such as "en to de, fr"."""
    return f"{languages[0]} to {', '.join(languages[1:])}"


def _into(
    language: str,
    k: int,
    rows: Rows,
    ours: Measured,
    theirs: Measured | None,
    signatures: dict[str, str],
    copy_B: np.ndarray,
) -> Into:
    references = rows.of(k + 1)
    bytes_B = np.array([len(text.encode()) for text in references], dtype=np.float64)
    nats_B = ours.sentence_nats(k)
    found: dict[str, Compared] = {}
    copied: tuple[float | None, float | None] = (None, None)
    if has_sacrebleu():
        found = bleu_and_chrf(ours.written[k], references, None if theirs is None else theirs.written[k])
        signatures |= {name: score.signature for name, score in found.items()}
        copied = plain_scores(rows.of(0), references)
    against = None
    if theirs is not None:
        bleu, chrf = found["bleu"], found["chrf"]
        assert bleu.more is not None
        assert chrf.more is not None
        against = Against(
            bleu=bleu.more,
            bleu_p=bleu.p,
            chrf=chrf.more,
            chrf_p=chrf.p,
            bits_per_byte=bits_per_byte(nats_B, bytes_B, theirs.sentence_nats(k)),
        )
    return Into(
        language=language,
        bytes=int(bytes_B.sum()),
        bits_per_byte=bits_per_byte(nats_B, bytes_B),
        bleu=found["bleu"].figure if found else None,
        chrf=found["chrf"].figure if found else None,
        copied_bleu=copied[0],
        copied_chrf=copied[1],
        unended=ours.unended[k],
        against=against,
        without_copies=_without_copies(ours.written[k], references, nats_B, bytes_B, copy_B),
    )


def _without_copies(
    written: Sequence[str], references: Sequence[str], nats_B: np.ndarray, bytes_B: np.ndarray, copy_B: np.ndarray
) -> WithoutCopies | None:
    """The figures of the rows that are no copies; None: there are no copies, or no other rows."""
    kept = np.flatnonzero(~copy_B)
    if len(kept) in (0, len(copy_B)):
        return None
    found = {}
    if has_sacrebleu():
        found = bleu_and_chrf([written[i] for i in kept.tolist()], [references[i] for i in kept.tolist()])
    return WithoutCopies(
        sentences=len(kept),
        bits_per_byte=bits_per_byte(nats_B[kept], bytes_B[kept]),
        bleu=found["bleu"].figure if found else None,
        chrf=found["chrf"].figure if found else None,
    )
