"""`lmlab.prove`: claims of the course documents, run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lmlab.coursework import choosing, page, running
from lmlab.coursework.running import Entry


def prove(
    ids: Sequence[str] = (),
    *,
    source: str | None = None,
    html: str | Path | None = None,
    watch: Callable[[Entry], None] | None = None,
) -> list[Entry]:
    """Run claims of the course documents.

    Args:
        ids: ids of claims, or their beginnings; none: all claims.
        source: a document; None: all documents.
        html: a folder for pages.
        watch: called with each claim that was run.
    """
    chosen = choosing.claims(ids, source)
    if html is not None:
        page.refuse_if_file(Path(html))
    entries = running.run(chosen, watch)
    if html is not None:
        page.write(entries, Path(html))
    return entries
