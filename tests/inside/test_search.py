"""The tree of searches: what each finds is what decoding finds, and the best is the best of all."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lmlab
from browser_checks import accessible
from command_line import Lmlab, done
from lmlab.inside.search import Node
from mistakes import mistake

# A table in which greedy search loses, as a text: how often each pair of letters stands on a line.
TABLE_4 = "AA\n" * 40 + "AB\n" * 9 + "BA\n" * 30 + "BB\n" * 21


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has counted the table, and gives exactly its probabilities."""
    out = tmp_path_factory.mktemp("table") / "run"
    settings = {"order": 3, "smoothing": "ml", "restart": "line"}
    lmlab.train("ngram", TABLE_4, out=out, split=(100, 0, 0), settings=settings)
    return out


def nodes(children: tuple[Node, ...]) -> Iterator[Node]:
    for node in children:
        yield node
        yield from nodes(node.children)


def test_greedy_loses_on_the_fourth_table_of_the_exercise(table: Path) -> None:
    found = lmlab.explain_search(table, tokens=2, beam=1)
    ways = {way.method: way for way in found.ways}
    assert (ways["greedy"].text, ways["best"].text) == ("BA", "AA")
    assert ways["greedy"].probability == pytest.approx(0.3, rel=1e-5)
    assert ways["best"].probability == pytest.approx(0.4, rel=1e-5)
    assert ways["beam"].text == "BA"  # a beam of one is greedy
    assert "takes 'B' (51.0%) and passes over 'A' (49.0%)" in found.lost
    assert "1.33 times as likely (0.42 bits fewer): 40% against 30%" in found.lost
    assert ways["greedy"].bits - ways["best"].bits == pytest.approx(math.log2(4 / 3), rel=1e-4)
    assert lmlab.explain_search(table, tokens=2, beam=2).ways[1].text == "AA"


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("ngram", "lstm", "words")]


@pytest.mark.parametrize("name", ["gpt", *SLOW])
def test_each_way_is_what_decoding_finds(runs: dict[str, Path], name: str) -> None:
    run = lmlab.load(runs[name])
    tree = lmlab.explain_search(run, "the cat", tokens=2, beam=3)
    ways = {way.method: way for way in tree.ways}
    greedy = lmlab.generate(run, "the cat", method="greedy", tokens=2)[0]
    beam = lmlab.generate(run, "the cat", method="beam", beam=3, tokens=2, length_penalty=0.0)[0]
    assert (ways["greedy"].text, ways["beam"].text) == (greedy.text, beam.text)
    assert ways["greedy"].probability == pytest.approx(math.exp(-greedy.nats), rel=1e-3)
    assert ways["beam"].probability == pytest.approx(math.exp(-beam.nats), rel=1e-3)
    if run.tokenizer.vocab_size**2 < 200_000:
        exact = lmlab.generate(run, "the cat", method="exhaustive", tokens=2, length_penalty=0.0)[0]
        assert ways["best"].probability == pytest.approx(math.exp(-exact.nats), rel=1e-3)
        assert ways["best"].text == exact.text


def test_the_probabilities_of_the_tree_multiply_up(runs: dict[str, Path]) -> None:
    tree = lmlab.explain_search(runs["ngram"], "the ", tokens=4, beam=2)

    def check(children: tuple[Node, ...], before: float) -> None:
        for node in children:
            assert node.total == pytest.approx(before * node.probability, rel=1e-6)
            check(node.children, node.total)

    check(tree.children, 1.0)
    ends = [node for node in nodes(tree.children) if "best" in node.by and not node.children]
    assert [node.total for node in ends] == pytest.approx([tree.ways[-1].probability], rel=1e-6)
    per_step = [sum("greedy" in node.by for node in nodes(tree.children))]
    assert per_step == [4]


def test_too_long_a_tree_is_refused_and_the_command_shows(runs: dict[str, Path], lmlab: Lmlab) -> None:
    out = done(lmlab("explain", "search", runs["ngram"], "the", "--tokens", 3, "--json"))
    assert [way["method"] for way in json.loads(out)["ways"]] == ["greedy", "beam", "best"]
    assert "likeliest of all" in lmlab("explain", "search", runs["ngram"], "the")[1]
    code, _, err = lmlab("explain", "search", runs["ngram"], "the", "--tokens", 31)
    assert code == 2
    assert "set --tokens to 30 or less" in err


def test_there_may_be_too_many_beginnings_to_know_the_best(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmlab.inside.search.MOST_BEGINNINGS", 3)
    tree = lmlab.explain_search(runs["gpt"], "the", tokens=3, beam=1)
    assert not tree.best
    assert [way.method for way in tree.ways] == ["greedy", "beam"]


def test_the_pages_open_narrow_and_dark(tab: Any, runs: dict[str, Path], table: Path, tmp_path: Path) -> None:
    lmlab.explain_search(table, tokens=2, html=tmp_path / "search.html", svg=tmp_path / "tree.svg")
    lmlab.explain_heads(runs["gpt"], html=tmp_path / "heads.html", svg=tmp_path / "heads.svg")
    lmlab.explain_matrix(runs["gpt"], "the", html=tmp_path / "matrix.html", svg=tmp_path / "matrix.svg")
    tab.emulate_media(color_scheme="dark")
    tab.set_viewport_size({"width": 390, "height": 800})
    for name in ("search", "heads", "matrix"):
        tab.goto((tmp_path / f"{name}.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        accessible(tab)
        assert tab.locator("svg.figure").count() == 1
    assert tab.problems == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
    assert all((tmp_path / f"{name}.svg").read_text().startswith("<svg") for name in ("tree", "heads", "matrix"))


def test_pairs_total_one(table: Path) -> None:
    run = lmlab.load(table)
    texts = ["".join(pair) for pair in itertools.product("AB", repeat=2)]
    assert sum(2 ** -lmlab.score(run, text).bits for text in texts) == pytest.approx(1.0, rel=1e-5)


def test_a_model_without_heads_or_self_attention_is_refused(runs: dict[str, Path]) -> None:
    with mistake("run-without-heads"):
        lmlab.explain_heads(runs["lstm"], "the cat")
    with mistake("run-without-matrix"):
        lmlab.explain_matrix(runs["lstm"], "the cat")
