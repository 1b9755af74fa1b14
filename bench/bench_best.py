"""Does `lmlab best` find a better model than `lmlab compare` and its mix, in the same time?

    python bench/bench_best.py [--budget 5m] [--texts shakespeare,code] [--write]

For each text, both verbs run one after the other with one budget, from reading the text on. Then, outside of the budget, the
winner of the comparison, its mix and the model of the search are measured on the whole test part, by the same bytes. Ratios are
bits per byte of the search, over those of the better of the two others. Texts are made of what is on this machine: the data of
LMLAB_BENCH_DATA, sources of Python and of torch, a log, a table, and text of known entropy.
"""

from __future__ import annotations

import gzip
import os
import random
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmlab
from lmlab.config import Budget
from lmlab.learn.run_folder import record_file
from record import Recorder, arguments

DATA = Path(os.environ.get("LMLAB_BENCH_DATA", "data"))
SIZE = 1_000_000  # bytes of a text at most
BETTER, MUCH = 1.0, 0.98  # ratios: the search wins; it saves 2%
SLACK = 1.05  # of the budget that may be used


def head(path: Path) -> str:
    """Return the first bytes of a file, as many as a text has."""
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        return file.read(SIZE).decode("utf-8", "ignore")


def sources(folder: Path) -> str:
    """Return the sources of Python under a folder, in order, as many as a text has."""
    found, size = [], 0
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="ignore")
        found.append(text)
        size += len(text)
        if size > SIZE:
            break
    return "".join(found)[:SIZE]


def log() -> str:
    """Return lines of a server's log, with times that grow."""
    rng, clock, lines = random.Random(0), 1_700_000_000.0, []
    paths = [f"/{a}/{b}" for a in ("api", "img", "user", "cart") for b in ("list", "show", "new", "edit", "find")]
    for _ in range(12_000):
        clock += rng.expovariate(2)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(clock))
        status = rng.choices(("200", "304", "404", "500"), (90, 6, 3, 1))[0]
        lines.append(
            f"{stamp} 10.0.{rng.randrange(4)}.{rng.randrange(256)} GET {rng.choice(paths)} {status} {rng.randrange(9000)}\n"
        )
    return "".join(lines)


def table() -> str:
    """Return a table of measurements, as comma-separated values."""
    rng, level, lines = random.Random(1), 20.0, ["station,hour,temperature,wind,rain\n"]
    for hour in range(25_000):
        level += rng.gauss(0, 0.3) - 0.01 * (level - 15)
        rain = 0.0 if rng.random() < 0.8 else rng.expovariate(1)
        lines.append(f"S{hour % 7},{hour // 7},{level:.1f},{abs(rng.gauss(3, 2)):.1f},{rain:.1f}\n")
    return "".join(lines)


TEXTS: dict[str, Callable[[], str]] = {
    "shakespeare": lambda: head(DATA / "tinyshakespeare" / "input.txt"),
    "news": lambda: head(DATA / "ptb" / "ptb.train.txt"),
    "reviews": lambda: head(DATA / "imdb" / "train.tsv.gz"),
    "captions-en": lambda: head(DATA / "multi30k" / "train.en"),
    "captions-de": lambda: head(DATA / "multi30k" / "train.de"),
    "captions-fr": lambda: head(DATA / "multi30k" / "train.fr"),
    "code": lambda: sources(Path(sysconfig.get_paths()["stdlib"])),
    "log": log,
    "table": table,
    "vectors": lambda: head(DATA / "glove" / "glove.6B.50d.top30k.txt.gz"),
}


def test_bits(run: Path) -> float:
    """Return the bits per byte of the whole test part, certified or not."""
    return float(lmlab.evaluate(run, part="test").bits_per_byte)  # type: ignore[union-attr]


def others(folder: Path, found: lmlab.comparison.Comparison) -> Iterator[Path]:
    """Yield the runs of a comparison's winner and of its mixes."""
    measured = [entry for entry in found.entries if entry.result is not None]
    best = min(measured, key=lambda entry: entry.result.bits_per_byte if entry.result else float("inf"))
    assert best.run is not None, "the winner has a run"
    yield best.run.folder
    yield from (path for path in (folder / "models").glob("mix-*") if record_file(path) is not None)


def main() -> None:
    """Print a line for each text, and record the ratios and the time that both used."""
    parser = arguments(__doc__)
    parser.add_argument("--budget", default="5m", help="of each verb on each text")
    parser.add_argument("--texts", default=",".join(TEXTS), help=f"of {', '.join(TEXTS)}")
    asked = parser.parse_args()
    budget, names = ("30s", ["log"]) if asked.quick else (asked.budget, asked.texts.split(","))
    seconds = Budget.parse(budget).seconds or 0.0
    record = Recorder("best", "accurate", asked)
    ratios, used = [], []
    print(f"{'text':12} {'compare':>8} {'its mix':>8} {'best':>8} {'ratio':>7} {'s':>6}  what was chosen")
    for name in names:
        with tempfile.TemporaryDirectory(prefix="lmlab-best-") as place:
            text = Path(place) / f"{name}.txt"
            text.write_text(TEXTS[name](), encoding="utf-8")
            compared = lmlab.compare(text, out=Path(place) / "compare", budget=budget)
            started = time.perf_counter()
            best = lmlab.best(text, out=Path(place) / "best", budget=budget)
            used.append((time.perf_counter() - started) / seconds)
            winner, *mixes = map(test_bits, others(Path(place) / "compare", compared))
            mine, mix = test_bits(best.folder), min(mixes, default=float("inf"))
            ratios.append(mine / min(winner, mix))
            parts = " + ".join(f"{part.name} {part.weight:.0%}" for part in best.found.choice.parts)
            line = (
                f"{name:12} {winner:8.4f} {mix:8.4f} {mine:8.4f} {ratios[-1]:7.4f} {used[-1] * seconds:6.1f}  {parts}"
            )
            print(line, flush=True)
    wins, much = sum(r < BETTER for r in ratios), sum(r <= MUCH for r in ratios)
    print(f"better on {wins} of {len(ratios)}, by 2% on {much}; time {max(used):.3f} of the budget at most")
    what = f"Bits per byte of `best` over the better of `compare`'s winner and mix, {budget} each: median and range"
    record.add(
        "ratio", f"{what} over {len(ratios)} texts", statistics.median(ratios), "",
        low=min(ratios), high=max(ratios), spread="range over texts", repetitions=len(ratios),
    )  # fmt: skip
    record.add("wins", f"Texts of {len(ratios)} on which `best` has fewer bits", float(wins), "")
    record.add("by-two-percent", f"Texts of {len(ratios)} on which it saves 2% or more", float(much), "")
    record.add("time", "Time that `best` used, over its budget: the most", max(used), "", most=SLACK)


if __name__ == "__main__":
    main()
