"""From pairs of sentences to a trained translator: read, tokenise, learn, save; and going on with it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lmlab.config import Budget, Mistake, TextFacts, make
from lmlab.hardware.choice import Hardware, as_chosen, choose
from lmlab.hardware.threads import as_now
from lmlab.interface import Learner
from lmlab.learn.asked import Asked
from lmlab.learn.choose_size import sized
from lmlab.learn.fit import hardware_for, learn
from lmlab.learn.onlookers import Silent, Watch
from lmlab.learn.run import Run, refuse_if_taken
from lmlab.learn.settings import TrainConfig, training_config
from lmlab.models.registry import model_class
from lmlab.models.translator import BATCH_TOKENS, TranslatorConfig
from lmlab.tasks.translation.sentences import Encoded
from lmlab.tasks.translation.task import EPOCHS, Translating
from lmlab.text.sentence_pairs import Pairs, Rows, read_pairs
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

LONGEST = 256  # tokens of a sentence, where nothing is set
BPE_SIZES = (8000, 4000, 2000, 1000, 500, 300)  # the first that the sentences have text and pairs for; else bytes
BYTES_PER_ID = 500  # of text: a token that is seldom met is not learned


def train(model: str, data: Any, asked: Asked) -> Run:
    """Train a translator on pairs of sentences (see `read_pairs`) and save it.

    Its columns are the languages, the one that is translated first; its tokenizer is one for all of them, by itself bpe, as
    large as the sentences allow. The weights that are kept are the best by validation.
    """
    if not isinstance(data, str | Path):
        raise Mistake(
            f"{model} learns from one table of pairs; name a file, a folder or a corpus",
            code="translator-needs-one-table",
        )
    watch, budget, learning, train_config = asked.watch, asked.budget, dict(asked.learning), asked.config
    cls = model_class(model)
    config: Any = make(cls.Config, asked.settings, model)
    hardware = hardware_for(train_config, asked.device, asked.precision)
    refuse_if_taken(asked.out)
    pairs = read_pairs(data, **asked.division_of_rows, columns=asked.columns)
    source, *targets = pairs.languages
    watch.say(f"{pairs.name}: {source} to {', '.join(targets)}, {len(pairs.parts['train']):,} rows to learn from")
    copied = pairs.copied(pairs.parts["test"])[1]
    if copied.number:
        marked = "" if copied.is_held_out else ": too many for a test part, and eval gives no certificate"
        watch.say(f"{pairs.name}, sources of the test part: {copied}{marked}")
    tokens = _tokenizer(asked.tokenizer, pairs.parts["train"])
    config = dataclasses.replace(config, languages=len(targets), context=config.context or _longest(pairs, tokens))
    task = _task(pairs, tokens, train_config, config, hardware, watch)
    whole = task.train
    train_config = dataclasses.replace(train_config, budget=budget.over(whole.target_tokens))
    facts = TextFacts(train_tokens=whole.target_tokens, train_bytes=whole.target_bytes, vocab_size=tokens.vocab_size)
    timed = dataclasses.replace(task, timed=True)  # the first batch of every shape takes longer
    config, plan = sized(
        cls, config, facts, tokens.vocabulary, lambda *_: timed, train_config, hardware,
        validation_tokens=train_config.validations * (task.valid.target_tokens if task.valid else 0),
    )  # fmt: skip
    if plan is not None:
        hardware = dataclasses.replace(hardware, now=plan.threads)
        if plan.tokens > EPOCHS * whole.target_tokens:
            watch.say(f"{model}: {budget} is more than {EPOCHS} epochs take, and more would be learned by heart")
            enough = Budget(steps=task.enough_steps)
            hardware, train_config = as_now(hardware), dataclasses.replace(train_config, budget=enough)
            learning["rows"] = task.rows  # which followed from the seconds
    kept_to = train_config.budget if budget.epochs is None else budget
    training = asked.training(kept_to, learning=learning, chosen=hardware.chosen, planned=plan)
    run = asked.new_run(Translating.name, model, config, pairs.spec(), tokens, training)
    return learn(run, _fresh(cls, config, tokens, asked.seed), task, train_config, hardware, watch)


def resume(run: Run, *, watch: Watch | None = None) -> Run:
    """Go on with a run that was stopped; with a budget of steps or tokens to the same bits as if it never had been."""
    asked, tokens = run.record.training, run.tokenizer
    config = training_config(Budget.parse(asked.budget), asked.seed, asked.learning)
    cls = model_class(run.record.model.name)
    settings: Any = make(cls.Config, run.record.model.config, cls.name)
    hardware = as_chosen(choose(asked.device, asked.precision), asked.chosen)
    task = _task(Pairs.from_spec(run.record.inputs.corpus), tokens, config, settings, hardware, Silent())
    config = dataclasses.replace(config, budget=config.budget.over(task.train.target_tokens))
    return learn(run, _fresh(cls, settings, tokens, asked.seed), task, config, hardware, watch or Silent())


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


def _fresh(cls: type[Learner], config: Any, tokenizer: Tokenizer, seed: int) -> Learner:
    torch.manual_seed(seed)
    return cls(config, tokenizer.vocab_size)
