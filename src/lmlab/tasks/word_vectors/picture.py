"""Words on a plane: the two directions in which chosen words differ most (principal components of their unit vectors)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmlab.config import Mistake
from lmlab.page.figures import drawing, name_points, series_colour, svg
from lmlab.records import JsonRecord
from lmlab.tasks.word_vectors.space import WordVectors

AROUND = 6  # neighbours of each word on a map
FREQUENT = 60  # words, where none are named


@dataclass(frozen=True, kw_only=True)
class Place(JsonRecord):
    """A word on the map. group: the word whose neighbour it is, itself for that word; empty where none was named."""

    word: str
    group: str
    x: float
    y: float


def map_of(vectors: WordVectors, words: Sequence[str], around: int = AROUND) -> tuple[list[Place], float]:
    """The places of words and their neighbours, and the share of their variance that the plane holds."""
    if around < 0:
        raise Mistake(
            f"{{around}} is how many neighbours of each word to show, 0 or more; got {around}",
            code="around-below-zero",
            around=None,
        )
    groups = _chosen(vectors, words, around)
    if len(groups) < 3:
        raise Mistake(
            "a map needs three words or more; name more, or let each have neighbours on it ({around})",
            code="map-of-few-words",
            around=6,
        )
    numbers = [vectors.number(word) for word in groups]
    unit_WX = vectors.vectors_VX[numbers].astype(np.float64)
    unit_WX /= np.maximum(np.linalg.norm(unit_WX, axis=1, keepdims=True), 1e-12)
    left, sizes, _ = np.linalg.svd(unit_WX - unit_WX.mean(0), full_matrices=False)
    sizes = np.append(sizes, np.zeros(2))
    flat_W2 = np.pad(left, ((0, 0), (0, 1)))[:, :2] * sizes[:2]
    flat_W2 *= np.where(flat_W2[np.abs(flat_W2).argmax(0), [0, 1]] < 0, -1, 1)  # a picture, and not its mirror image
    places = [
        Place(word=word, group=group, x=float(x), y=float(y))
        for (word, group), (x, y) in zip(groups.items(), flat_W2, strict=True)
    ]
    return places, float((sizes[:2] ** 2).sum() / max((sizes**2).sum(), 1e-30))


def _chosen(vectors: WordVectors, words: Sequence[str], around: int) -> dict[str, str]:
    """Each word with the group it belongs to: that of the first word named that has it near."""
    if not words:
        return dict.fromkeys([word for word in vectors.words if len(word) > 3 and word.isalpha()][:FREQUENT], "")
    heads = [vectors.words[vectors.number(word)] for word in words]
    groups = {head: head for head in heads}
    for head in heads:
        for near in vectors.neighbours(head, around) if around else ():
            groups.setdefault(near.word, head)
    return groups


def picture(places: Sequence[Place], title: str) -> str:
    """As SVG; the words of a group have one colour."""
    heads = list(dict.fromkeys(place.group for place in places))
    with drawing(8, 6) as (figure, axes):
        for index, head in enumerate(heads):
            members = [place for place in places if place.group == head]
            sizes = [50 if place.word == head else 16 for place in members]
            axes.scatter([p.x for p in members], [p.y for p in members], s=sizes, color=series_colour(index))
        axes.set_axis_off()
        axes.margins(0.1)
        name_points(figure, axes, [(place.word, place.x, place.y) for place in places])
        return svg(figure, title)
