"""README names every verb. What the tour shows of a command is what it prints, word for word where that is cheap."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from command_line import Lmlab, done
from lmlab.cli import commands

ROOT = Path(__file__).resolve().parents[2]
README, TOUR = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/tour.md"))
BLOCKS = "\n".join(re.findall(r"^```text\n(.*?)^```", TOUR, flags=re.MULTILINE | re.DOTALL))
SHOWN: dict[str, str] = dict(re.findall(r"^\$ lmlab (.*)\n((?:(?!\$ ).*\n)*)", BLOCKS, re.MULTILINE))
DERIVATION = """\
given x: 1, Dx
given W: Dx, Dy
given y: 1, Dy onehot
let yhat = softmax(x @ W)
let J = -sum(y * log(yhat))
claim dJ/dW = x.T @ (yhat - y)
claim dJ/dx = W @ (yhat - y)
"""


def pieces(text: str) -> list[str]:
    """The lines, or what is left of them where … stands for the rest, with single spaces; rules between rows are left out."""
    found = [" ".join(piece.split()) for line in text.splitlines() for piece in line.split("…")]
    return [piece for piece in found if piece.strip("─- ")]


def of_a_kind(text: str) -> str:
    """The text with its numbers, model and names of files as if they were all the same."""
    text = re.sub(r"\b(?:gpt|ngram|lstm|gru)\b", "MODEL", text)
    text = re.sub(r"[\w/.-]+/[\w/.-]+|\b[\w-]+\.(?:txt|lm|arpa|html|csv)\b|\b(?:mytext|small)\b", "NAME", text)
    return re.sub(r"[+-]?\d[\d.,]*(?:e[+-]\d+)?[kMGT%]?", "#", text)


def shown(start: str) -> str:
    return next(printed for command, printed in SHOWN.items() if command.startswith(start))


def test_every_verb_is_named() -> None:
    verbs = set(commands.names())
    assert verbs - set(re.findall(r"lmlab (\w+)", README)) == set()
    assert all(pieces(printed) for printed in SHOWN.values())


@pytest.mark.parametrize("start", ["count", "plan", "check", "data"])
def test_what_needs_no_training_is_printed_as_shown(start: str, lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "derivation.txt").write_text(DERIVATION)
    command = next(command for command in SHOWN if command.startswith(start))
    _, out, err = lmlab(*shlex.split(command))
    printed = " ".join(out.split())
    assert [piece for piece in pieces(SHOWN[command]) if piece not in printed] == [], err


def test_what_a_trained_model_prints_is_of_the_kind_that_is_shown(lmlab: Lmlab, small_text: Path) -> None:
    settings = ["--set", "layers=1", "--set", "width=8", "--set", "context=8"]
    learning = ["--tokenizer", "char", "--budget", "60steps"]
    trained = ["train", "gpt", small_text, "--out", "runs/mine", *learning, *settings]
    Path("notes.txt").write_text(small_text.read_text()[:400])
    Path("lines.txt").write_text("the cat sat\na dog\n")
    for command in (
        trained,
        ["train", "ngram", small_text, "--out", "runs/ngram"],
        ["eval", "runs/mine"],
        ["score", "runs/mine", "the cat"],
        ["explain", "runs/mine", "the cat"],
        ["mix", "runs/mine", "runs/ngram", "--out", "runs/mix"],
        ["compress", "notes.txt", "--model", "runs/ngram", "-o", "notes.lm"],
        ["decompress", "notes.lm", "--model", "runs/ngram", "-o", "again.txt"],
        ["export", "runs/ngram", "-o", "model.arpa"],
        ["curves", "runs/mine", "--out", "curves.html", "--csv", "curves.csv"],
    ):
        out = done(lmlab(*command))
        if command[:2] == ["train", "ngram"] or not any(line.startswith(f"{command[0]} ") for line in SHOWN):
            continue
        wanted = [of_a_kind(piece) for piece in pieces(shown(f"{command[0]} "))]
        if command[0] == "explain":  # whose other lines are of that text
            wanted = wanted[:1]
        if command[0] in ("score", "mix"):  # whose lines between are of that text and those models
            wanted = [wanted[0], wanted[-1]]
        unlike = (
            "MODEL: the budget is used",  # this and the next on stderr
            "MODEL: undertrained",
            "# bits per byte (",
            "that interval is",
            "perplexity per word",
            "mix: gate",
        )  # a short text has no interval
        wanted = [piece for piece in wanted if not piece.startswith(unlike)]
        printed = of_a_kind(" ".join(out.split()))
        assert [piece for piece in wanted if piece not in printed] == [], printed
