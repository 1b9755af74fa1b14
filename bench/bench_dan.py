"""`dan` beside fastText's supervised mode on one table of labelled texts, in one run, both with one thread.

    pip install fasttext-wheel
    LMLAB_BENCH_DATA=… python bench/bench_dan.py [--pairs]

LMLAB_BENCH_DATA names a folder with imdb/, which holds train and test as `lmlab train dan` reads them. fastText is given
the same words, with the order of the texts drawn (it reads a file as it is, and one sorted by label teaches it nothing),
and its own defaults; --pairs adds a line with pairs of neighbouring words. It learns from all training texts, dan from
all but those it validates on. Printed are the accuracy on the test part, words learned from in a second (what one epoch
more takes: fastText reads its file again in each, as it is made to), and all seconds from the files to a model. Seconds
are the processor's, so that a busy machine disturbs them little.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

import torch

try:
    import fasttext
except ImportError:
    fasttext = None

import lmlab
from lmlab.classification.scores import ClassifierResult
from lmlab.classification.training import _fresh, _resolved, _task, _tokenizer
from lmlab.config import Budget
from lmlab.hardware.choice import as_asked, choose
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent
from lmlab.learn.settings import training_config
from lmlab.models.dan import DAN, DANConfig
from lmlab.text.labelled import Examples, Labelled, read_labelled
from lmlab.text.plain_words import words_of
from table import add_row

EPOCHS = 5  # fastText's own, and the most that dan takes by itself


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", action="store_true", help="fastText with pairs of words too")
    asked = parser.parse_args()
    folder = Path(os.environ.get("LMLAB_BENCH_DATA", "nowhere")) / "imdb"
    if fasttext is None or not folder.exists():
        print("fastText is not installed, or LMLAB_BENCH_DATA names no folder with imdb/: nothing to measure")
        return
    torch.set_num_threads(1)
    table = read_labelled(folder)
    with tempfile.TemporaryDirectory() as name:
        ours = dan(folder, table, Path(name))
        for most in (1, 2) if asked.pairs else (1,):
            theirs = fast_text(folder, Path(name), most)
            what = "words" if most == 1 else "words and pairs"
            if most == 1:
                add_row("dan, training", ours[1] / theirs[1], against="fastText", least=0.5)
                add_row("dan, accuracy", ours[0] - theirs[0], against="fastText", unit="more", least=0.0)
            print(
                f"fastText, {what}: accuracy {theirs[0]:.4f}, {theirs[1] / 1e6:.2f} million words/s, {theirs[2]:.1f} s in all;"
                f" dan learns at {ours[1] / theirs[1]:.2f} times its speed, {theirs[2] / ours[2]:.2f} times in all",
                flush=True,
            )


def dan(folder: Path, table: Labelled, scratch: Path) -> tuple[float, float, float]:
    """Accuracy, words per second of learning, and seconds in all."""
    started = time.process_time()
    run = lmlab.train("dan", folder, out=scratch / "run", budget="1h", device="cpu")
    whole_s = time.process_time() - started
    result = lmlab.evaluate(run, device="cpu")
    assert isinstance(result, ClassifierResult)
    config = training_config(Budget(steps=10**6), 0, {})
    words = _tokenizer(DAN, None, table)
    task = _task(DAN, table, words, config)
    fresh = _fresh(DAN, _resolved(DAN, DANConfig(), table, words, config.budget), words, 0)
    step = Trainer(fresh, task, config, as_asked(choose("cpu"), "eager"), scratch, Silent()).to_be_timed()
    for _ in range(10):
        step()
    started = time.process_time()
    for _ in range(task.steps_per_epoch):
        step()
    rate = len(task.train.ids_N) / (time.process_time() - started)
    found = result.scores.accuracy
    print(f"dan: accuracy {found}, {rate / 1e6:.2f} million words/s, {whole_s:.1f} s in all", flush=True)
    return found.value, rate, whole_s


def fast_text(folder: Path, scratch: Path, most: int) -> tuple[float, float, float]:
    """The same of fastText. most: words that are taken together."""
    started = time.process_time()
    table = read_labelled(folder)
    learned = [line for part in ("train", "valid") for line in lines_of(table.parts[part])]
    random.Random(0).shuffle(learned)
    (scratch / "learned.txt").write_text("".join(learned))
    prepared_s, taken = time.process_time() - started, {}
    (scratch / "test.txt").write_text("".join(lines_of(table.parts["test"])))
    for epochs in (1, EPOCHS):
        started = time.process_time()
        model = fasttext.train_supervised(
            str(scratch / "learned.txt"), epoch=epochs, thread=1, wordNgrams=most, verbose=0
        )
        taken[epochs] = time.process_time() - started
    _, accuracy, _ = model.test(str(scratch / "test.txt"))
    words = sum(line.count(" ") for line in learned)
    return accuracy, (EPOCHS - 1) * words / (taken[EPOCHS] - taken[1]), prepared_s + taken[EPOCHS]


def lines_of(examples: Examples) -> list[str]:
    """As fastText reads them."""
    labelled = zip(examples.texts, examples.labels_B.tolist(), strict=True)
    return [f"__label__{label} {words_of(text)}\n" for text, label in labelled]


if __name__ == "__main__":
    main()
