"""`lmlab.data`: named corpora, and what is in a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from lmlab.config import Mistake
from lmlab.text import sources

if TYPE_CHECKING:
    from lmlab.text.corpus import Corpus
    from lmlab.text.files_and_folders import Text
    from lmlab.text.splitting import SplitBy


@overload
def data(action: Literal["list"] = "list") -> dict[str, str]: ...
@overload
def data(action: Literal["get"], text: str) -> list[Path]: ...
@overload
def data(
    action: Literal["show"],
    text: Text,
    *,
    split: Sequence[float] = ...,
    split_by: SplitBy = ...,
    documents: str = ...,
    valid: Text | None = ...,
    test: Text | None = ...,
    seed: int = ...,
) -> Corpus: ...
def data(
    action: str = "list",
    text: Text | None = None,
    *,
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    documents: str = "auto",
    valid: Text | None = None,
    test: Text | None = None,
    seed: int = 0,
) -> dict[str, str] | list[Path] | Corpus:
    """List the named corpora, get the files of one, or show a text divided into its parts.

    Args:
        action: "list", "get" or "show".
        text: for "get" a named corpus, which is fetched where it is not here yet; for "show" any text.
        split: shares of train, validation and test.
        split_by: what is held out: "documents", "blocks", "tail" or "auto".
        documents: how the text is divided into documents whose end is predicted: "lines", "blank", "jsonl:FIELD", "files",
            "none", or "auto": as the text plainly consists of documents.
        valid: a file for validation; `text` is then for training alone.
        test: a file for testing; `text` is then for training alone.
        seed: of the choice of documents or blocks.
    """
    if action == "list":
        return sources.available()
    if action not in ("get", "show"):
        shown = f"data show {action}" if Path(action).exists() else f"data get {action}"
        meant = f"; did you mean {shown}?" if Path(action).exists() or action in sources.available() else ""
        raise Mistake(f"data takes list, get or show; got {action!r}{meant}", code="data-action-unknown")
    if text is None:
        raise Mistake(f"name the text to {action}, such as: {', '.join(sources.available())}", code="data-without-text")
    if action == "get":
        return sources.get(str(text))
    from lmlab.text.corpus import read

    return read(text, valid=valid, test=test, split=split, split_by=split_by, seed=seed, documents=documents)
