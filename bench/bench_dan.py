"""Is `dan` as accurate and as fast as fastText? Labels of film reviews and of three other tables, with and without pairs.

    pip install --no-deps fasttext-wheel==0.9.2    # the peer; NumPy and pybind11, which it asks for, need not change
    LMLAB_BENCH_DATA=… python bench/bench_dan.py [--only imdb,tables,explanations] [--seeds 3] [--write]

imdb          accuracy on the test part of IMDB and processor seconds from the table to the trained model, `--seeds` times
tables        accuracy on the tables of dan_tables.py; `behind` is the upper end of the interval of the difference
explanations  of 1,000 reviews: does removing what they name change the score as they say?

fastText has, of three settings, the one that validates best, with and without pairs. Both sides read the same table with the
same reader, divide its texts into the same words and take turns. fastText is not asked to save its model, or to look for copies
of training rows among the test rows; `lmlab.train` does both.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lmlab
from dan_tables import TABLES
from explanations_hold import share_that_holds
from lmlab.learn.run import Run
from lmlab.tasks.classification.data import encoded
from lmlab.tasks.classification.measure import model_of
from lmlab.tasks.classification.misclassified import probabilities_of
from lmlab.tasks.classification.scores import gain
from lmlab.text.labelled import Labelled
from record import Recorder, arguments

HAS_PEER = importlib.util.find_spec("fasttext") is not None
DATA = Path(os.environ.get("LMLAB_BENCH_DATA", "nowhere"))
PEER = "fastText"
Setting = tuple[float, int]  # learning rate and epochs of fastText
MANY: Sequence[Setting] = ((0.1, 5), (0.25, 5), (0.1, 15))  # for long tables
FEW: Sequence[Setting] = ((0.1, 5), (0.25, 15), (0.5, 25))  # for short ones
LONGEST_S = 120.0  # of one run on two cores
EXAMPLES = 1000  # explained


@dataclass(frozen=True)
class Side:
    """This class is one trained model: what it says of each test example, and what training took."""

    right_B: np.ndarray
    cpu_s: float
    seconds: float

    @property
    def accuracy(self) -> float:
        """Share of the test examples that are labelled right."""
        return float(self.right_B.mean())


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what the work returns, its processor seconds, and its seconds."""
    cpu_s, seconds = time.process_time(), time.perf_counter()
    found = work()
    return found, time.process_time() - cpu_s, time.perf_counter() - seconds


def ours(data: str | Path, out: Path, pairs: bool, seed: int, quick: bool) -> tuple[Side, Run]:
    """Train `dan` on a table, from the file to the saved run."""
    run, cpu_s, seconds = timed(
        lambda: lmlab.train(
            "dan",
            data,
            out=out,
            budget="20steps" if quick else "1h",
            seed=seed,
            device="cpu",
            settings={"pairs": pairs},
        )
    )
    test = Labelled.from_spec(run.record.inputs.corpus).parts["test"]
    p_BK = probabilities_of(model_of(run, "cpu"), encoded(run.tokenizer, test))
    return Side(p_BK.argmax(1) == test.labels_B, cpu_s, seconds), run


class FastText:
    """This class trains fastText on a table, with or without pairs; how its file is prepared is part of the time."""

    def __init__(self, data: str | Path, pairs: bool) -> None:
        self.data, self.ngrams = data, 2 if pairs else 1

    def best_of(self, settings: Sequence[Setting], quick: bool) -> Setting:
        """Return the settings with which it validates best."""
        found = []
        for number, setting in enumerate(settings[:1] if quick else settings):
            accuracy = float(np.mean(self._train(setting, seed=0)["valid"]))
            print(f"  fastText, {self.ngrams}-grams of words, {named(setting)}: valid {accuracy:.4f}", flush=True)
            found.append((accuracy, -number))
        return settings[-max(found)[1]]

    def side(self, setting: Setting, seed: int) -> Side:
        """Train with a seed, and label the test part."""
        found = self._train(setting, seed)
        return Side(np.array(found["test"]), found["cpu_s"], found["seconds"])

    def _train(self, setting: Setting, seed: int) -> dict[str, Any]:
        rate, epochs = setting
        words = [self.data, self.ngrams, rate, epochs, seed, torch.get_num_threads()]
        command = [sys.executable, str(Path(__file__).with_name("fasttext_process.py")), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout))


def named(setting: Setting) -> str:
    """Return the settings in words."""
    return f"lr {setting[0]:g}, {setting[1]} epochs"


def imdb(record: Recorder, asked: argparse.Namespace, folder: Path) -> None:
    """Measure accuracy and time on 25,000 reviews, in turns with fastText."""
    data = DATA / "imdb"
    if not data.is_dir():
        print("imdb is skipped: LMLAB_BENCH_DATA names no folder with imdb/")
        return
    for pairs, least in ((False, 0.89), (True, 0.9)):
        name = "with pairs" if pairs else "without pairs"
        key = "imdb-pairs" if pairs else "imdb"
        peer = None if not HAS_PEER else FastText(data, pairs)
        setting = None if peer is None else peer.best_of(MANY, asked.quick)
        us, them = [], []
        for seed in range(asked.seeds):
            us.append(ours(data, folder / f"{key}-{seed}", pairs, seed, asked.quick)[0])
            if peer is not None and setting is not None:
                them.append(peer.side(setting, seed))
        record.add(f"{key}", f"dan {name}, IMDB, test part", [one.accuracy for one in us], "accuracy", least=least)
        record.add(f"{key}-s", f"dan {name}, IMDB, one run", [one.seconds for one in us], "s", most=LONGEST_S)
        if not them:
            continue
        what = f"dan beside fastText ({named(setting)}), IMDB, {name}"
        accuracies = [one.accuracy for one in us], [one.accuracy for one in them]
        record.compare(
            f"{key}-{PEER}", what, *accuracies, "accuracy", peer=PEER, more_is_better=True, least=1.0
        )  # fmt: skip
        times = [one.cpu_s for one in us], [one.cpu_s for one in them]
        record.compare(
            f"{key}-{PEER}-cpu", f"{what}, from the table to the model", *times, "processor s", peer=PEER, least=1.0
        )
        times = [one.seconds for one in us], [one.seconds for one in them]
        record.compare(f"{key}-{PEER}-s", f"{what}, from the table to the model", *times, "s", peer=PEER, least=1.0)


def tables(record: Recorder, asked: argparse.Namespace, folder: Path) -> None:
    """Measure accuracy on short tables; the seeds' test examples are taken together."""
    if not HAS_PEER:
        print("tables is skipped: fastText is not installed")
        return
    for name, (what, made) in TABLES.items():
        data = made(DATA, folder)
        if data is None:
            print(f"{name} is skipped: its data are absent")
            continue
        for pairs in (False, True):
            peer = FastText(data, pairs)
            setting = peer.best_of(FEW, asked.quick)
            key = f"{name}{'-pairs' if pairs else ''}"
            us = [ours(data, folder / f"{key}-{seed}", pairs, seed, asked.quick)[0] for seed in range(asked.seeds)]
            them = [peer.side(setting, seed) for seed in range(asked.seeds)]
            with_pairs = f"{what}, {'with' if pairs else 'without'} pairs"
            ahead = gain(us[0].right_B, them[0].right_B)  # of one seed: the examples of others are the same ones
            accuracies = [one.accuracy for one in us], [one.accuracy for one in them]
            record.compare(
                key,
                f"dan beside fastText ({named(setting)}), {with_pairs}",
                *accuracies,
                "accuracy",
                peer=PEER,
                more_is_better=True,
            )
            ends = {"low": ahead.low, "high": ahead.high, "spread": "95% interval"}
            record.add(f"{key}-ahead", f"accuracy above that of fastText, {with_pairs}", ahead.value, "", **ends)
            record.add(f"{key}-behind", f"highest it can be above fastText, {with_pairs}", ahead.high, "", least=0.0)


def explanations(record: Recorder, asked: argparse.Namespace, folder: Path) -> None:
    """Explain reviews of the test part, and hold each explanation against the model."""
    data = DATA / "imdb"
    if not data.is_dir():
        print("explanations is skipped: LMLAB_BENCH_DATA names no folder with imdb/")
        return
    _, run = ours(data, folder / "explained", True, 0, asked.quick)
    number = 5 if asked.quick else EXAMPLES
    for kind, (held, claims) in share_that_holds(run, number).items():
        what = f"Explanations of {number} reviews that hold, {kind} ({claims:,} claims)"
        record.add(f"explained-{kind}", what, held, "", least=1.0)


PARTS = {"imdb": imdb, "tables": tables, "explanations": explanations}


def main() -> None:
    """Measure the parts that were asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--seeds", type=int, default=3, help="how often each model is trained")
    asked = parser.parse_args()
    asked.seeds = 1 if asked.quick else asked.seeds
    if not HAS_PEER:
        print("fastText is not installed: dan has no peer (pip install --no-deps fasttext-wheel)")
    record = Recorder("dan", "accurate", asked, peers=("fasttext-wheel",))
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.only.split(","):
            PARTS[name](record, asked, Path(folder))


if __name__ == "__main__":
    main()
