"""Write docs/results.md from the newest records, and put the newest numbers into the prose of README.md and docs/.

python bench/make_results.py [--check]
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmlab.page.figures import drawing, series_colour, standalone, svg
from marks import pages, refreshed
from record import BENCHMARK, QUESTIONS, REPOSITORY, Measurement, Record, benchmarks, newest

PAGE = REPOSITORY / "docs" / "results.md"
CHARTS = REPOSITORY / "docs" / "results"
CLOSER = {  # what a table says before its rows
    "fast": "Ratio: how many times as fast as the peer, both in turns in one run. A bracket is the range over the rounds.",
    "accurate": "A bracket is a 95% interval, or what the row says. Ratio: how many times as good as the peer.",
    "intervals": "A 95% interval is right if it holds the truth 95 times of 100.",
    "scale": "`lmlab train ngram`, from a text file to the saved model, in a process of its own.",
}
FIRST = ("training", "decoding", "scoring", "startup", "accuracy", "coverage")  # of the benchmarks of a question
TICKS, LONGEST = (0.5, 1, 2, 5, 10, 20), 70  # of an axis of ratios; letters of a name in a chart
SPEEDS = ("s", "ms", "tokens/s")  # units of which a ratio is one of speed
AXES = {"fast": "times as fast as the peer", "intervals": "share of 95% intervals that hold the truth"}
REFERENCE = {"fast": 1.0, "intervals": 0.95}  # questions that have a chart, and its line
INTRODUCTION = """# Results

<!-- Made by `make results` from the records under results/. Edit bench/make_results.py instead. -->

Each row is the newest measurement of its kind. Its record under [results/](../results) holds the command, versions and commit.
`python bench/run_all.py --write` measures anew. A row by hand was measured without a benchmark that wrote its record.
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """This class is one measurement and the record that holds it."""

    found: Measurement
    record: Record


def rows_of(question: str) -> list[Row]:
    """Return the newest measurements of a question, benchmark by benchmark."""
    return [
        Row(found=found, record=record)
        for benchmark in sorted(benchmarks(), key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
        for found, record in newest(benchmark).values()
        if record.question == question
    ]


def page() -> str:
    """Return docs/results.md."""
    parts = [INTRODUCTION]
    for question in CLOSER:
        rows = rows_of(question)
        if rows:
            chart = f"![{QUESTIONS[question]}](results/{question}.svg)\n\n" if question in REFERENCE else ""
            parts.append(f"## {QUESTIONS[question]}\n\n{CLOSER[question]}\n\n{chart}" + "\n".join(table(rows)) + "\n")
    return "\n".join(parts)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table."""
    peers = any(row.found.peer for row in rows)
    heads = ["what", "lmlab", *(["peer", "ratio"] if peers else []), "machine", "date"]
    yield f"| {' | '.join(heads)} |"
    yield f"| --- | {' | '.join('---:' for _ in heads[1:-2])} | --- | --- |"
    for row in rows:
        found, record = row.found, row.record
        value = "" if found.value is None else f"{shown(found.value)} {found.unit}".strip()
        ends = "" if found.low is None or found.high is None else f"[{shown(found.low)}, {shown(found.high)}]"
        cells = [found.what, value]
        if peers:
            beside = "" if found.peer_value is None else f" {shown(found.peer_value)}"
            cells += ["", ""] if found.peer is None else [f"{found.peer}{beside}", f"{found.ratio:.2f}"]
        column = -1 if found.ratio is not None else 1
        cells[column] = f"{cells[column]} {ends}".strip()
        date = record.date if record.source == BENCHMARK else f"{record.date}, by hand"
        yield f"| {' | '.join([*cells, record.machine.name, date])} |"


def shown(value: float | None) -> str:
    """Return a number with as many digits as a reader needs."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def chart(question: str, rows: Sequence[Row]) -> str:
    """Return the ratios (or values) of a question as dots with their ranges."""
    drawn = [row for row in rows if (row.found.unit in SPEEDS if row.found.ratio else row.found.unit == "")]
    with drawing(8.0, 0.24 * len(drawn) + 0.8) as (figure, axes):
        for place, row in enumerate(drawn):
            found, colour = row.found, series_colour(0)
            if found.low is not None and found.high is not None:
                axes.plot([found.low, found.high], [place, place], color=colour, linewidth=2.2, alpha=0.55)
            if found.main is not None:
                axes.plot([found.main], [place], "o", markersize=5, color=colour)
        axes.axvline(REFERENCE[question], color=series_colour(None), linewidth=1, linestyle=(0, (4, 3)))
        if question == "fast":
            axes.set_xscale("log")
            axes.set_xticks(TICKS, [f"{tick:g}×" for tick in TICKS])
            axes.minorticks_off()
        axes.set_title(AXES[question], fontsize=9, loc="left")
        axes.set_yticks(range(len(drawn)), [label(row) for row in drawn], fontsize=7)
        axes.set_ylim(len(drawn) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        return svg(figure, QUESTIONS[question])


def label(row: Row) -> str:
    """Return what was measured, short enough for an axis, with the peer and the device."""
    what = re.sub(r"(\d+) layers? of width (\d+)", r"\1 × \2", row.found.what.replace("`", ""))
    what = re.sub(
        r", [\d,]+ windows of [\d,]+\d(?: tokens)?|Share of 95% intervals | that hold the truth|Greedy ", "", what
    )
    where = ", GPU" if row.record.machine.gpu else ""
    return (what if len(what) <= LONGEST else f"{what[:LONGEST]}…") + where


def main() -> int:
    """Write everything, or with --check say what would change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something would change")
    asked = parser.parse_args()
    texts = {PAGE: page(), **{path: refreshed(path.read_text(encoding="utf-8")) for path in pages()}}
    changed = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        print(path.relative_to(REPOSITORY))
    if asked.check:
        return int(bool(changed))
    for path in changed:
        path.write_text(texts[path], encoding="utf-8")
    CHARTS.mkdir(exist_ok=True)
    for question in REFERENCE:
        if rows := rows_of(question):
            (CHARTS / f"{question}.svg").write_text(standalone(chart(question, rows)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
