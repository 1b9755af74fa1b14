"""Help is whole at every width: no name and no word is cut, and no line is wider than the terminal."""

from __future__ import annotations

import re

import pytest

from command_line import Lmlab, done
from lmlab.cli import commands
from lmlab.cli.explaining import TOPICS

COMMANDS = [[], *([name] for name in commands.names())]
COMMANDS += [["explain", topic] for topic in TOPICS]


WIDTHS = [*((command, 60) for command in COMMANDS), ([], 160), (["train", "gpt"], 160)]


@pytest.mark.parametrize(("command", "width"), WIDTHS, ids=[f"{' '.join(words)} {width}" for words, width in WIDTHS])
def test_help_fits_at_every_width_and_nothing_is_cut(
    command: list[str], width: int, lmlab: Lmlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = done(lmlab(*command, "--help"))
    assert max(map(len, out.splitlines())) <= width
    assert not any(line.rstrip().endswith(("…", "...")) for line in out.splitlines()[1:])
    assert "--help" in out
    assert not re.search(r"<|int range|list\[", out.partition("Options:")[2])


def test_the_verbs_stand_by_what_one_wants_to_do_each_with_its_sentence(lmlab: Lmlab) -> None:
    _, out, _ = lmlab("--help")
    wanted = ["Compare:", "  compare  ", "Train:", "  train  ", "Use a trained model:", "  eval  ", "Look inside:"]
    wanted += ["Other tasks:", "  fill  ", "Mathematics:", "  check  ", "Housekeeping:", "  data  "]
    places = [out.index(f"\n{word}") for word in wanted]
    assert places == sorted(places)
    sentence = "Compare every kind of language model on one text: a ranked table and an HTML report."
    assert sentence in " ".join(out.split())


def test_a_sweep_offers_language_models_alone(lmlab: Lmlab) -> None:
    offered = " ".join(done(lmlab("sweep", "--help")).split()).partition("One of: ")[2].partition(".")[0].split(", ")
    assert {"ngram", "gpt"} <= set(offered)
    assert not {"bert", "dan", "translator", "glove", "mix"} & set(offered)
