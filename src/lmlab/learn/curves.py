"""`curves`: the learning curves of several runs in one figure, and their numbers as files for other tools."""

from __future__ import annotations

import csv as csv_files
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from lmlab.config import Mistake
from lmlab.disk.files import replace_only, taken_by_a_file, write_atomically
from lmlab.learn.curve_figures import Over, overlaid
from lmlab.learn.event_file import write_events
from lmlab.learn.run import Run, opened
from lmlab.page.figures import standalone
from lmlab.page.notebook import panel
from lmlab.page.numbers import counted
from lmlab.records import NOT_IN_JSON, JsonRecord
from lmlab_derive.shared import html


@dataclass(frozen=True, kw_only=True)
class Curves(JsonRecord):
    """The learning curves of several runs.

    Attributes:
        lines: the lines of metrics.jsonl by the name of the run.
        figure: the figure as SVG.
        written: the paths of the files that were written.
    """

    unit: str
    over: str
    lines: dict[str, list[dict[str, Any]]]
    figure: str = field(repr=False, metadata=NOT_IN_JSON)
    written: list[str]

    def __repr__(self) -> str:
        return f"Curves({', '.join(self.lines)}; {self.unit} over {self.over})"

    def _repr_html_(self) -> str:
        """Return the figure for a notebook."""
        return panel(f"{self.unit} over {self.over}", {}, standalone(self.figure))


def curves(
    *runs: Run | str | Path,
    out: str | Path | None = None,
    over: str = "tokens",
    csv: str | Path | None = None,
    tensorboard: str | Path | None = None,
) -> Curves:
    """Draw the learning curves of runs in one figure: validation over "tokens", "steps" or "seconds" of training.

    Args:
        runs: the runs, or their folders.
        out: a page (.html) or a picture (.svg) to write.
        over: the horizontal axis.
        csv: a file for all numbers, one line for every validation of every run.
        tensorboard: a folder for event files, one folder in it for every run.
    """
    if over not in get_args(Over):
        raise Mistake(f"{{over}} is tokens, steps or seconds; got {over!r}", code="curve-axis-unknown", over=None)
    html.refuse_names(out=out)
    if not runs:
        raise Mistake("name at least one run", code="no-runs-for-curves")
    if tensorboard is not None and (taken := taken_by_a_file(Path(tensorboard))):
        raise Mistake(
            f"{{tensorboard}} is a folder for event files, and {taken} is a file; name a new folder",
            code="tensorboard-is-file",
            tensorboard=None,
        )
    drawn = [opened(run) for run in runs]
    lines = {name: run.metrics for name, run in zip(_names(drawn), drawn, strict=True)}
    if silent := [str(run.folder) for run in drawn if not run.metrics]:
        raise Mistake(
            f"{', '.join(silent)} has no curve: it counts, or was stopped before it was first validated",
            code="run-without-curve",
        )
    units = {run.unit for run in drawn}
    if len(units) > 1:
        raise Mistake(
            f"these runs are measured in different units: {', '.join(sorted(units))}", code="curves-of-different-units"
        )
    (unit,) = units
    figure = overlaid(lines, unit, over)  # type: ignore[arg-type]
    written = []
    if out is not None:
        page = html.document("Curves", _page(lines, unit, over, figure))
        written.append(html.write(Path(out), standalone(figure) if Path(out).suffix == ".svg" else page))
    if csv is not None:
        replace_only(Path(csv), (".csv",))
        write_atomically(Path(csv), _csv(lines).encode())
        written.append(Path(csv))
    if tensorboard is not None:
        written += [write_events(Path(tensorboard) / name.replace("/", "-"), found) for name, found in lines.items()]
    return Curves(unit=unit, over=over, lines=lines, figure=figure, written=[str(path) for path in written])


def _names(runs: Sequence[Run]) -> list[str]:
    """Return short distinct names of runs: their folders, preceded by the parent folder where folders are named alike."""
    names = [run.folder.resolve().name for run in runs]
    longer = ["/".join(run.folder.resolve().parts[-2:]) for run in runs]
    chosen = [full if names.count(name) > 1 else name for name, full in zip(names, longer, strict=True)]
    return [f"{name} ({i + 1})" if chosen.count(name) > 1 else name for i, name in enumerate(chosen)]


def _page(lines: dict[str, list[dict[str, Any]]], unit: str, over: str, figure: str) -> str:
    key = f"valid_{unit.replace(' ', '_')}"
    rows = []
    for name, found in lines.items():
        known = [line[key] for line in found if line[key] is not None]
        last = found[-1]
        best = f"{min(known):.4f}" if known else ""
        cells = [html.escape(name), best, f"{last['tokens']:,}", f"{last['step']:,}", f"{last['seconds']:.0f}"]
        rows.append(html.Row(cells))
    columns = ["run", f"best {unit}, validation", "tokens", "steps", "seconds"]
    heading = f"<h1>{counted(len(lines), 'curve')}</h1>\n"
    return heading + html.figure(figure, f"{unit} over {over} of training") + html.table(columns, rows, label="Runs")


def _csv(lines: dict[str, list[dict[str, Any]]]) -> str:
    columns = list(dict.fromkeys(key for found in lines.values() for line in found for key in line))
    file = io.StringIO()
    writer = csv_files.DictWriter(file, ["run", *columns], lineterminator="\n")
    writer.writeheader()
    for name, found in lines.items():
        writer.writerows({"run": name, **line} for line in found)
    return file.getvalue()
