"""`lmlab.vectors` and what is asked of word vectors, of a run or a GloVe text file: neighbours, analogies, a map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmlab.learn.run import Run, opened
from lmlab.page.figures import standalone
from lmlab.tasks.word_vectors.picture import AROUND, Place, map_of, picture
from lmlab.tasks.word_vectors.space import Neighbour, WordVectors, of_file, of_run
from lmlab_derive.shared.html import document, figure, refuse_names, write


def vectors(source: Run | WordVectors | str | Path, *, device: str = "auto") -> WordVectors:
    """The vectors of a run, or of a file in the GloVe text format: plain or gzip."""
    if isinstance(source, WordVectors):
        return source
    if isinstance(source, str | Path) and Path(source).is_file():
        return of_file(Path(source), device)
    return of_run(opened(source), device)


def neighbours(
    source: Run | WordVectors | str | Path, word: str, *, number: int = 10, device: str = "auto"
) -> list[Neighbour]:
    """The words nearest to a word, with the cosine of their angle to it."""
    return vectors(source, device=device).neighbours(word, number)


def analogy(
    source: Run | WordVectors | str | Path, a: str, b: str, c: str, *, number: int = 10, device: str = "auto"
) -> list[Neighbour]:
    """What is to c as b is to a: the words nearest to b - a + c."""
    return vectors(source, device=device).analogy(a, b, c, number)


def word_map(
    source: Run | WordVectors | str | Path,
    words: Sequence[str] = (),
    *,
    around: int = AROUND,
    out: str | Path | None = None,
    device: str = "auto",
) -> list[Place]:
    """Where words lie in the plane that shows most of how they differ; each word with its `around` nearest ones.

    words: none: the most frequent ones. out: a picture (.svg) or a page (.html) to write.
    """
    refuse_names(out=out)
    found = vectors(source, device=device)
    places, shown = map_of(found, words, around)
    if out is not None:
        title = f"Words of {Path(found.source).name}"
        drawn = picture(places, title)
        caption = (
            f"Two directions of {found.vectors_VX.shape[1]}, which hold {shown:.0%} of what sets these words apart."
        )
        page = document(title, f"<h1>{title}</h1>\n{figure(drawn, caption)}")
        write(Path(out), standalone(drawn) if Path(out).suffix == ".svg" else page)
    return places
