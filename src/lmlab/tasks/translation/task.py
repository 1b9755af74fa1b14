"""Learning to translate: batches of sentences of similar lengths, every row once an epoch, in all its languages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from lmlab.interface import Learner
from lmlab.learn.task import PartName, Task
from lmlab.models.translator import Translations, Translator
from lmlab.tasks.translation.decoding import translations
from lmlab.tasks.translation.sentences import Encoded, Group, grouped
from lmlab.text.tokenizers import Tokenizer

EPOCHS = 60  # at most, where the budget is seconds; in more a translator learns its sentences by heart
DIVERGED_NATS = 2.0  # above the cost of guessing uniformly


@dataclass(frozen=True, kw_only=True, eq=False)
class Translating(Task):
    """The targets of every source."""

    name = "translation"
    thing = "token"
    unit = "bits per byte"

    train: Encoded
    valid: Encoded | None
    tokenizer: Tokenizer
    languages: tuple[str, ...]  # that are translated into
    rows: int  # sources in a step, on average
    timed: bool = False  # whether all batches have the commonest shape: then a few steps tell how long one takes
    example: str | None = None  # a sentence whose translation is written down now and then

    @cached_property
    def groups(self) -> list[Group]:
        """Of the training part."""
        found = grouped(self.train.lengths_BL, self.rows)
        return [max(found, key=lambda group: group.batches)] if self.timed else found

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which every row is seen once."""
        return sum(group.batches for group in self.groups)

    def batch(self, seed: int, step: int) -> Translations:
        """The next batch of this epoch, whose rows and order are drawn from (seed, epoch)."""
        epoch, place = divmod(step, self.steps_per_epoch)
        group, which = _epoch(self, seed, epoch)[place]
        return self.train.translations(which, group.rows, group.source, group.target)

    def validation(self) -> Iterable[Translations]:
        """All of the validation part."""
        if self.valid is None or not len(self.valid):
            return []
        groups = grouped(self.valid.lengths_BL, self.rows)
        return [
            self.valid.translations(which, len(which), group.source, group.target)
            for group in groups
            for which in np.array_split(group.members_B, group.batches)
        ]

    def measured(self, nats: float, part: PartName) -> Mapping[str, float]:
        """Bits of the targets, ends included, for each of their bytes; and nats for each token."""
        rows = self.valid if part == "valid" and self.valid is not None else self.train
        return {"bits_per_byte": nats * rows.target_tokens / (rows.target_bytes * math.log(2)), "nats": nats}

    def training_flops(self, model: Learner) -> float:
        """For each token of the targets, ends included, over an epoch."""
        of_one = [model.training_flops(group.rows, group.target, group.source) or 0 for group in self.groups]
        operations = sum(group.batches * each for group, each in zip(self.groups, of_one, strict=True))
        return operations / self.train.target_tokens

    @property
    def enough_steps(self) -> int:
        """Of a few epochs."""
        return EPOCHS * self.steps_per_epoch

    @property
    def worst_nats(self) -> float:
        """Somewhat above what guessing costs."""
        return math.log(self.tokenizer.vocab_size + 1) + DIVERGED_NATS

    def sample(self, model: Learner) -> str | None:
        """A sentence of the validation part in every language."""
        assert isinstance(model, Translator)
        if self.example is None:
            return None
        written = translations(model, self.tokenizer, [self.example], range(len(self.languages)), beam=1)
        lines = [f"{language}: {best[0][0].text}" for language, best in zip(self.languages, written, strict=True)]
        return "\n".join([self.example, *lines])


@lru_cache(maxsize=2)
def _epoch(task: Translating, seed: int, epoch: int) -> list[tuple[Group, np.ndarray]]:
    """The batches of an epoch in their order."""
    random = np.random.default_rng([seed, epoch])
    found = []
    for group in task.groups:
        order = random.permutation(group.members_B)
        found += [(group, order[first : first + group.rows]) for first in range(0, len(order), group.rows)]
    return [found[i] for i in random.permutation(len(found))]
