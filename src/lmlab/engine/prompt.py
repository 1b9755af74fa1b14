"""A prompt as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmlab.config import Mistake

if TYPE_CHECKING:
    from lmlab.text.tokenizers import Tokenizer


class Prompt(NamedTuple):
    """The ids of a prompt and the spellings of the unknown words among them."""

    ids: list[int]
    spellings: list[str]


def encoded_prompt(tokenizer: Tokenizer, prompt: str | Sequence[int], vocab_size: int) -> Prompt:
    """Return the ids of a prompt; ids are checked and taken as they are.

    A text is encoded by itself. A tokenizer may divide the whole text otherwise than prompt and continuation one after the
    other; that is how all language models over pieces of words are used, but it means that a `bpe` prompt should not end
    inside a word or in a space, and a `words` prompt not in a space.

    Raises:
        Mistake: the prompt is no text, no valid Unicode, or has ids outside the vocabulary.
    """
    if not isinstance(prompt, str):
        return Prompt(_checked_ids(prompt, vocab_size), [])
    try:
        prompt.encode()
    except UnicodeEncodeError as error:  # half a surrogate pair, or a byte of a command line that is not UTF-8
        at = error.start
        raise Mistake(
            f"the prompt is not valid Unicode at character {at}; give text in UTF-8", code="prompt-not-unicode"
        ) from None
    encoded = tokenizer.encode(prompt)
    return Prompt([int(id) for id in encoded.ids], list(encoded.spellings))


def _checked_ids(prompt: Sequence[int], vocab_size: int) -> list[int]:
    try:
        ids = [int(id) for id in prompt]
    except (TypeError, ValueError):
        raise Mistake(f"a prompt is a text; got {type(prompt).__name__}", code="prompt-not-text") from None
    if wrong := next((id for id in ids if not 0 <= id < vocab_size), None):
        raise Mistake(
            f"there is no token {wrong}; the ids of this model run from 0 to {vocab_size - 1}", code="prompt-id-unknown"
        )
    return ids
