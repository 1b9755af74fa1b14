"""The tokenizer of a Hugging Face folder, used as it is, with ids for every token that the model predicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from lmlab.config import Mistake
from lmlab.exchange.folder_files import MOST_TOKENIZER, TOKENIZER, inside
from lmlab.text.foreign_coding import ForeignCoding
from lmlab.text.tokenizers import FOREIGN, Tokenizer


def tokenizer_of(folder: Path, vocab_size: int) -> Tokenizer:
    """Return the tokenizer of a folder.

    Args:
        folder: the folder.
        vocab_size: how many tokens the model predicts. Ids without a token stand for no bytes, and are never encoded.

    Raises:
        Mistake: there is no tokenizer, it is damaged, or it has tokens that the model does not predict.
    """
    backend = backend_of(folder)
    ordinary = json.loads(backend.to_str())["added_tokens"]
    special = {token["id"] for token in ordinary if token["special"]}
    beyond = [token for token, id in backend.get_vocab().items() if id >= vocab_size and id not in special]
    if beyond:
        raise Mistake(
            f"{folder / TOKENIZER} has {len(beyond):,} tokens, such as {beyond[0][:40]!r}, beyond the {vocab_size:,} that the"
            " model predicts; it is of another model",
            code="tokenizer-of-other-model",
        )
    return Tokenizer(FOREIGN, backend, ForeignCoding(backend, vocab_size))


def backend_of(folder: Path) -> Backend:
    """Return the library object of a folder's tokenizer.json, or of the older files that transformers converts."""
    path = inside(folder, TOKENIZER)
    if not path.exists():
        return _converted(folder)
    if not path.is_file() or path.stat().st_size > MOST_TOKENIZER:
        raise Mistake(f"{path} is no file of at most {MOST_TOKENIZER >> 20} MiB", code="tokenizer-too-large")
    try:
        return Backend.from_str(path.read_text(encoding="utf-8"))
    except BaseException as error:  # the library raises bare Exception, and for some files a panic
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise Mistake(
            f"{path} is damaged: {(str(error).splitlines() or ['unreadable'])[0][:200]}",
            code="folder-tokenizer-damaged",
        ) from None


def _converted(folder: Path) -> Backend:
    """Let transformers convert the files of an older tokenizer, such as vocab.json and merges.txt."""
    from lmlab.models.huggingface import quiet

    try:
        with quiet():
            from transformers import AutoTokenizer

            found: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            backend: Backend = found.backend_tokenizer
            return backend
    except Exception:
        raise Mistake(
            f"{folder} has no {TOKENIZER}, and no tokenizer that transformers can convert into one", code="no-tokenizer"
        ) from None


def id_of(backend: Backend, symbol: str | int | None) -> int | None:
    """Return the id of a token that is named by its string or its id; None if there is no such token."""
    if symbol is None:
        return None
    id = backend.token_to_id(symbol) if isinstance(symbol, str) else symbol
    return id if id is not None and id >= 0 else None
