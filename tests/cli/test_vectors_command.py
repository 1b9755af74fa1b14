"""`lmlab train glove`, `lmlab eval` and `lmlab vectors` from a text to a picture."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from command_line import Lmlab, done, refused
from lmlab.results import Figure
from lmlab.tasks.word_vectors.show import print_scores


def test_from_a_text_to_neighbours_scores_and_a_map(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("".join(f"a red w{i % 12} and a w{i % 7} blue w{i % 5} .\n" for i in range(200)))
    code, out, err = lmlab(
        "train", "glove", tmp_path / "t.txt", "--budget", "30steps", "--set", "width=4", "--set", "held_out=0.1",
        "--out", tmp_path / "run", "--device", "cpu",
    )  # fmt: skip
    assert code == 0, err
    assert "lmlab eval" in out
    out = done(lmlab("eval", tmp_path / "run"))
    assert "frequencies alone" in out
    out = done(lmlab("vectors", tmp_path / "run", "neighbours", "red", "Blue", "--number", "2", "--json"))
    assert [len(ones) for ones in json.loads(out).values()] == [2, 2]
    out = done(lmlab("vectors", tmp_path / "run", "analogy", "w1", "w2", "w3"))
    assert "w1 is to w2 as w3 is to" in out
    out = done(lmlab("vectors", tmp_path / "run", "map", "red", "blue", "--out", tmp_path / "map.svg", "--json"))
    assert (tmp_path / "map.svg").exists()
    out = done(lmlab("vectors", tmp_path / "run", "save", "--out", tmp_path / "v.txt"))
    out = done(lmlab("vectors", tmp_path / "v.txt", "neighbours", "red"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["neighbor", "a"], "did you mean 'neighbours'?"),
        (["neighbours"], "name a word"),
        (["neighbours", "kat"], "word-without-vector"),
        (["analogy", "a", "b"], "three words"),
        (["save"], "--out vectors.txt"),
        (["neighbours", "cat", "--out", "x.svg"], "leave it away"),
        (["map", "cat", "--out", "x.png"], ".html or .svg"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_line(
    arguments: list[str], words: str, lmlab: Lmlab, tmp_path: Path
) -> None:
    (tmp_path / "v.txt").write_text("cat 1 2\ncar 2 1\nkite 1 1\n")
    refused(lmlab("vectors", tmp_path / "v.txt", *arguments), words)


def test_a_run_of_something_else_is_refused(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a b c a b c a b c a b a c a b\n" * 20)
    assert lmlab("train", "bag", tmp_path / "t.txt", "--out", tmp_path / "bag")[0] == 0
    refused(lmlab("vectors", tmp_path / "bag", "neighbours", "a"), "no run of word vectors")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.01, 0.03, "It explains more than the frequencies of the words do: +0.0200 [+0.0100, +0.0300]"),
        (-0.03, -0.01, "It explains less than the frequencies of the words do: -0.0200"),
        (-0.01, 0.03, "In what it explains it is not told apart from the frequencies of the words: +0.0100"),
    ],
)
def test_what_vectors_explain_beside_frequencies_is_a_sentence(
    low: float, high: float, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    some = Figure(value=(low + high) / 2, low=low, high=high)
    scores = SimpleNamespace(objective=some, explained=some)
    found: Any = SimpleNamespace(
        model="glove", data="t", part="test", pairs=3, words=4, scores=scores, frequencies=scores, gain=some, notes=()
    )
    print_scores(found)
    assert said in capsys.readouterr().out
