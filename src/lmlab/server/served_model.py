"""A model that the server offers: its tokenizer in the terms of the protocol, and the thread that runs it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lmlab.config import Mistake
from lmlab.server.errors import ApiError

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.learn.run import Run
    from lmlab.server.limits import Limits
    from lmlab.text.tokenizers import Tokenizer

BEGIN = "<|begin|>"  # how clients spell the begin symbol: alone, as the whole text, in /tokenize


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt as tokens.

    Attributes:
        begins: whether the client sent the begin symbol before them.
        spellings: of the unknown words among them, in order.
    """

    ids: tuple[int, ...]
    text: str
    begins: bool = False
    spellings: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """The number of tokens that the client is told of."""
        return len(self.ids) + self.begins


class ServedModel:
    """A run with the name under which clients ask for it."""

    def __init__(self, name: str, run: Run, model: LanguageModel, limits: Limits) -> None:
        self.name, self.run, self.model, self.limits = name, run, model, limits
        self.tokenizer: Tokenizer = run.tokenizer
        self.created = int(time.time())
        self.begin_id = model.vocab_size  # the id after the last one: it is read and never predicted
        self._spelled = lru_cache(maxsize=1 << 16)(self._token_text)

    @property
    def max_model_len(self) -> int:
        """The most tokens of a prompt and its completion. A longer context than the model's own is read in windows."""
        return self.limits.prompt_tokens + self.limits.max_tokens

    def prompt(self, value: str | Sequence[int]) -> Prompt:
        """Return a prompt of a request as tokens. Nothing is added to the ids of a client.

        Raises:
            ApiError: an id is not in the vocabulary, or the prompt is too long.
        """
        found = self._of_text(value) if isinstance(value, str) else self._of_ids(value)
        if len(found.ids) > self.limits.prompt_tokens:
            message = f"a prompt has at most {self.limits.prompt_tokens:,} tokens; got {len(found.ids):,}"
            raise ApiError(400, message, param="prompt", code="context_length_exceeded")
        return found

    def _of_text(self, text: str) -> Prompt:
        encoded = self.tokenizer.encode(text)
        return Prompt(ids=tuple(int(id) for id in encoded.ids), text=text, spellings=tuple(encoded.spellings))

    def _of_ids(self, ids: Sequence[int]) -> Prompt:
        begins = bool(ids) and ids[0] == self.begin_id
        rest = tuple(ids[1:] if begins else ids)
        for place, id in enumerate(rest):
            if not 0 <= id < self.model.vocab_size:
                allowed = f"from 0 to {self.model.vocab_size - 1}; {self.begin_id} may come first"
                raise ApiError(
                    400, f"token ids are {allowed}; got {id} at {place}", param="prompt", code="token-unknown"
                )
        if self.tokenizer.unknown_id in rest:
            raise ApiError(
                400,
                "token ids cannot spell an unknown word; send the prompt as a string",
                param="prompt",
                code="unknown-word-as-id",
            )
        return Prompt(ids=rest, text=self.decode(rest), begins=begins)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens."""
        try:
            return self.tokenizer.decode(np.array(ids, dtype=self.tokenizer.dtype))
        except Mistake as mistake:
            raise ApiError.of(mistake, "tokens") from None

    def token_text(self, id: int) -> str:
        """Return how a token is spelled among log-probabilities; bytes that are no character are written as bytes."""
        return BEGIN if id == self.begin_id else self._spelled(id)

    def _token_text(self, id: int) -> str:
        if self.tokenizer.unknown_id is not None:
            return self.tokenizer.piece(id)
        data = self.tokenizer.bytes_of(id)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)

    def spelling_nats(self, words: Sequence[str]) -> list[float]:
        """Return what each of these unknown words costs to spell, in nats."""
        if not words:
            return []
        assert self.tokenizer.spelling is not None, "only a tokenizer of words knows unknown ones"
        return [float(nats) for nats in self.tokenizer.spelling.nats(list(words))]

    def certified(self, text: str) -> dict[str, Any]:
        """Return the bits per byte of a text with the interval and the certificate, as `lmlab eval --json` does."""
        from lmlab.measure.score import device_of
        from lmlab.text.files_and_folders import strings
        from lmlab.verbs.evaluate import evaluate

        result = evaluate(self.run, strings(text), device=str(device_of(self.model)))
        return {"object": "score", "id": self.name, **result.to_json()}

    def card(self) -> dict[str, Any]:
        """Return the model as an entry of /v1/models."""
        record = self.run.record
        return {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "lmlab",
            "max_model_len": self.max_model_len,
            "kind": record.model.name,
            "tokenizer": self.tokenizer.spec,
            "vocab_size": self.model.vocab_size,
            "parameters": self.model.parameters_count,
            "context": str(self.model.policy),
        }

    def tokenizer_info(self) -> dict[str, Any]:
        """Return the special tokens. The begin symbol has an id of its own, which is read and never predicted."""
        end = self.model.end_id
        return {
            "tokenizer_class": f"lmlab {self.tokenizer.spec}",
            "vocab_size": self.model.vocab_size,
            "bos_token": BEGIN,
            "bos_token_id": self.begin_id,
            "eos_token": None if end is None else self.token_text(end),
            "eos_token_id": end,
            "pad_token": None,
            "add_bos_token": False,
            "chat_template": None,
        }
