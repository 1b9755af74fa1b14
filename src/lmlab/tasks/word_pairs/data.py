"""Pairs of words to learn from, made of a text or a table, with vectors of these words; the same again for a run on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lmlab.config import Mistake
from lmlab.hardware.choice import Hardware
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run
from lmlab.models.autoencoder import WIDTH, AutoencoderConfig
from lmlab.tasks.word_pairs.labelled_pairs import (
    CLASSES,
    Listed,
    Neighbouring,
    PairTable,
    WordPairs,
    is_table,
    keys_of,
    neighbouring,
    occurs,
    read_table,
)
from lmlab.tasks.word_vectors.data import plain_documents
from lmlab.tasks.word_vectors.learner import learned_vectors
from lmlab.text.corpus import Corpus, read
from lmlab.text.fingerprint import Fingerprint, fingerprint_of
from lmlab.text.parts import Part
from lmlab.text.tokenizers import Tokenizer, parse_spec, train_tokenizer
from lmlab.text.vectors import RUN_FILE, read_vectors

MOST = 20_000  # pairs that are held out for validation, and for the test
FEWEST = 20  # pairs without which nothing is learned
FREQUENT = 20_000  # pairs among which neighbours are looked for


class Source(Protocol):
    """Where pairs are drawn from."""

    def __len__(self) -> int: ...

    def draw(self, random: np.random.Generator, number: int) -> WordPairs:
        """So many, as this generator has it."""
        ...


@dataclass(frozen=True)
class Material:
    """Pairs to learn from, to validate with and to measure on."""

    classes: tuple[str, ...]
    train: Source
    valid: WordPairs
    test: WordPairs
    frequent_B2: np.ndarray  # pairs of the training part, most frequent first

    def part(self, name: str, seed: int) -> WordPairs:
        """The pairs of a part; of the training part as many as of the others at most."""
        if name == "train":
            return self.train.draw(np.random.default_rng([seed, 3]), MOST)
        return self.valid if name == "valid" else self.test


@dataclass(frozen=True, kw_only=True)
class PairData:
    """Pairs of words with the vectors of these words, and where both come from."""

    material: Material
    words: Tokenizer
    vectors_VX: np.ndarray
    origin: Mapping[str, Any]  # what the record of the run says of the text or table
    learned_from: Sequence[Fingerprint] = ()

    @property
    def name(self) -> str:
        """The name of the text or table."""
        return str(self.origin["name"])

    def spec(self) -> Mapping[str, Any]:
        """Where the text or table is, how it is divided, and the hashes of its parts."""
        return self.origin


def data_of_request(request: TrainingRequest, config: AutoencoderConfig, hardware: Hardware) -> PairData:
    """Read the text or table of a request, and read or learn vectors for its words."""
    tokenizer = request.tokenizer_spec or "words"
    if parse_spec(tokenizer)[0] != "words":
        raise Mistake(
            f"{request.model} combines words; its {{tokenizer}} is words or words:N",
            code="combiner-tokenizer",
            tokenizer=None,
        )
    request.refuse_taken_folder()
    if is_table(request.data):
        return _data_of_table(request, config, tokenizer)
    corpus = request.data if isinstance(request.data, Corpus) else read(request.data, **request.text_division)
    words = train_tokenizer(tokenizer, plain_documents(corpus.train), least=config.least)
    if config.vectors is None:
        request.watch.say(
            f"{request.model}: first, vectors for {words.vocab_size - 1:,} words are learned from the text"
        )
        width = config.width or WIDTH
        vectors_VX = learned_vectors(
            corpus.train, words, width, corpus.name, hardware, request.seed, least=config.least
        )
        vectors_VX[words.unknown_id] = 0
    else:
        vectors_VX = _given(config.vectors, words, config.width)
    return PairData(
        material=of_corpus(corpus, words, has_vector(vectors_VX), request.seed),
        words=words,
        vectors_VX=vectors_VX,
        origin=corpus.spec(),
        learned_from=[fingerprint_of(corpus.train)],
    )


def _data_of_table(request: TrainingRequest, config: AutoencoderConfig, tokenizer: str) -> PairData:
    if request.valid is not None or request.test is not None:
        message = "a table of pairs is divided by {split}; leave {valid} and {test} away"
        raise Mistake(message, code="table-beside-parts", split=None, valid=None, test=None)
    if config.vectors is None:
        raise Mistake(
            f"{request.data} has no text to learn word vectors from; set vectors to a GloVe text file or a run of glove",
            code="table-without-vectors",
        )
    table, split = read_table(request.data), tuple(request.split)
    words = train_tokenizer(tokenizer, [" ".join(f"{a} {b}" for _, a, b, _ in table.rows)], least=1)
    vectors_VX = _given(config.vectors, words, config.width)
    material = of_table(table, words, has_vector(vectors_VX), split, request.seed)
    origin = table_spec(table, material, split, request.seed)
    used = sum(part["pairs"] for part in origin["parts"].values())
    request.watch.say(f"{table.path.name}: {used:,} of {len(table.rows):,} pairs, those whose words have vectors")
    return PairData(material=material, words=words, vectors_VX=vectors_VX, origin=origin)


def data_of_run(run: Run) -> PairData:
    """What a run learned from and is measured on, read again; a Mistake if it has changed."""
    vectors_VX, _ = read_vectors(run.folder / RUN_FILE, pieces(run.tokenizer))
    origin = run.record.inputs.corpus
    material = again(dict(origin), run.tokenizer, has_vector(vectors_VX), run.record.training.seed)
    return PairData(material=material, words=run.tokenizer, vectors_VX=vectors_VX, origin=origin)


def of_corpus(corpus: Corpus, tokenizer: Tokenizer, has_vector_V: np.ndarray, seed: int) -> Material:
    """Pairs of a text; a word that is only a mark has no pairs."""
    is_word_V = np.array([piece.strip()[:1].isalnum() for piece in tokenizer.vocabulary.pieces])
    size, usable_V = tokenizer.vocab_size, has_vector_V & is_word_V
    parts = {name: neighbouring(part, tokenizer, usable_V) for name, part in corpus.parts.items()}
    train_B2 = parts["train"]
    if len(train_B2) < FEWEST:
        raise Mistake(
            f"{corpus.name} is too short: it has {len(train_B2)} pairs of words with vectors, and {FEWEST} is the least",
            code="text-with-few-pairs",
        )
    learned = np.unique(keys_of(train_B2, size))
    everywhere = np.unique(np.concatenate([keys_of(words_B2, size) for words_B2 in parts.values()]))
    held_out = []
    for number, name in enumerate(("valid", "test")):
        new_B2 = parts[name][~occurs(parts[name], learned, size)]
        source = Neighbouring(new_B2, everywhere, size)
        random = np.random.default_rng([seed, 1 + number])
        drawn = source.draw_once(random, MOST)
        held_out.append(drawn.chosen(np.flatnonzero(~occurs(drawn.words_B2, learned, size))))
    valid, test = held_out
    return Material(CLASSES, Neighbouring(train_B2, learned, size), valid, test, _frequent(train_B2, size))


def of_text(part: Part, tokenizer: Tokenizer, has_vector_V: np.ndarray, learned: np.ndarray, seed: int) -> WordPairs:
    """The pairs of another text that were not learned, and as many exchanged ones, as far as that many are measured elsewhere.

    learned: numbers of the pairs of the training part, sorted.
    """
    is_word_V = np.array([piece.strip()[:1].isalnum() for piece in tokenizer.vocabulary.pieces])
    size, words_B2 = tokenizer.vocab_size, neighbouring(part, tokenizer, has_vector_V & is_word_V)
    if not len(words_B2):
        raise Mistake("the text has no pair of words that have vectors", code="text-without-pairs")
    new_B2 = words_B2[~occurs(words_B2, learned, size)]
    if not len(new_B2):
        raise Mistake(
            "every pair of words of the text occurs in the training part; name a text that has others",
            code="text-without-new-pairs",
        )
    known = np.union1d(learned, keys_of(words_B2, size))
    drawn = Neighbouring(new_B2, known, size).draw_once(np.random.default_rng([seed, 2]), MOST)
    return drawn.chosen(np.flatnonzero(~occurs(drawn.words_B2, learned, size)))


def of_table(
    table: PairTable, tokenizer: Tokenizer, has_vector_V: np.ndarray, split: tuple[float, ...], seed: int
) -> Material:
    """Pairs of a table, divided by chance; a pair that stands there more than once goes with itself."""
    pairs = table.pairs(tokenizer, has_vector_V, table.classes)
    first_B = _first_of_its_kind(keys_of(pairs.words_B2, tokenizer.vocab_size))
    kinds = np.unique(first_B)
    order = np.random.default_rng(seed).permutation(len(kinds))
    edges = np.round(np.cumsum(split)[:2] / sum(split) * len(kinds)).astype(int)
    train, valid, test = (pairs.chosen(np.flatnonzero(np.isin(first_B, kinds[at]))) for at in np.split(order, edges))
    if len(train) < FEWEST:
        raise Mistake(
            f"{table.path} leaves {len(train)} pairs of words with vectors to learn from, and {FEWEST} is the least",
            code="table-with-few-pairs",
        )
    return Material(table.classes, Listed(train), valid, test, _frequent(train.words_B2, tokenizer.vocab_size))


def again(spec: dict[str, Any], tokenizer: Tokenizer, has_vector_V: np.ndarray, seed: int) -> Material:
    """Of a run: read again, and a Mistake if it is not what it was."""
    if "classes" not in spec:
        return of_corpus(Corpus.from_spec(spec), tokenizer, has_vector_V, seed)
    table = read_table(spec["text"])
    if table.sha256 != spec["parts"]["train"]["sha256"]:
        raise Mistake(
            f"{spec['text']} has changed since it was read; put the old file back, or train again", code="pairs-changed"
        )
    return of_table(table, tokenizer, has_vector_V, tuple(spec["split"]), seed)


def table_spec(table: PairTable, material: Material, split: tuple[float, ...], seed: int) -> dict[str, Any]:
    """For the record of a run."""
    sizes = {"train": len(material.train), "valid": len(material.valid), "test": len(material.test)}
    parts = {name: {"bytes": number, "pairs": number, "sha256": table.sha256} for name, number in sizes.items()}
    origin = {"text": str(table.path), "valid": None, "test": None, "split": list(split), "seed": seed}
    return {
        "name": Path(table.path.name.removesuffix(".gz")).stem,
        **origin,
        "classes": list(table.classes),
        "parts": parts,
    }


def _first_of_its_kind(keys_B: np.ndarray) -> np.ndarray:
    """Where each of these numbers stands for the first time."""
    _, first, kind_B = np.unique(keys_B, return_index=True, return_inverse=True)
    found: np.ndarray = first[kind_B]
    return found


def _frequent(words_B2: np.ndarray, vocab_size: int) -> np.ndarray:
    counts = Counter(keys_of(words_B2, vocab_size).tolist())
    keys = np.array(sorted(counts, key=lambda key: (-counts[key], key))[:FREQUENT], dtype=np.int64)
    return np.stack(np.divmod(keys, vocab_size), axis=1)


def has_vector(vectors_VX: np.ndarray) -> np.ndarray:
    """Which words have one: zeros stand for none."""
    found: np.ndarray = (vectors_VX != 0).any(1)
    return found


def pieces(words: Tokenizer) -> list[str]:
    """The words as a file of vectors has them; the unknown word is no word, and has no vector."""
    return [piece.strip(" ").replace(" ", "_") for piece in words.vocabulary.pieces]


def _given(path: str, words: Tokenizer, width: int | None) -> np.ndarray:
    vectors_VX, found = read_vectors(path, pieces(words))
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
