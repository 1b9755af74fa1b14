"""The token that a tokenizer puts before every text: kept in its template, so that a run knows it after training."""

from __future__ import annotations

import json

from tokenizers import Tokenizer as Backend
from tokenizers import processors


def put_before(backend: Backend, token: str, id: int) -> None:
    """Let a tokenizer put a token before every text when special tokens are asked for."""
    backend.post_processor = processors.TemplateProcessing(
        single=[token, "$A"], pair=[token, "$A", "$B"], special_tokens=[(token, id)]
    )


def begin_of(backend: Backend) -> int | None:
    """Return the id of the token that a tokenizer puts before every text; None if there is none."""
    match json.loads(backend.to_str())["post_processor"]:
        case {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": str(token)}}, *_]}:
            id: int | None = backend.token_to_id(token)
            return id
    return None
