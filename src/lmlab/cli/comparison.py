"""A comparison in the terminal: a live table while it runs, and the ranking at the end."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lmlab.comparison.job import Comparison, Entry

BAR = 16
REFRESH_S = 0.25


class LiveTable:
    """One line per model with a bar, the best so far, and the time left; plain lines when stderr is no terminal."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self._live: Live | None = None
        self._shown_at = 0.0
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, entries: Sequence[Entry], left_s: float, doing: str) -> None:
        """Redraw, or print what is new."""
        if not self.console.is_terminal:
            self._plain(entries)
            return
        if time.monotonic() - self._shown_at < REFRESH_S and doing.startswith("training"):
            return
        self._shown_at = time.monotonic()
        if self._live is None:
            self._live = Live(console=self.console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(_progress_table(entries, left_s, doing), refresh=True)

    def say(self, line: str) -> None:
        """A line of its own."""
        self.console.print(line, markup=False, highlight=False)

    def _plain(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.status in ("ranked", "unranked", "failed") and entry.name not in self._told:
                self._told.add(entry.name)
                bits = "failed" if entry.result is None else f"{entry.result.bits_per_byte:.4f} bits per byte"
                print(f"{entry.name}: {bits} ({entry.seconds:.0f} s)", file=sys.stderr, flush=True)


def _progress_table(entries: Sequence[Entry], left_s: float, doing: str) -> Table:
    table = Table.grid(padding=(0, 2))
    best = min((e.result.bits_per_byte for e in entries if e.result is not None), default=math.inf)
    for entry in entries:
        done = entry.status in ("ranked", "unranked", "failed")
        filled = BAR if done else round(BAR * entry.fraction)
        bits = Text("")
        if entry.result is not None:
            bits = Text(
                f"{entry.result.bits_per_byte:.4f}", style="bold green" if entry.result.bits_per_byte == best else ""
            )
        style = {"failed": "red", "unranked": "red", "waiting": "dim"}.get(entry.status, "")
        table.add_row(Text(entry.name, style=style), "━" * filled + "┈" * (BAR - filled), entry.status, bits)
    table.add_row(Text(doing, style="dim"), "", f"{max(0, left_s):.0f} s left", "")
    return table


def print_table(comparison: Comparison) -> None:
    """The ranking, with yardsticks where their numbers put them."""
    document = comparison.to_json()
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    corpus, measured = document["corpus"], document["measured"]
    table = Table(
        title=f"{corpus['name']}: {measured['bytes']:,} of {measured['of']:,} test bytes, {document['seconds']:.0f} s in all",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1),
    )
    columns = (
        "rank",
        "model",
        "bits/byte",
        "95% interval",
        "ppl/word",
        "parameters",
        "FLOPs",
        "seconds",
        "tokens/s",
        "memory",
    )
    for column in columns:
        table.add_column(
            column, justify="left" if column == "model" else "right", no_wrap=column in ("model", "bits/byte")
        )
    for _, row in sorted(_rows(document), key=lambda found: found[0]):
        table.add_row(*row)
    console.print(table)
    for entry in document["entries"]:
        if not entry.get("result"):
            console.print(
                f"{entry['name']}: {entry['error'] or entry['status']}", style="red", markup=False, highlight=False
            )


def _rows(document: dict[str, Any]) -> list[tuple[float, list[Any]]]:
    """(where it belongs, cells) of every line."""
    rows: list[tuple[float, list[Any]]] = []
    for entry in document["entries"]:
        result = entry.get("result")
        if result is None:
            continue
        bits = result["bits_per_byte"]
        interval = result["interval"]
        rows.append(
            (
                bits if bits is not None else 1e9,
                [
                    f"{entry['rank']} {document['ranking']['models'][entry['name']]['letters']}"
                    if entry["rank"]
                    else "–",
                    Text(entry["name"], style="" if result["certified"] else "bold red"),
                    "infinite" if bits is None else f"{bits:.4f}",
                    "" if not interval else f"{interval[0]:.3f}–{interval[1]:.3f}",
                    _short(result["perplexity"].get("word")),
                    f"{result['model']['parameters']:,}",
                    _short(entry["training_flops"]),
                    f"{entry['seconds']:.1f}",
                    _short(entry["tokens_per_second"]),
                    f"{entry['peak_memory_bytes'] / 1e6:,.0f} MB",
                ],
            )
        )
    for stick in document["yardsticks"]:
        cells = [
            "",
            Text(stick["name"], style="dim"),
            f"{stick['bits_per_byte']:.4f}",
            "",
            "",
            "",
            "",
            f"{stick['seconds']:.1f}",
        ]
        rows.append((stick["bits_per_byte"], cells))
    entropy = document["corpus"]["entropy_bits_per_byte"]
    if entropy is not None:
        rows.append((entropy, ["", Text("exact entropy", style="cyan"), f"{entropy:.4f}"]))
    return rows


def _short(value: float | None) -> str:
    """A number in at most six characters."""
    if value is None:
        return ""
    if value < 10_000:
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    power = int(math.log10(value)) // 3 * 3
    suffix = {3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}.get(power)
    return f"{value / 10**power:.1f}{suffix}" if suffix else f"{value:.1e}"
