"""`lmlab.combine`: the parent of two words, its label, and the pairs whose parents lie nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from lmlab.config import Mistake, an, nearest
from lmlab.hardware.choice import choose_device
from lmlab.learn.run import Run, opened
from lmlab.models.autoencoder import Autoencoder
from lmlab.records import JsonRecord
from lmlab.tasks.word_pairs.data import data_of_run, has_vector
from lmlab.tasks.word_vectors.space import A_MISSPELLING, Neighbour, WordVectors
from lmlab.tasks.word_vectors.verbs import word_map


@dataclass(frozen=True, kw_only=True)
class Combination(JsonRecord):
    """Two words as one. p: the probability of each label; parent: its numbers; neighbours: pairs of the training part."""

    words: tuple[str, str]
    label: str
    p: dict[str, float]
    neighbours: tuple[Neighbour, ...]
    parent: tuple[float, ...]


@torch.no_grad()
def combine(
    run: Run | str | Path,
    words: Sequence[str],
    *,
    number: int = 10,
    out: str | Path | None = None,
    device: str = "auto",
) -> list[Combination]:
    """Combine words two by two. out: a picture (.svg) or page (.html) of where these pairs and their neighbours lie."""
    run = opened(run)
    model = run.saved
    if not isinstance(model, Autoencoder):
        raise Mistake(
            f"{run.folder} holds {an(run.record.model.name)}, which does not combine words: lmlab train autoencoder",
            code="run-is-no-combiner",
        )
    if isinstance(words, str) or len(words) < 2 or len(words) % 2:
        raise Mistake("words are combined two by two; give two, such as: new york", code="combine-needs-two-words")
    place = choose_device(device)
    model, material = model.to(place).eval(), data_of_run(run).material
    names = [piece.strip(" ") for piece in run.tokenizer.vocabulary.pieces]
    asked_B2 = np.array(_ids(words, names, model, str(run.folder))).reshape(-1, 2)
    all_B2 = np.array(list(dict.fromkeys(map(tuple, np.concatenate([asked_B2, material.frequent_B2]).tolist()))))
    parents_BP = model.parents(torch.from_numpy(all_B2).to(place))
    space = WordVectors(
        [f"{names[a]} {names[b]}" for a, b in all_B2], parents_BP.cpu().numpy(), str(run.folder), str(place)
    )
    found = []
    for pair in dict.fromkeys(map(tuple, asked_B2.tolist())):
        written = f"{names[pair[0]]} {names[pair[1]]}"
        p_P = parents_BP[space.number(written)]
        p_K = torch.softmax(model.output(p_P), dim=0).tolist()
        found.append(
            Combination(
                words=(names[pair[0]], names[pair[1]]),
                label=material.classes[int(np.argmax(p_K))],
                p=dict(zip(material.classes, p_K, strict=True)),
                neighbours=tuple(space.neighbours(written, number)),
                parent=tuple(p_P.tolist()),
            )
        )
    if out is not None:
        word_map(space, [" ".join(one.words) for one in found], around=number, out=out)
    return found


def _ids(words: Sequence[str], names: list[str], model: Autoencoder, source: str) -> list[int]:
    """A Mistake, with the nearest word, for one that has no vector."""
    has_V = has_vector(model.embedding_VX.detach().cpu().numpy())
    known = {name: i for i, name in enumerate(names) if has_V[i]}
    for word in words:
        if word.lower() not in known:
            hint = nearest(word.lower(), known, A_MISSPELLING)
            raise Mistake(
                f"{source} has no vector for {word!r}; {hint if hint.endswith('?') else 'try another word'}",
                code="word-without-vector",
            )
    return [known[word.lower()] for word in words]
