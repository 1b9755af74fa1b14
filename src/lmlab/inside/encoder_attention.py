"""Attention of models that are no language models: an encoder, which looks around, and a translator, which looks across.

What they read comes in windows, or in pairs of sentences; the looks of several are laid one behind the other.

Shapes: T rows, S places of a source, L tokens of a window without the symbols around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.config import Mistake, nearest
from lmlab.inside.attention import BEGIN, END, Attention, kept
from lmlab.inside.head_descriptions import Ids
from lmlab.layers.looking import Looks, Way
from lmlab.tasks.masked.measure import encoder_of
from lmlab.tasks.masked.verbs import BLANK, with_blanks
from lmlab.tasks.translation.data import Sentences
from lmlab.tasks.translation.decoding import translations, translator_of
from lmlab.text.sentence_pairs import Pairs

if TYPE_CHECKING:
    from lmlab.inside.passage import Passage
    from lmlab.learn.run import Run

AROUND = "every place sees all of its window, before and after it; windows of {} tokens"
ACROSS = "the source is seen as a whole, of the target what is before"


def around(run: Run, passage: Passage, *, device: str = "auto") -> Attention:
    """What an encoder looked at in a text, window by window; [MASK] in the text hides a token from it."""
    model = encoder_of(run, device)
    ids = with_blanks(model, run.tokenizer, passage.text.split(BLANK))[0]
    begin, end, mask = model.symbols
    windows = [
        F.pad(F.pad(part_L, (1, 0), value=begin), (0, 1), value=end)
        for part_L in torch.tensor(ids, device=model.encoder.embedding.device).split(model.longest_window)
    ]
    places_T = torch.cat(windows)
    known = {begin: BEGIN, end: END, mask: BLANK}
    texts = tuple(known.get(id) or run.tokenizer.piece(id) for id in places_T.tolist())
    in_all = Ids(rows_T=places_T, seen_S=places_T, begin=begin, end=end)
    layers = kept(joined([model.looks_around(window_T) for window_T in windows]), {Way.AROUND: (in_all, texts, texts)})
    named = {"run": str(run.folder), "model": run.record.model.name, "policy": AROUND.format(model.longest_window)}
    return Attention(tokens=texts, layers=layers, **named)


@dataclass(frozen=True)
class Pair:
    """A source and what it becomes in a language of the translator, by its number."""

    source: str
    target: str
    language: int


def pair_of(
    run: Run, text: str | None, *, to: str | None = None, target: str | None = None, device: str = "auto"
) -> Pair:
    """A source with its translation: the one that is given, or what the translator writes.

    text: None: a sentence that the translator was tested on.
    """
    known = list(run.record.inputs.corpus["languages"])[1:]
    if to is not None and to not in known:
        raise Mistake(f"{run.folder} does not translate into {to!r}; {nearest(to, known)}", code="language-unknown")
    language = 0 if to is None else known.index(to)
    if text is None:
        rows = Pairs.from_spec(run.record.inputs.corpus).parts["test"]
        if not len(rows):
            raise Mistake(
                f"the test part of {run.record.inputs.corpus['name']} is empty; give a sentence in quotes",
                code="part-without-sentence",
            )
        text = rows.texts[0][0]
    if not text.strip():
        raise Mistake(
            "the text is empty, and there is nothing in it to look at; give a sentence in quotes", code="sentence-empty"
        )
    if target is not None and not target.strip():
        raise Mistake(
            "{target} is empty; give the translation in quotes, or leave it to the model",
            code="target-empty",
            target=None,
        )
    if target is None:
        (((best, *_),),) = translations(translator_of(run, device), run.tokenizer, [text.strip()], [language])
        target = best.text
    return Pair(text.strip(), target.strip(), language)


def across(run: Run, pairs: Sequence[Pair], *, device: str = "auto") -> Attention:
    """What a translator looked at while it read sources and wrote targets."""
    model, tokenizer = translator_of(run, device), run.tokenizer
    place = model.embedding.device
    sides = [
        Sentences.of(tokenizer, [pair.source for pair in pairs]),
        Sentences.of(tokenizer, [p.target for p in pairs]),
    ]
    for side in sides:
        if int(side.lengths_B.max()) > model.context:
            raise Mistake(
                f"a sentence of {int(side.lengths_B.max())} tokens is longer than the {model.context} that the translator"
                " reads; give a shorter one",
                code="sentence-too-long",
            )
    sources, targets = ([_row(side, i).to(place) for i in range(len(pairs))] for side in sides)
    looks = [
        model.looks_across(source_S, target_T, pair.language)
        for source_S, target_T, pair in zip(sources, targets, pairs, strict=True)
    ]
    source_N, target_N = torch.cat(sources), torch.cat(targets)
    read, written = (
        tuple(END if id == model.end_id else tokenizer.piece(id) for id in ids_N.tolist())
        for ids_N in (source_N, target_N)
    )
    end = model.end_id
    texts = {
        Way.AROUND: (Ids(rows_T=source_N, seen_S=source_N, end=end), read, read),
        Way.BACK: (Ids(rows_T=target_N, seen_S=target_N), written, written),
        Way.ACROSS: (Ids(rows_T=target_N, seen_S=source_N, end=end), written, read),
    }
    sizes = {Way.AROUND: sources, Way.BACK: targets, Way.ACROSS: sources}
    languages = sorted({run.record.inputs.corpus["languages"][1 + pair.language] for pair in pairs})
    named: dict[str, Any] = {"run": str(run.folder), "model": run.record.model.name, "policy": ACROSS}
    return Attention(tokens=written, layers=kept(joined(looks, sizes), texts), language=", ".join(languages), **named)


def _row(sentences: Sentences, at: int) -> Tensor:
    return torch.from_numpy(sentences.ids_N[sentences.starts_B[at] : sentences.starts_B[at + 1]])


def joined(parts: Sequence[Iterator[Looks]], seen: dict[Way, list[Tensor]] | None = None) -> Iterator[Looks]:
    """Layer by layer, what was looked at in each part, one part behind the other.

    seen: what each part looks at, by the way it looks; None: itself.
    """
    for layer in zip(*parts, strict=True):
        reach = max(looks.weights_HTC.shape[2] for looks in layer)
        sizes = [len(ids) for ids in seen[layer[0].way]] if seen else [len(looks.first_T) for looks in layer]
        offsets = [sum(sizes[:i]) for i in range(len(sizes))]
        weights = [F.pad(looks.weights_HTC, (0, reach - looks.weights_HTC.shape[2])) for looks in layer]
        shifted = list(zip(layer, offsets, strict=True))
        yield replace(
            layer[0],
            weights_HTC=torch.cat(weights, dim=1),
            first_T=torch.cat([looks.first_T + offset for looks, offset in shifted]),
            begins_T=torch.cat([looks.begins_T + offset for looks, offset in shifted]),
            difference=max(looks.difference for looks in layer),
        )
