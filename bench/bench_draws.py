"""The models of a comparison, trained once: how often does an interval contain the number of the whole test part?

    python bench/bench_draws.py [TEXT] [BUDGET of the comparison, such as 60s] [--draws 20] [--bytes 24000] [--keep FOLDER]

All models are trained by one comparison, and each is measured once on the whole test part: that is the truth. Then each is
measured again and again on so many bytes, drawn by another seed each time, as the comparison itself draws them, read with
their history. At least nine intervals of ten, over all models together, are to contain the truth. With --keep a folder in which
the comparison was made before is not made again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import lmlab
from lmlab.comparison.text_to_measure import measured_text
from lmlab.learn.run import Run
from lmlab.measure import Spread, score_part
from lmlab.measure.counted import count_within
from lmlab.measure.interval import interval

WANTED = 0.90
TOKENIZER = "char"
ROUNDING = 1e-9  # bits per byte: the interval of a uniform model has no width


def trained(text: str, budget: str, folder: Path) -> list[Run]:
    """The runs of a comparison in this folder."""
    models = folder / "models"
    if not models.exists():
        lmlab.compare(text, budget=budget, out=folder, tokenizers=[TOKENIZER])
    return [lmlab.load(path) for path in sorted(models.iterdir()) if not path.name.startswith("mix-")]


def covered(run: Run, draws: list[Spread]) -> tuple[int, float]:
    """(in how many of these draws the interval contains the number of the whole part, that number in bits per byte)."""
    model, tokenizer = run.load("cpu"), run.tokenizer
    truth = score_part(model, tokenizer, draws[0].whole).bits_per_byte
    hits = 0
    for chosen in draws:
        found = interval(count_within(tokenizer, score_part(model, tokenizer, chosen.part), chosen))
        if found.low is not None and found.high is not None:
            hits += found.low - ROUNDING <= truth <= found.high + ROUNDING
    return hits, truth


def main() -> None:
    """Print a row for each model, and all of them together."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="sotu")
    parser.add_argument("budget", nargs="?", default="60s")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--bytes", type=int, default=24_000)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="lmlab-") as scratch:
        runs = trained(options.text, options.budget, options.keep or Path(scratch))
        test = runs[0].corpus.test
        draws = [measured_text(test, options.bytes, [TOKENIZER], seed=seed) for seed in range(1, options.draws + 1)]
        if draws[0].everything:
            raise SystemExit(f"{options.bytes:,} bytes are nearly all of the {test.bytes:,} of the test part")
        print(f"{options.draws} draws of about {options.bytes:,} of {test.bytes:,} test bytes of {runs[0].corpus.name}")
        pooled = 0
        for run in runs:
            hits, truth = covered(run, draws)
            pooled += hits
            print(f"{run.record.model.name:14} {truth:8.4f} bits per byte   {hits:3} of {options.draws}", flush=True)
    share = pooled / (len(runs) * options.draws)
    verdict = "holds" if share >= WANTED else "MISSED"
    print(f"all together: {share:.3f} (at least {WANTED})  {verdict}   {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
