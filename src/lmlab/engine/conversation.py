"""A prompt that stays: texts continued one after the other, tried again, gone on with, under settings that may change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, final

from lmlab.config import MOST_SEED, Mistake, make, parse_settings
from lmlab.engine.engine import Engine
from lmlab.engine.generate import Stream
from lmlab.engine.options import Options

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.text.tokenizers import Tokenizer


@final
class Conversation:
    """Iterate over what `answer`, `retry` and `more` return: pieces of text, as they become certain.

    Each text is drawn with a seed of its own, counted up from the one in the settings, so that all of it can be repeated.
    """

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, **settings: Any) -> None:
        self._engine = Engine(model, tokenizer, max_rows=1, lookahead=1)
        self.options = make(Options, settings, "generate")
        self.prompt: str | None = None  # of the last text
        self.text = ""  # what followed it
        self._drawn = 0

    def answer(self, prompt: str) -> Iterator[str]:
        """Continue a prompt."""
        self.prompt, self.text = prompt, ""
        yield from self._go_on(prompt)

    def retry(self) -> Iterator[str]:
        """Continue the last prompt otherwise."""
        yield from self.answer(self._last())

    def more(self) -> Iterator[str]:
        """Go on from where the last text ended."""
        yield from self._go_on(self._last() + self.text)

    def change(self, name: str, value: str) -> None:
        """Change a setting, written as on a command line; a Mistake if there is none or it cannot be so."""
        changed = parse_settings(Options, [f"{name}={value}"], "generate", leave_out=("samples", "n_best", "stop"))
        self.options = dataclasses.replace(self.options, **changed)
        self._drawn = 0 if "seed" in changed else self._drawn  # the next text is drawn with the seed that was asked for

    def _last(self) -> str:
        if self.prompt is None:
            raise Mistake("nothing was generated yet; give a prompt first", code="nothing-generated-yet")
        return self.prompt

    def _go_on(self, prompt: str) -> Iterator[str]:
        seed = (self.options.seed + self._drawn) % (MOST_SEED + 1)  # behind the last seed comes the first
        self._drawn += 1
        for piece in Stream(self._engine, prompt, dataclasses.replace(self.options, seed=seed)):
            self.text += piece
            yield piece
