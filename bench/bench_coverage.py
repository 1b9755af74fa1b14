"""Do 95% intervals cover what they say they cover, 95 times of 100? And do ranks tell equal models apart by chance?

    python bench/bench_coverage.py [--quick] [--draws 600] [--families 1000] [--texts sotu,markov]

N-grams are trained on one part of a text, and every token of a large other part is scored once. That part is the population:
its bits per byte are the truth. Then thousands of measurements are simulated on the scores, as the lab makes them (places
spread over the text, intervals, ranks), and counted.

    part      24 kB, 120 kB, 1 MB spread over the population; the interval is for all of it
    kind      parts of some documents drawn from all, measured whole or by 120 kB; the interval is for text of this kind
    families  2, 5 and 11 models that are equal on the population, and different from place to place as real models are;
              how often any two are told apart
    stretch   the same of one short text that is measured whole, whose models (made up) rise and fall slowly beside each other:
              they forget after a 64th of the text up to a quarter of it, each for itself or all in two common ways

Own: bits per byte of each n-gram. Paired: differences of two. The methods were developed on sotu and tiny Shakespeare; the
others were looked at afterwards. Where LMLAB_BENCH_DATA names a folder with tinyshakespeare/, ptb/ and imdb/, those are used.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from lmlab.measure.chosen_places import Places, draw_places
from lmlab.measure.interval import intervals
from lmlab.measure.interval_units import About, Units
from lmlab.measure.ranks import Ranking, ranking
from lmlab.measure.score import score_part
from lmlab.models.ngram import NGram
from lmlab.text import sources
from lmlab.text.parts import Document, Part
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import train_tokenizer

DEVELOPED_ON = ("sotu", "tinyshakespeare")
STRETCH = "stretch"
NAMED = ("sotu", "gutenberg", "python-docs", "markov:length=6000000", STRETCH)
FILES = {"tinyshakespeare": "tinyshakespeare/input.txt", "ptb": "ptb/ptb.train.txt", "imdb": "imdb/train.tsv.gz"}
QUICK = ("python-docs", "markov:length=600000")
MODELS = (("byte", 2), ("byte", 4), ("byte", 6), ("words", 3))
WITHOUT_WORDS = (*MODELS[:3], ("byte", 3))  # for a text that is one long word
PAIRS = list(combinations(range(len(MODELS)), 2))
MEASURED = (24_000, 120_000, 1_000_000)
DOCUMENTS = (20, 40, 100)
FAMILY_SIZES = (2, 5, 11)
CELLS, FORGOTTEN = 625, (64, 16, 8, 4)  # of a stretch of 20 kB; after what part of it its models have forgotten
TRAIN_BYTES, HELD_OUT_BYTES = 1_500_000, 11_000_000
LOWEST, HIGHEST, MOST_APART = 0.92, 0.98, 0.05


@dataclass(frozen=True, eq=False)
class Population:
    """Documents, and the nats of each model up to each byte of them, laid end to end."""

    name: str
    sizes_D: np.ndarray
    nats_KN: np.ndarray  # K×(bytes + 1)

    @property
    def bits_K(self) -> np.ndarray:
        """The truth."""
        return self.nats_KN[:, -1] / (math.log(2) * self.sizes_D.sum())

    def measured(self, chosen_D: np.ndarray, places: Places, nats_KN: np.ndarray | None = None) -> Units:
        """What a measurement of these places in these documents would see."""
        offset_U = (np.cumsum(self.sizes_D) - self.sizes_D)[chosen_D][places.document_U]
        starts_U, stops_U = offset_U + places.starts_U, offset_U + places.stops_U
        table = self.nats_KN if nats_KN is None else nats_KN
        nats_KU = table[:, stops_U] - table[:, starts_U]
        bytes_KU = np.broadcast_to((stops_U - starts_U).astype(np.float64), nats_KU.shape)
        return Units(nats_KU=nats_KU, bytes_KU=bytes_KU, document_U=places.document_U, share=places.share)


def documents_of(name: str, folder: Path) -> list[Document]:
    """The documents of a named corpus or of one of the files; reviews are documents of one file."""
    if name not in FILES:
        return [Document(path, 0, path.stat().st_size) for path in sources.get(name)]
    path = Path(os.environ["LMLAB_BENCH_DATA"]) / FILES[name]
    if name != "imdb":
        return [Document(path, 0, path.stat().st_size)]
    documents, end, copy = [], 0, folder / "imdb.txt"
    with gzip.open(path, "rb") as packed, open(copy, "wb") as file:
        for line in packed:
            review = line.split(b"\t", 1)[1]
            file.write(review)
            documents.append(Document(copy, end, end + len(review)))
            end += len(review)
            if end > 4 * TRAIN_BYTES:
                break
    return documents


def divided(documents: list[Document]) -> tuple[Part, Part]:
    """A part to train on and the population: documents at random, or the two sides of a cut in a single one."""
    total = sum(document.size for document in documents)
    wanted = min(TRAIN_BYTES, total // 2)
    if len(documents) == 1:
        head, tail = documents[0].split_at(round(documents[0].characters() * wanted / total))
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
    for spec, order in WITHOUT_WORDS if name.startswith("markov") else MODELS:
        tokenizer = train_tokenizer(spec, train.pieces())
        model = NGram.fit(NGram.Config(order=order), tokenizer.vocabulary, tokenize(train, tokenizer, folder))
        scored = score_part(model, tokenizer, held)
        ends = np.concatenate([[0], scored.byte_ends])
        upto = np.concatenate([[0.0], np.cumsum(scored.nats_per_token, dtype=np.float64)])
        last = np.append(np.diff(ends) > 0, True)  # of the tokens that end at one byte; some have no bytes
        nats.append(np.interp(np.arange(held.bytes + 1), ends[last], upto[last]))
    sizes = np.array([document.size for document in held.documents])
    return Population(name.partition(":")[0], sizes, np.array(nats))


def coverage(truth: Population, measurements: Iterator[Units], about: About) -> tuple[np.ndarray, np.ndarray]:
    """(share of own intervals, of paired ones) that contain the truth, for each model and pair."""
    contrasts_KP = np.zeros((len(MODELS), len(MODELS) + len(PAIRS)))
    contrasts_KP[:, : len(MODELS)] = np.eye(len(MODELS))
    for column, (i, j) in enumerate(PAIRS, start=len(MODELS)):
        contrasts_KP[i, column], contrasts_KP[j, column] = 1.0, -1.0
    true_P, hits = truth.bits_K @ contrasts_KP, []
    for units in measurements:
        found = intervals(units, contrasts_KP, units.bits_K @ contrasts_KP, about, 0.95)
        hits.append([i.low is not None and i.low <= t <= (i.high or 0.0) for i, t in zip(found, true_P, strict=True)])
    share_P = np.mean(hits, axis=0)
    return share_P[: len(MODELS)], share_P[len(MODELS) :]


def spread_draws(truth: Population, limit: int, draws: int) -> Iterator[Units]:
    """Measurements of `limit` bytes spread over the population."""
    everyone = np.arange(len(truth.sizes_D))
    return (truth.measured(everyone, draw_places(truth.sizes_D, limit, seed)) for seed in range(draws))


def document_draws(truth: Population, count: int, limit: int, draws: int) -> Iterator[Units]:
    """Measurements of `limit` bytes spread over `count` documents drawn from all."""
    for seed in range(draws):
        chosen_D = np.random.default_rng(seed).choice(len(truth.sizes_D), count, replace=False)
        yield truth.measured(chosen_D, draw_places(truth.sizes_D[chosen_D], limit, seed))


def equal_models(truth: Population, models: int, limit: int, seed: int) -> Units:
    """A measurement of models that are equal on the population: one of the n-grams, plus real differences between n-grams.

    A difference is made to sum to zero over the population. Each model gets a random mixture of them, as they are (so that
    documents matter) and as they are elsewhere in the text (so that models differ in many ways).
    """
    rng = np.random.default_rng(seed)
    N = int(truth.sizes_D.sum())
    places = draw_places(truth.sizes_D, limit, seed)
    offset_U = (np.cumsum(truth.sizes_D) - truth.sizes_D)[places.document_U]
    starts_U, stops_U = offset_U + places.starts_U, offset_U + places.stops_U
    bytes_U = (stops_U - starts_U).astype(np.float64)

    def nats(shift: int) -> np.ndarray:
        """Of each n-gram in the places, moved on by some bytes around the text, beside what it has on average."""
        ends = [(edge + shift) % N for edge in (stops_U, starts_U)]
        turned = (stops_U + shift) // N - (starts_U + shift) // N
        total_K = truth.nats_KN[:, -1:]
        return truth.nats_KN[:, ends[0]] - truth.nats_KN[:, ends[1]] + turned * total_K - bytes_U * total_K / N

    here_KU = nats(0)
    rows = []
    for _ in range(models):
        own = rng.standard_normal(len(MODELS))
        other = rng.standard_normal(len(MODELS))
        mixed = (own - own.mean()) @ here_KU + (other - other.mean()) @ nats(int(rng.integers(N)))
        rows.append(truth.nats_KN[2, stops_U] - truth.nats_KN[2, starts_U] + 0.3 * mixed)
    return Units(
        nats_KU=np.array(rows),
        bytes_KU=np.broadcast_to(bytes_U, (models, len(bytes_U))),
        document_U=places.document_U,
        share=places.share,
    )


def drifting_models(models: int, memory: float, common: bool, seed: int) -> Units:
    """A stretch that was measured whole, and models that are equal in the long run: noise, and a drift of so long a memory."""
    rng = np.random.default_rng(seed)
    steps = CELLS + round(6 * memory)  # a drift has settled before the stretch begins
    kept = math.exp(-1 / memory)
    pushes = math.sqrt(1 - kept**2) * rng.standard_normal((models, steps))
    drift = np.zeros((models, steps))
    for i in range(1, steps):
        drift[:, i] = kept * drift[:, i - 1] + pushes[:, i]
    if common:
        drift = rng.standard_normal((models, 2)) @ drift[:2]
    bits = 2.0 + 0.3 * drift[:, -CELLS:] + 0.15 * rng.standard_normal((models, CELLS))
    bytes_KU = np.full((models, CELLS), 32.0)
    return Units(nats_KU=bits * bytes_KU * math.log(2), bytes_KU=bytes_KU, document_U=np.zeros(CELLS, dtype=np.int64))


def report_stretches(table: Table, families: int) -> None:
    """Families of drifting models, of which each forgets by itself or all in common ways."""
    for models in FAMILY_SIZES:
        apart = wrong = 0
        for seed in range(families):
            memory, common = CELLS / FORGOTTEN[seed % len(FORGOTTEN)], seed // len(FORGOTTEN) % 2 == 1
            found = ranking(drifting_models(models, memory, common and models > 2, seed), seed=seed)
            apart += bool(found.apart_KK.any())
            wrong += contradictions(found)
        table.told_apart(STRETCH, f"families of {models} equal models", apart, families, wrong)


def contradictions(found: Ranking) -> int:
    """Pairs for which ranks or letters say something else than the intervals."""
    wrong, ranks, apart_KK = 0, found.ranks, found.apart_KK
    for i, j in combinations(range(len(ranks)), 2):
        apart = bool(apart_KK[i, j])
        wrong += apart and ranks[i] == ranks[j]
        wrong += apart == bool(set(found.letters[i]) & set(found.letters[j]))
    return wrong


class Table:
    """Prints rows and remembers whether all of them hold."""

    def __init__(self) -> None:
        self.missed: list[str] = []
        print(f"{'text':16} {'what':28} {'own (lowest–highest)':24} {'paired (lowest–highest)':24} verdict")

    def covered(self, text: str, what: str, own: np.ndarray, paired: np.ndarray) -> None:
        """A row of coverage; the mean over models and over pairs counts, for a single one is noisy."""
        good = all(LOWEST <= share.mean() <= HIGHEST for share in (own, paired))
        cells = [f"{share.mean():.3f} ({share.min():.3f}–{share.max():.3f})" for share in (own, paired)]
        self._row(text, what, f"{cells[0]:24} {cells[1]:24}", good)

    def told_apart(self, text: str, what: str, apart: int, families: int, wrong: int) -> None:
        """A row of families of equal models."""
        most = MOST_APART + 2 * math.sqrt(MOST_APART * (1 - MOST_APART) / families)
        detail = f"told apart in {apart / families:.3f} of {families} (at most {most:.3f}), {wrong} contradictions"
        self._row(text, what, f"{detail:49}", apart / families <= most and not wrong)

    def _row(self, text: str, what: str, detail: str, good: bool) -> None:
        if not good:
            self.missed.append(f"{text}, {what}")
        name = text + ("*" if text in DEVELOPED_ON else "")
        print(f"{name:16} {what:28} {detail} {'holds' if good else 'MISSED'}", flush=True)


def report(truth: Population, table: Table, draws: int, families: int) -> None:
    """All rows of one text."""
    total, documents = int(truth.sizes_D.sum()), len(truth.sizes_D)
    possible = [limit for limit in MEASURED if limit <= 0.6 * total]
    for limit in possible:
        own, paired = coverage(truth, spread_draws(truth, limit, draws), "part")
        table.covered(truth.name, f"part: {limit // 1000} kB of {total / 1e6:.1f} MB", own, paired)
    for count in DOCUMENTS:
        if count > 0.2 * documents:  # of more of them the error is smaller than of documents of an endless kind
            continue
        for limit in (120_000, 1 << 40):
            own, paired = coverage(truth, document_draws(truth, count, limit, draws), "kind")
            size = "whole" if limit > total else f"{limit // 1000} kB"
            table.covered(truth.name, f"kind: {count} documents, {size}", own, paired)
    for models in FAMILY_SIZES:
        apart = wrong = 0
        for seed in range(families):
            found = ranking(equal_models(truth, models, possible[seed % len(possible)], seed), seed=seed)
            apart += bool(found.apart_KK.any())
            wrong += contradictions(found)
        table.told_apart(truth.name, f"families of {models} equal models", apart, families, wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small texts, few draws")
    parser.add_argument("--draws", type=int, help="measurements simulated for each row")
    parser.add_argument("--families", type=int, help="families of equal models for each row")
    parser.add_argument("--texts", help=f"names, comma-separated; {STRETCH}: made-up ones")
    options = parser.parse_args()
    names = list(QUICK if options.quick else NAMED)
    if os.environ.get("LMLAB_BENCH_DATA") and not options.quick:
        names += FILES
    if options.texts:
        names = options.texts.split(",")
    draws = options.draws or (200 if options.quick else 600)
    families = options.families or (200 if options.quick else 1000)
    started, table = time.perf_counter(), Table()
    with tempfile.TemporaryDirectory(prefix="lmlab-") as folder:
        for name in names:
            if name == STRETCH:
                report_stretches(table, families)
            else:
                report(population(name, Path(folder)), table, draws, families)
    print(f"\n* the methods were developed on this text. {time.perf_counter() - started:.0f} s")
    print("all hold" if not table.missed else "MISSED: " + "; ".join(table.missed))


if __name__ == "__main__":
    main()
