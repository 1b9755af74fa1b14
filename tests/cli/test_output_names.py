"""A page is called like a page and a picture like a picture; anything else is refused before any work is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Lmlab, refused

PAGE, PICTURE = "--html is a page", "--svg is a picture"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["count", "gru", "--svg", "x/c.png"], PICTURE),
        (["explain", "run", "the", "--html", "x/e.txt"], PAGE),
        (["explain", "run", "the", "--html", "x/e.html", "--svg", "x/e.html"], PICTURE),
        (["explain", "attention", "run", "the", "--html", "x/e.svg"], PAGE),
        (["explain", "heads", "run", "--svg", "x/e"], PICTURE),
        (["explain", "positions", "--svg", "x/e.html"], PICTURE),
        (["explain", "dot-products", "--html", "x/e.txt"], PAGE),
        (["explain", "gradients", "--html", "x/e.txt"], PAGE),
        (["explain", "sandbox", "--html", "x/e.txt"], PAGE),
        (["latent", "run", "--svg", "x/e.png"], PICTURE),
        (["check", "sheet.txt", "--html", "x/e.txt"], PAGE),
        (["curves", "run", "--out", "x/e.png"], "--out is a page or a picture"),
    ],
)
def test_a_name_of_another_kind_is_refused(lmlab: Lmlab, small_text: Path, arguments: list[str], words: str) -> None:
    Path("sheet.txt").write_text("given x: n\nclaim x == x\n")
    assert lmlab("train", "bag", small_text, "--out", "run")[0] == 0
    refused(lmlab(*arguments), words)
    assert not Path("x").exists()
