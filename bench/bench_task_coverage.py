"""How often the intervals of classifiers, translators, encoders, latent variables and combiners cover, and how wide they are.

    LMLAB_BENCH_DATA=folder python bench/bench_task_coverage.py [--quick] [--only masking,latents] [--runs FOLDER] [--out FILE]

A small model is trained for each task and scores a large real population once: film reviews, captions, a text. Test samples of
20 to 1,000 rows are drawn from it, and each gets its intervals by the code that `lmlab eval` uses. Of an encoder what is
drawn are windows of one text and the tokens masked in them, over and over. Of a figure: the share of intervals that hold the
number of the population, pooled over sizes; and the width, in widths of 3.92 true standard errors of the sampling, on average
and at the 95th percentile. --runs keeps the trained models and uses those that are there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import lmlab
from lmlab.hardware.choice import choose_device
from lmlab.learn.fit import stream_folder
from lmlab.learn.run import Run, opened
from lmlab.measure import score_part
from lmlab.measure.interval import Interval, difference, own_intervals, sums_within
from lmlab.measure.interval_units import Units
from lmlab.measure.row_intervals import over_rows
from lmlab.results import Figure
from lmlab.tasks.classification.data import encoded
from lmlab.tasks.classification.measure import model_of
from lmlab.tasks.classification.misclassified import probabilities_of
from lmlab.tasks.classification.scores import BagOfWords, bits, gain, of_share
from lmlab.tasks.latent import measure as latents
from lmlab.tasks.masked.measure import encoder_of, masked_units
from lmlab.tasks.translation import measure as translation_measure
from lmlab.tasks.translation import scores as translating
from lmlab.tasks.word_pairs import measure as combining
from lmlab.tasks.word_pairs.data import data_of_run
from lmlab.text.corpus import read
from lmlab.text.labelled import Labelled
from lmlab.text.sentence_pairs import Pairs
from lmlab.text.stream import tokenize

LOWEST, HIGHEST = 0.93, 0.97  # of a pooled coverage
MEAN_WIDTH, WIDE = 1.3, 2.0  # at most, on average and at the 95th percentile
SIZES = (20, 50, 200, 1000)
TASKS = ("classification", "translation", "masking", "latents", "combining")


@dataclass(frozen=True, kw_only=True)
class Found:
    """Of one figure: what the table has."""

    task: str
    figure: str
    sizes: tuple[int, ...]
    draws: int  # of each size
    coverage: float
    coverages: tuple[float, ...]  # by size
    width: float
    wide: float

    @property
    def holds(self) -> bool:
        """Whether all is within what is wanted."""
        return LOWEST <= self.coverage <= HIGHEST and self.width <= MEAN_WIDTH and self.wide <= WIDE

    def show(self) -> None:
        """As a row."""
        by_size = " ".join(f"{share:.3f}" for share in self.coverages)
        print(
            f"{self.task:15} {self.figure:28} {self.coverage:8.3f} ({by_size:23}) {self.width:6.2f} {self.wide:6.2f}"
            f"  {'holds' if self.holds else 'MISSED'}",
            flush=True,
        )


Draws = list[tuple[float, float, float]]  # value, low, high


def found_of(task: str, figure: str, truth: float, by_size: dict[int, Draws]) -> Found:
    """What draws of samples say."""
    coverages, widths = [], []
    for draws in by_size.values():
        value, low, high = np.array(draws).T
        coverages.append(float(((low <= truth) & (truth <= high)).mean()))
        widths.append((high - low) / (2 * 1.96 * math.sqrt(((value - truth) ** 2).mean())))
    return Found(
        task=task, figure=figure, sizes=tuple(by_size), draws=len(next(iter(by_size.values()))),
        coverage=float(np.mean(coverages)), coverages=tuple(coverages),
        width=float(np.mean([w.mean() for w in widths])), wide=float(np.quantile(np.concatenate(widths), 0.95)),
    )  # fmt: skip


def of_rows(
    task: str, of_sample: Callable[[np.ndarray], dict[str, Figure]], rows: int, sizes: Sequence[int], draws: int
) -> Iterator[Found]:
    """Draw rows with replacement; of_sample: the figures of the rows with these numbers."""
    random, truth = np.random.default_rng(0), of_sample(np.arange(rows))
    found: dict[str, dict[int, Draws]] = {name: {} for name in truth}
    for size in sizes:
        for _ in range(draws):
            for name, figure in of_sample(random.integers(0, rows, size)).items():
                found[name].setdefault(size, []).append((figure.value, figure.low, figure.high))
    for name, by_size in found.items():
        yield found_of(task, name, truth[name].value, by_size)


def classification(trained: Callable[..., Run], quick: bool, draws: int) -> Iterator[Found]:
    """A deep averaging network and a bag of words, on the film reviews."""
    run = trained("dan", data("imdb"), "dan", "60steps" if quick else "300steps")
    table = Labelled.from_spec(run.record.inputs.corpus)
    model, examples = model_of(run, "cpu"), table.parts["test"]
    texts, train = encoded(run.tokenizer, examples), encoded(run.tokenizer, table.parts["train"])
    p_BK, labels_B = probabilities_of(model, texts), examples.labels_B
    counted = BagOfWords.fit(train.ids_N, train.starts_B, train.labels_B, run.tokenizer.vocab_size, len(table.classes))
    bag_BK = counted.probabilities(texts.ids_N, texts.starts_B)

    def figures(at: np.ndarray) -> dict[str, Figure]:
        right_B, other_B = p_BK[at].argmax(1) == labels_B[at], bag_BK[at].argmax(1) == labels_B[at]
        return {
            "accuracy": of_share(int(right_B.sum()), len(at)),
            "macro F1": macro_f1_of(p_BK[at], labels_B[at]),
            "bits per label": bits(p_BK[at], labels_B[at]),
            "bits of the bag of words": bits(bag_BK[at], labels_B[at]),
            "accuracy, paired": gain(right_B, other_B),
        }

    yield from of_rows("classification", figures, len(labels_B), SIZES, draws)


def translation(trained: Callable[..., Run], quick: bool, draws: int) -> Iterator[Found]:
    """Two translators of different age, on captions; greedy."""
    folder = Path(tempfile.mkdtemp(prefix="lmlab-"))
    files = pair_files(folder, 2000 if quick else 20_000, 600 if quick else 6000)
    steps = (40, 20) if quick else (1500, 500)
    runs = [trained(f"translator-{n}", files[0], "translator", f"{n}steps", test=files[1]) for n in steps]
    rows = Pairs.from_spec(runs[0].record.inputs.corpus).parts["test"]
    translation_measure.BEAM = 1  # of a search nothing is asked here
    ours, theirs = (translation_measure.measured(run, rows, "cpu") for run in runs)
    references = rows.of(1)
    bytes_B = np.array([len(text.encode()) for text in references], dtype=np.float64)
    nats = [one.sentence_nats(0) for one in (ours, theirs)]
    sums = {name: [translating._sums_of(metric, one.written[0], references) for one in (ours, theirs)]
            for name, metric in translating._metrics().items()}  # fmt: skip

    def figures(at: np.ndarray) -> dict[str, Figure]:
        found = {
            "bits per byte": translating.bits_per_byte(nats[0][at], bytes_B[at]),
            "bits per byte, paired": translating.bits_per_byte(nats[0][at], bytes_B[at], nats[1][at]),
        }
        for name, metric in translating._metrics().items():
            own_BS, other_BS = (of_run[at] for of_run in sums[name])
            found[name] = over_rows(lambda s, m=metric: translating._scores_of(m, s), own_BS, least=0.0, most=100.0)
            both_BS = np.concatenate([own_BS, other_BS], axis=1)
            found[f"{name}, paired"] = over_rows(lambda s, m=metric: translating._difference(m, s), both_BS)
        return found

    yield from of_rows("translation", figures, len(rows), (20, 50, 200), draws)


def masking(trained: Callable[..., Run], quick: bool, draws: int) -> Iterator[Found]:
    """An encoder on one text: windows and masks drawn over and over, for the number that all windows and masks give."""
    run = trained("bert", data("tinyshakespeare/input.txt"), "bert", "60steps" if quick else "300steps")
    model, random = encoder_of(run, "cpu"), np.random.default_rng(0)
    stream = tokenize(run.corpus.parts["test"], run.tokenizer, stream_folder())
    learned = tokenize(run.corpus.train, run.tokenizer, stream_folder())
    counts_V = np.bincount(learned.ids, minlength=run.tokenizer.vocab_size) + 1.0
    unigram_V = -np.log(counts_V / counts_V.sum())
    in_one_piece = run.corpus.parts["test"].block_share is None

    def drawn(share: float) -> Any:
        sample = masked_units(model, stream, unigram_V, random, max(1, int(share * stream.tokens)))[0]
        # where the part is blocks of a file, these blocks are the whole that is asked for
        return replace(sample, units=replace(sample.units, block_share=None if in_one_piece else 1.0))

    repeats = max(20, draws // 10)
    whole = [drawn(2.0).units for _ in range(repeats)]
    truth = sum(one.nats_KU.sum(1) for one in whole) / sum(one.bytes_KU.sum(1) for one in whole) / math.log(2)
    found: dict[str, dict[int, Draws]] = {"masked": {}, "masked, paired": {}}
    for share in (0.3, 0.9):
        for _ in range(repeats * 3):
            sample = drawn(share)
            found["masked"].setdefault(round(100 * share), []).append(edges(sample.own_intervals()[0]))
            found["masked, paired"].setdefault(round(100 * share), []).append(edges(sample.difference(1, 0)))
    for name, value in (("masked", truth[0]), ("masked, paired", truth[1] - truth[0])):
        yield found_of("masking", name, float(value), found[name])


def latents_(trained: Callable[..., Run], quick: bool, draws: int) -> Iterator[Found]:
    """A latent-variable model on film reviews, each a document."""
    folder = Path(tempfile.mkdtemp(prefix="lmlab-"))
    lines = gzip.decompress(data("imdb/test.tsv.gz").read_bytes()).decode().splitlines()
    reviews = [line.split("\t", 1)[1] for line in lines if "\t" in line]
    for i, text in enumerate(reviews[:: len(reviews) // (200 if quick else 800)]):
        (folder / f"{i:04}.txt").write_text(text[:1500], encoding="utf-8")
    run = trained("variational", data("ptb/ptb.valid.txt"), "variational", "40steps" if quick else "300steps")
    part = read(folder, split=(100, 0, 0)).train
    model = latents.model_of(run, "cpu")
    scored = [score_part(latents.Bounded(model, 4, 0, tighten=tight), run.tokenizer, part) for tight in (False, True)]
    sizes_D = np.array([document.size for document in part.documents])
    stops_D = np.cumsum(sizes_D)
    sums = [sums_within(one.byte_ends, one.nats_per_token, stops_D - sizes_D, stops_D) for one in scored]
    nats_KD, bytes_KD = np.array([nats for nats, _ in sums]), np.array([size for _, size in sums])
    random = np.random.default_rng(0)
    truth = nats_KD.sum(1) / bytes_KD.sum(1) / math.log(2)
    found: dict[str, dict[int, Draws]] = {"bound": {}, "bound, paired": {}}
    for size in (20, 50, 200):
        for _ in range(draws):
            at = random.integers(0, len(sizes_D), size)
            units = Units(nats_KU=nats_KD[:, at], bytes_KU=bytes_KD[:, at], document_U=np.arange(size))
            found["bound"].setdefault(size, []).append(edges(own_intervals(units, about="kind")[0]))
            found["bound, paired"].setdefault(size, []).append(edges(difference(units, 0, 1, about="kind")))
    for name, value in (("bound", truth[0]), ("bound, paired", truth[0] - truth[1])):
        yield found_of("latents", name, float(value), found[name])


def combining_(trained: Callable[..., Run], quick: bool, draws: int) -> Iterator[Found]:
    """An autoencoder of two words, on pairs of a text."""
    run = trained("autoencoder", data("ptb/ptb.test.txt"), "autoencoder", "50steps" if quick else "300steps")
    material, model = data_of_run(run).material, run.saved
    pairs = material.test
    learned = material.train.draw(np.random.default_rng(0), 10_000)
    own = combining._of_model(model, pairs, choose_device("cpu"))
    x_NX2, learned_NX2 = combining._vectors(model, pairs), combining._vectors(model, learned)
    way = combining.Simple.fit("addition", learned_NX2, learned.labels_B, model.config.parent, len(material.classes))
    other = combining._of_simple(way, x_NX2)
    spread_N = ((x_NX2 - x_NX2.mean(0)) ** 2).sum(1)

    def figures(at: np.ndarray) -> dict[str, Figure]:
        sample = [combining._Outcome(one.squares_N[at], one.p_NK[at]) for one in (own, other)]
        alone = combining._scores(sample[0], spread_N[at], pairs.labels_B[at])
        ahead = combining._gain(sample[0], sample[1], spread_N[at], pairs.labels_B[at])
        return {"brought back": alone.explained, "accuracy": alone.accuracy, "bits per label": alone.bits,
                "brought back, paired": ahead.explained, "accuracy, paired": ahead.accuracy}  # fmt: skip

    yield from of_rows("combining", figures, len(pairs), SIZES, draws)


def macro_f1_of(p_BK: np.ndarray, labels_B: np.ndarray) -> Figure:
    """As `scores` has it, without the calibration error, which takes long."""
    from lmlab.tasks.classification import scores as module

    right = of_share(int((p_BK.argmax(1) == labels_B).sum()), len(labels_B))
    f1 = over_rows(module._f1_of_counts, module._counts(p_BK, labels_B), least=0.0, most=1.0)
    return module._as_wide_at_the_ends(f1, right)


def edges(one: Interval) -> tuple[float, float, float]:
    """An interval that is there."""
    assert one.low is not None
    assert one.high is not None
    return one.estimate, one.low, one.high


def data(name: str) -> Path:
    """A file of the data to measure on."""
    return Path(os.environ["LMLAB_BENCH_DATA"]) / name


def pair_files(folder: Path, learned: int, measured: int) -> tuple[Path, Path]:
    """Captions, German to English: to learn from, and the population."""
    lines = [data(f"multi30k/train.{language}").read_text(encoding="utf-8").split("\n") for language in ("de", "en")]
    rows = [f"{a.strip()}\t{b.strip()}\n" for a, b in zip(*lines, strict=True) if a.strip() and b.strip()]
    files = folder / "train.tsv", folder / "test.tsv"
    for file, some in zip(files, (rows[:learned], rows[learned : learned + measured]), strict=True):
        file.write_text("de\ten\n" + "".join(some), encoding="utf-8")
    return files


def main() -> int:
    """Exit code 1 if a figure is not within what is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="hardly trained models and few draws: whether it runs")
    parser.add_argument("--only", default=",".join(TASKS), help="tasks, comma-separated")
    parser.add_argument("--draws", type=int, help="samples of each size")
    parser.add_argument("--runs", type=Path, help="where trained models are kept and looked for")
    parser.add_argument("--out", type=Path, help="a JSON file")
    asked = parser.parse_args()
    if "LMLAB_BENCH_DATA" not in os.environ:
        parser.error("set LMLAB_BENCH_DATA to the folder with imdb, multi30k, ptb and tinyshakespeare")
    runs = asked.runs or Path(tempfile.mkdtemp(prefix="lmlab-"))
    draws, started = asked.draws or (60 if asked.quick else 1000), time.perf_counter()

    def trained(name: str, text: Path, model: str, budget: str, **more: Any) -> Run:
        folder = runs / (f"quick-{name}" if asked.quick else name)
        if not folder.exists():
            lmlab.train(model, text, out=folder, budget=budget, device="cpu", **more)
        return opened(folder)

    tasks = {"classification": classification, "translation": translation, "masking": masking}
    tasks |= {"latents": latents_, "combining": combining_}
    found: list[Found] = []
    print(f"{'task':15} {'figure':28} {'coverage':>8} ({'by size':23}) {'width':>6} {'95%':>6}")
    for name in asked.only.split(","):
        for one in tasks[name](trained, asked.quick, draws):
            one.show()
            found.append(one)
    missed = [f"{one.task}: {one.figure}" for one in found if not one.holds]
    print(f"{time.perf_counter() - started:.0f} s; " + ("all hold" if not missed else "MISSED: " + "; ".join(missed)))
    if asked.out:
        rows = [{**asdict(one), "holds": one.holds} for one in found]
        asked.out.write_text(json.dumps({"quick": asked.quick, "figures": rows}, indent=1) + "\n")
    return 1 if missed and not asked.quick else 0


if __name__ == "__main__":
    sys.exit(main())
