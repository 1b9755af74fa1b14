"""Learning to translate: what the loop learns from pairs of sentences, and how a translator is prepared for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from lmlab.config import Budget, Mistake, TextFacts
from lmlab.hardware.choice import Hardware
from lmlab.interface import Learner
from lmlab.learn.choose_size import sized
from lmlab.learn.onlookers import Silent, Watch
from lmlab.learn.pace import Speed
from lmlab.learn.prepare_text import fresh_model
from lmlab.learn.prepared import PreparedLearner
from lmlab.learn.request import TrainingRequest
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import PartName, Task
from lmlab.models.translator import BATCH_TOKENS, Translations, Translator, TranslatorConfig
from lmlab.tasks.translation.data import Encoded, Group, grouped
from lmlab.tasks.translation.decoding import translations
from lmlab.text.sentence_pairs import Pairs, Rows, read_pairs
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

EPOCHS = 60  # at most, where the budget is seconds; in more a translator learns its sentences by heart
DIVERGED_NATS = 2.0  # above the cost of guessing uniformly
LONGEST = 256  # tokens of a sentence, where nothing is set
BPE_SIZES = (8000, 4000, 2000, 1000, 500, 300)  # the first that the sentences have text and pairs for; else bytes
BYTES_PER_ID = 500  # of text: a token that is seldom met is not learned


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


def prepare(request: TrainingRequest) -> PreparedLearner:
    """Prepare a translator for pairs of sentences (see `read_pairs`).

    The columns of the request are the languages, the one that is translated first. One tokenizer serves all of them; by default
    it is bpe, as large as the sentences allow. The weights that are kept are the best by validation.
    """
    request.refuse_windows()
    spec, config, loop, hardware = request.tokenizer_spec, request.model_config, request.loop, request.hardware()
    pairs = _read(request)
    is_new = request.resumed is None
    tokenizer = _tokenizer(spec, pairs.parts["train"]) if request.resumed is None else request.resumed.tokenizer
    if is_new:
        languages = len(pairs.languages) - 1
        config = replace(config, languages=languages, context=config.context or _longest(pairs, tokenizer))
    task = _task(pairs, tokenizer, loop, config, hardware, request.watch if is_new else Silent())
    loop = replace(loop, budget=loop.budget.over(task.train.target_tokens))
    speed = None
    if is_new:
        config, speed = _sized(request, config, tokenizer, task, loop, hardware)
    if speed is not None:
        hardware = replace(hardware, now=speed.threads, tokens_per_second=speed.tokens_per_second)
        if speed.tokens > EPOCHS * task.train.target_tokens:
            request.watch.say(
                f"{request.model}: {request.budget} is more than {EPOCHS} epochs take, and more would be learned by heart"
            )
            loop = replace(loop, budget=Budget(steps=task.enough_steps))
    kept_to = loop.budget if request.budget.epochs is None else request.budget
    return PreparedLearner(
        request=request,
        data=pairs,
        tokenizer=tokenizer,
        config=config,
        training=request.training(kept_to),
        model=fresh_model(request.model_class, config, tokenizer, request.seed),
        task=task,
        loop=loop,
        hardware=hardware,
        speed=speed,
    )


def _read(request: TrainingRequest) -> Pairs:
    """The pairs of a request, or those of the run that is resumed."""
    if request.resumed is not None:
        return Pairs.from_spec(request.resumed.record.inputs.corpus)
    if not isinstance(request.data, str | Path):
        raise Mistake(
            f"{request.model} learns from one table of pairs; name a file, a folder or a corpus",
            code="translator-needs-one-table",
        )
    request.refuse_taken_folder()
    pairs = read_pairs(request.data, **request.table_division, columns=request.columns)
    source, *targets = pairs.languages
    say = request.watch.say
    say(f"{pairs.name}: {source} to {', '.join(targets)}, {len(pairs.parts['train']):,} rows to learn from")
    copied = pairs.copied(pairs.parts["test"])[1]
    if copied.number:
        marked = "" if copied.is_held_out else ": too many for a test part, and eval gives no certificate"
        say(f"{pairs.name}, sources of the test part: {copied}{marked}")
    return pairs


def _sized(
    request: TrainingRequest,
    config: TranslatorConfig,
    tokenizer: Tokenizer,
    task: Translating,
    loop: TrainConfig,
    hardware: Hardware,
) -> tuple[TranslatorConfig, Speed | None]:
    """Resolve the config for these pairs and this budget; for a budget of seconds also plan what is read."""
    train = task.train
    facts = TextFacts(train_tokens=train.target_tokens, train_bytes=train.target_bytes, vocab_size=tokenizer.vocab_size)
    timed = replace(task, timed=True)  # the first batch of every shape takes longer
    looked_at = task.valid.target_tokens if task.valid else 0
    return sized(
        request.model_class,
        config,
        facts,
        tokenizer.vocabulary,
        lambda *_: timed,
        loop,
        hardware,
        validation_tokens=loop.validations * looked_at,
    )


def _tokenizer(spec: str | None, rows: Rows) -> Tokenizer:
    """One for all languages, learned from the training part."""
    texts = [text for row in rows.texts for text in row]
    if spec is None:
        most = rows.bytes // BYTES_PER_ID
        for size in (size for size in BPE_SIZES if size <= max(most, BPE_SIZES[-1])):
            try:
                return train_tokenizer(f"bpe:{size}", texts)
            except Mistake:  # larger than these sentences allow
                continue
        return train_tokenizer("byte", texts)
    found = train_tokenizer(spec, texts)
    if found.unknown_id is not None:
        raise Mistake(
            "a translator writes any word: {tokenizer}, char or byte", code="translator-tokenizer", tokenizer="bpe:4000"
        )
    return found


def _longest(pairs: Pairs, tokenizer: Tokenizer) -> int:
    """Tokens of the longest sentence of all parts, within reason."""
    parts = [Encoded.of(tokenizer, rows) for rows in pairs.parts.values() if len(rows)]
    return min(LONGEST, max(int(part.lengths_BL.max()) for part in parts))


def _task(
    pairs: Pairs,
    tokenizer: Tokenizer,
    config: TrainConfig,
    settings: TranslatorConfig,
    hardware: Hardware,
    watch: Watch,
) -> Translating:
    """The training and validation rows that are not too long."""
    assert settings.context is not None
    parts, rows = {}, {}
    for name in ("train", "valid"):
        rows[name] = pairs.parts[name]
        encoded = Encoded.of(tokenizer, rows[name])
        if len(encoded):
            fits_B = encoded.lengths_BL.max(axis=1) <= settings.context
            if not fits_B.all():
                watch.say(
                    f"{pairs.name}: {(~fits_B).sum()} {name} rows are longer than {settings.context} tokens and left out"
                )
                rows[name] = rows[name].chosen(np.flatnonzero(fits_B))
                encoded = Encoded.of(tokenizer, rows[name])
        parts[name] = encoded
    if not len(parts["train"]):
        raise Mistake(
            f"no sentence of {pairs.name} is within a context of {settings.context} tokens; set a longer one",
            code="translator-context-too-short",
        )
    # Steps and tokens mean the same everywhere, seconds do not.
    larger = hardware.batch if config.budget.seconds is not None else 1
    return Translating(
        train=parts["train"],
        valid=parts["valid"] if len(parts["valid"]) else None,
        tokenizer=tokenizer,
        languages=pairs.languages[1:],
        rows=config.rows or max(1, BATCH_TOKENS * larger * len(parts["train"]) // parts["train"].target_tokens),
        example=rows["valid"].texts[0][0] if len(rows["valid"]) else None,
    )
