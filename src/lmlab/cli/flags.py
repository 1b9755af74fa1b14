"""Formats settings as command-line options. The library names a setting without dashes, and this module adds them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import Any

from lmlab.cli.explaining import TOPICS, WithTopics, topic
from lmlab_derive.shared.flags import written_flag

# Settings of decoding that have another name on the command line.
OTHERWISE = {"max_tokens": "tokens", "beam_width": "beam", "n_best": "best"}


def as_flag(verbs: Mapping[str, Any], arguments: Sequence[str]) -> Callable[[str, object], str]:
    """Return the function that formats a setting for `Mistake.written`, given the command that was called.

    Args:
        verbs: the commands, by name.
        arguments: the arguments of the command line.
    """
    verb = next((verbs[word] for word in arguments if word in verbs), None)
    if isinstance(verb, WithTopics):
        named = next((word for word in arguments if word in TOPICS), None)
        verb = verb if named is None else topic(named)
    names = {} if verb is None else {p.name: p for p in verb.params}

    def write(name: str, value: object) -> str:
        parameter = names.get(OTHERWISE.get(name, name))
        if parameter is None:
            return _assignment(name, value)
        return written_flag(parameter, value)

    return write


def _assignment(name: str, value: object) -> str:
    """Format a setting of the training loop (--learn) or of the model (--set)."""
    if value is None:
        return name
    from lmlab.learn.settings import TrainConfig

    is_training = name in {field.name for field in dataclasses.fields(TrainConfig)}
    return f"{'--learn' if is_training else '--set'} {quote(f'{name}={value}')}"
