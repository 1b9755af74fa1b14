"""How well blanks are filled: bits per masked token, beside what counting tokens would reach, and pseudo bits per byte.

A masked loss is of single tokens with most of their surroundings at hand. The pseudo-log-likelihood (Salazar and others, 2020)
hides every token once, with all others of its window in view, and sums. Neither is a probability of the text, because every
token helped to guess the others: no model that reads from left to right may be ranked with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from lmlab.config import Mistake, an
from lmlab.hardware.choice import choose_device
from lmlab.hardware.threads import fastest_threads
from lmlab.interface import Windows
from lmlab.learn.fit import stream_folder
from lmlab.learn.run import Run
from lmlab.learn.run_advice import weights_warning
from lmlab.measure.interval import Interval, own_intervals
from lmlab.measure.interval_units import Units
from lmlab.measure.near_copies import HeldOut, held_out
from lmlab.models.bert import BERT
from lmlab.results import OtherResult
from lmlab.tasks.masked.data import masked, one_by_one
from lmlab.tasks.masked.two_stages import TwoStages
from lmlab.text.corpus import read
from lmlab.text.parts import Part
from lmlab.text.stream import TokenStream, tokenize

if TYPE_CHECKING:
    from lmlab.text.tokenizers import Tokenizer

READ_TOKENS = 1 << 16  # at most, for the masked loss; more would only narrow its interval
PSEUDO_WINDOWS, PSEUDO_LENGTH = 24, 96  # each token of these is hidden once, which costs a reading of its window
AT_ONCE = 32  # windows


@dataclass(frozen=True, kw_only=True)
class MaskedResult(OtherResult):
    """What `lmlab eval` says of an encoder. Intervals are of bits per masked token, and of pseudo bits per byte."""

    masked_tokens: int  # that were guessed, of `read_tokens` in `windows`
    read_tokens: int
    windows: int
    masked: Interval
    unigram: Interval  # the same tokens by how often each occurs in training
    saved: Interval  # bits per masked token, paired
    pseudo_bits_per_byte: Interval  # no probability of the text: never ranked with those of language models
    pseudo_tokens: int
    pseudo_bytes: int
    held_out: HeldOut

    @property
    def failures(self) -> tuple[str, ...]:
        """Whether the model was trained on the text."""
        return ("held_out",) if self.held_out.verdict == "not held out" else ()


def _require_training_text(run: Run) -> None:
    """Raise a Mistake for an imported model: the baseline counts tokens of the training text."""
    if not run.record.inputs.corpus["parts"]:
        raise Mistake(
            f"{run.folder} was imported, and its training text, which the baseline is counted on, is not known; train it"
            " further first: lmlab train --from RUN TEXT",
            code="masked-without-training-text",
        )


def evaluate(
    run: Run, data: str | Path | None = None, *, part: str = "test", seed: int = 0, device: str = "auto"
) -> MaskedResult:
    """The masked loss of a part of the run's own corpus, or of another text, and its pseudo-log-likelihood."""
    if data is None:
        name, chosen = run.corpus.name, run.corpus.parts[part]
    else:
        other = read(data, split=(100, 0, 0))
        name, part, chosen = other.name, "whole", Part("whole", other.train.documents)
    if not chosen.bytes:
        raise Mistake(
            f"the {part} part of {name} is empty; choose another {{part}}, or name a text", code="part-empty", part=None
        )
    model = encoder_of(run, device)
    tokens, random = run.tokenizer, np.random.default_rng(seed)
    stream = tokenize(chosen, tokens, stream_folder())
    _require_training_text(run)
    learned = tokenize(run.corpus.train, tokens, stream_folder())
    counts_V = np.bincount(learned.ids, minlength=tokens.vocab_size) + 1.0
    with fastest_threads():
        guessed, read_tokens = masked_units(model, stream, -np.log(counts_V / counts_V.sum()), random)
        pseudo, pseudo_tokens = pseudo_units(model, tokens, stream, random)
    guessed = replace(guessed, units=replace(guessed.units, block_share=chosen.block_share))
    pseudo = replace(pseudo, block_share=chosen.block_share)
    of_model, of_counts = guessed.own_intervals()
    return MaskedResult(
        model=run.record.model.name,
        data=name,
        part=part,
        masked_tokens=int(guessed.units.bytes_KU[0].sum()),
        read_tokens=read_tokens,
        windows=len(guessed.units.document_U),
        masked=of_model,
        unigram=of_counts,
        saved=guessed.difference(1, 0),
        pseudo_bits_per_byte=own_intervals(pseudo)[0],
        pseudo_tokens=pseudo_tokens,
        pseudo_bytes=int(pseudo.bytes_KU[0].sum()),
        held_out=held_out(run.learned_from, chosen),
        notes=(warning,) if (warning := weights_warning(run)) else (),
    )


def encoder_of(run: Run, device: str) -> BERT:
    """The encoder of a run, where it is wanted."""
    model = run.saved
    if not isinstance(model, BERT):
        raise Mistake(
            f"{run.folder} holds {an(run.record.model.name)}, which fills no blanks; train an encoder: lmlab train bert TEXT",
            code="run-fills-no-blanks",
        )
    return model.to(choose_device(device)).eval()


def masked_units(
    model: BERT,
    stream: TokenStream,
    unigram_V: np.ndarray,
    random: np.random.Generator,
    most_tokens: int = READ_TOKENS,
) -> tuple[TwoStages, int]:
    """Nats of masked tokens by model and by counts, window by window, and tokens read. What `Units` calls bytes are tokens."""
    starts_U, stops_U, document_U, share = _windows(stream, model.longest_window, most_tokens, random)
    nats_KU = np.zeros((2, len(starts_U)))
    asked_U = np.zeros(len(starts_U))
    nats_of_tokens = []
    place = next(model.parameters()).device
    for first in range(0, len(starts_U), AT_ONCE):
        some = slice(first, min(first + AT_ONCE, len(starts_U)))
        windows = _padded([stream.ids[a:b] for a, b in zip(starts_U[some], stops_U[some], strict=True)])
        batch = masked(windows, model.symbols, model.vocab_size, random)
        window_N = some.start + (batch.places_N // batch.inputs_BT.shape[1]).numpy()
        kept_N = np.arange(len(window_N)) < batch.count
        nats_N = model.nats(batch.to(place)).double().cpu().numpy()
        nats_KN = np.stack([nats_N, unigram_V[batch.targets_N.numpy()]])[:, kept_N]
        nats_of_tokens.append(nats_KN)
        for row, of_tokens in zip(nats_KU, nats_KN, strict=True):
            np.add.at(row, window_N[kept_N], of_tokens)
        np.add.at(asked_U, window_N[kept_N], 1)
    some_asked = asked_U > 0
    units = Units(
        nats_KU=nats_KU[:, some_asked],
        bytes_KU=np.tile(asked_U[some_asked], (2, 1)),
        document_U=document_U[some_asked],
        share=share,
    )
    return TwoStages(units, np.concatenate(nats_of_tokens, axis=1)), int((stops_U - starts_U).sum())


def pseudo_units(
    model: BERT, tokenizer: Tokenizer, stream: TokenStream, random: np.random.Generator
) -> tuple[Units, int]:
    """Nats of every token of some windows given all others of its window, spelling included, and bytes; tokens in all."""
    length = min(model.longest_window, PSEUDO_LENGTH)
    starts_U, stops_U, document_U, share = _windows(stream, length, PSEUDO_WINDOWS * length, random)
    place = next(model.parameters()).device
    nats_U, bytes_U = np.zeros(len(starts_U)), np.zeros(len(starts_U))
    for i, (start, stop) in enumerate(zip(starts_U, stops_U, strict=True)):
        ids = np.asarray(stream.ids[start:stop])
        nats_U[i] = float(model.nats(one_by_one(ids, model.symbols).to(place)).double().sum())
        spelled = _spellings(tokenizer, stream, int(start), ids)
        if tokenizer.spelling is not None and spelled:
            nats_U[i] += float(np.sum(tokenizer.spelling.nats(spelled)))
        bytes_U[i] = tokenizer.token_bytes(ids, spelled).sum()
    units = Units(nats_KU=nats_U[None], bytes_KU=bytes_U[None], document_U=document_U, share=share)
    return units, int((stops_U - starts_U).sum())


def _windows(
    stream: TokenStream, length: int, most_tokens: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(starts, stops, documents, share) of windows that cut documents up: all, or one out of each stratum of neighbours."""
    sizes_D = np.diff(stream.starts)
    counts_D = -(-sizes_D // length)
    document_W = np.repeat(np.arange(len(sizes_D)), counts_D)
    within_W = np.arange(len(document_W)) - np.repeat(np.cumsum(counts_D) - counts_D, counts_D)
    start_W = stream.starts[document_W] + within_W * length
    stop_W = np.minimum(start_W + length, stream.starts[document_W + 1])
    number = max(1, most_tokens // length)
    if len(start_W) <= number:
        return start_W, stop_W, document_W, 1.0
    chosen = np.floor((np.arange(number) + random.random(number)) * (len(start_W) / number)).astype(np.int64)
    share = math.fsum(stop_W[chosen] - start_W[chosen]) / stream.tokens
    return start_W[chosen], stop_W[chosen], document_W[chosen], share


def _padded(texts: list[np.ndarray]) -> Windows:
    """Side by side, the shorter ones filled up."""
    sizes_B = np.array([len(ids) for ids in texts])
    tokens_BL = np.zeros((len(texts), sizes_B.max()), dtype=np.int64)
    is_text_BL = np.arange(tokens_BL.shape[1]) < sizes_B[:, None]
    tokens_BL[is_text_BL] = np.concatenate(texts)
    return Windows(torch.from_numpy(tokens_BL), None if is_text_BL.all() else torch.from_numpy(is_text_BL))


def _spellings(tokenizer: Tokenizer, stream: TokenStream, start: int, ids: np.ndarray) -> list[str]:
    """Of the unknown words among these ids, which stand at `start` of the stream."""
    if tokenizer.unknown_id is None:
        return []
    before, here = (int((np.asarray(part) == tokenizer.unknown_id).sum()) for part in (stream.ids[:start], ids))
    return list(stream.spellings[before : before + here])
