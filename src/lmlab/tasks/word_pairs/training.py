"""From a text or a table of pairs to a trained combiner: vectors for words, pairs, learning; and going on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from lmlab.config import Budget, Mistake, TextFacts, make
from lmlab.hardware.choice import Hardware, as_asked, as_chosen, choose
from lmlab.learn.asked import Asked
from lmlab.learn.fit import hardware_for, learn
from lmlab.learn.onlookers import Silent, Watch
from lmlab.learn.run import Run, refuse_if_taken
from lmlab.learn.settings import TrainConfig, training_config
from lmlab.models.autoencoder import WIDTH, Autoencoder, AutoencoderConfig
from lmlab.models.registry import model_class
from lmlab.tasks.word_pairs.labelled_pairs import is_table, read_table
from lmlab.tasks.word_pairs.material import Material, again, of_corpus, of_table, table_spec
from lmlab.tasks.word_pairs.task import ROWS, Combining
from lmlab.tasks.word_vectors.task import plain_documents
from lmlab.tasks.word_vectors.training import learned_vectors
from lmlab.text.corpus import Corpus, read
from lmlab.text.fingerprint import fingerprint_of
from lmlab.text.tokenizers import Tokenizer, parse_spec, train_tokenizer
from lmlab.text.vectors import RUN_FILE, read_vectors, write_vectors


def train(model: str, data: Any, asked: Asked) -> Run:
    """Learn to combine two words from a text, or from a table (.tsv, .csv) of two words and a label on each line.

    Without `vectors` among the settings, word vectors are learned from the training part of the text first.
    """
    watch, budget, seed, train_config = asked.watch, asked.budget, asked.seed, asked.config
    tokenizer = asked.tokenizer or "words"
    if parse_spec(tokenizer)[0] != "words":
        raise Mistake(
            f"{model} combines words; its {{tokenizer}} is words or words:N", code="combiner-tokenizer", tokenizer=None
        )
    config: AutoencoderConfig = make(model_class(model).Config, asked.settings, model)
    hardware = as_asked(hardware_for(train_config, asked.device, asked.precision), "eager")
    refuse_if_taken(asked.out)
    if is_table(data):
        if asked.valid is not None or asked.test is not None:
            message = "a table of pairs is divided by {split}; leave {valid} and {test} away"
            raise Mistake(message, code="table-beside-parts", split=None, valid=None, test=None)
        if config.vectors is None:
            raise Mistake(
                f"{data} has no text to learn word vectors from; set vectors to a GloVe text file or a run of glove",
                code="table-without-vectors",
            )
        table = read_table(data)
        words = train_tokenizer(tokenizer, [" ".join(f"{a} {b}" for _, a, b, _ in table.rows)], least=1)
        vectors_VX = _given(config.vectors, words, config.width)
        material = of_table(table, words, has_vector(vectors_VX), tuple(asked.split), seed)
        spec, learned_from = table_spec(table, material, tuple(asked.split), seed), []
        watch.say(_left_out(table.path.name, len(table.rows), spec["parts"]))
    else:
        corpus = data if isinstance(data, Corpus) else read(data, **asked.division)
        words = train_tokenizer(tokenizer, plain_documents(corpus.train), least=config.least)
        if config.vectors is None:
            watch.say(f"{model}: first, vectors for {words.vocab_size - 1:,} words are learned from the text")
            vectors_VX = learned_vectors(
                corpus.train, words, config.width or WIDTH, corpus.name, hardware, seed, least=config.least
            )
            vectors_VX[words.unknown_id] = 0
        else:
            vectors_VX = _given(config.vectors, words, config.width)
        material = of_corpus(corpus, words, has_vector(vectors_VX), seed)
        spec, learned_from = corpus.spec(), [fingerprint_of(corpus.train)]
    facts = TextFacts(train_tokens=len(material.train), train_bytes=0, vocab_size=words.vocab_size)
    config = dataclasses.replace(config, width=vectors_VX.shape[1], labels=len(material.classes))
    config = Autoencoder.resolve(config, facts, budget)
    train_config = dataclasses.replace(train_config, budget=budget.over(len(material.train)))
    training = asked.training(train_config.budget, chosen=hardware.chosen)
    run = asked.new_run(Combining.name, model, config, spec, words, training, learned_from)
    write_vectors(run.folder / RUN_FILE, _pieces(words), vectors_VX)
    return _learn(run, config, vectors_VX, material, train_config, hardware, watch)


def resume(run: Run, *, watch: Watch | None = None) -> Run:
    """Go on with a run that was stopped; with a budget of steps or tokens to the same bits as if it never had been."""
    asked = run.record.training
    train_config = training_config(Budget.parse(asked.budget), asked.seed, asked.learning)
    hardware = as_chosen(choose(asked.device, asked.precision), asked.chosen)
    config = make(Autoencoder.Config, run.record.model.config, Autoencoder.name)
    vectors_VX, _ = read_vectors(run.folder / RUN_FILE, _pieces(run.tokenizer))
    return _learn(run, config, vectors_VX, material_of(run), train_config, hardware, watch or Silent())


def material_of(run: Run) -> Material:
    """What a run learned from and is measured on."""
    vectors_VX, _ = read_vectors(run.folder / RUN_FILE, _pieces(run.tokenizer))
    return again(dict(run.record.inputs.corpus), run.tokenizer, has_vector(vectors_VX), run.record.training.seed)


def has_vector(vectors_VX: np.ndarray) -> np.ndarray:
    """Which words have one: zeros stand for none."""
    found: np.ndarray = (vectors_VX != 0).any(1)
    return found


def _learn(
    run: Run,
    config: AutoencoderConfig,
    vectors_VX: np.ndarray,
    material: Material,
    train_config: TrainConfig,
    hardware: Hardware,
    watch: Watch,
) -> Run:
    torch.manual_seed(train_config.seed)
    fresh = Autoencoder(config, run.tokenizer.vocab_size)
    fresh.take_vectors(torch.from_numpy(vectors_VX))
    task = Combining(
        train=material.train, valid=material.valid, labels=len(material.classes), rows=train_config.rows or ROWS
    )
    return learn(run, fresh, task, train_config, hardware, watch)


def _pieces(words: Tokenizer) -> list[str]:
    """The words as a file of vectors has them; the unknown one is no word, and has no vector."""
    return [piece.strip(" ").replace(" ", "_") for piece in words.vocabulary.pieces]


def _given(path: str, words: Tokenizer, width: int | None) -> np.ndarray:
    vectors_VX, found = read_vectors(path, _pieces(words))
    if width is not None and vectors_VX.shape[1] != width:
        raise Mistake(
            f"{path} has vectors of width {vectors_VX.shape[1]}, not {width}: leave width out",
            code="combiner-vectors-width",
        )
    if not found.any():
        raise Mistake(
            f"{path} has a vector for none of the {len(found)} words of the pairs", code="combiner-vectors-lack-words"
        )
    vectors_VX[words.unknown_id] = 0
    return vectors_VX


def _left_out(name: str, rows: int, parts: Mapping[str, Any]) -> str:
    used = sum(part["pairs"] for part in parts.values())
    return f"{name}: {used:,} of {rows:,} pairs, those whose words have vectors"
