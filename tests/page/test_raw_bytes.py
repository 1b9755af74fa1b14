"""Bytes that are no character are explained where they are shown, and only there."""

from __future__ import annotations

from pathlib import Path

import lmlab as lab
from command_line import Lmlab
from lmlab.comparison.report import render
from lmlab.page.raw_bytes import about_broken, about_lone

SAID = "stands for bytes that make no character"


def test_nothing_is_said_of_characters() -> None:
    assert about_broken(["the cat", "café", ""]) == ""
    assert SAID in about_broken(["the cat", "c\ufffdt"])
    assert about_lone(["<", "0x", "é"]) == ""
    assert about_lone(["a", "<0xE2><0x82>"]).startswith("<0xE2> is a byte")


def test_a_model_that_knows_nothing_writes_bytes_and_is_explained(lmlab: Lmlab, small_text: Path) -> None:
    for model in ("uniform", "ngram"):
        assert lmlab("train", model, small_text, "--out", model)[0] == 0
    _, out, err = lmlab("generate", "uniform", "--tokens", 40)
    assert "\ufffd" in out
    assert (err.count("\n"), SAID in err) == (1, True)
    Path("prompts.jsonl").write_text('"the"')
    assert SAID in lmlab("generate", "uniform", "--tokens", 40, "--prompts", "prompts.jsonl")[2]
    assert lmlab("generate", "uniform", "--tokens", 40, "--json")[2] == ""
    assert lmlab("generate", "ngram", "--prompt", "the cat", "--tokens", 9, "--method", "greedy")[2] == ""


def test_the_page_of_a_comparison_explains_them(small_text: Path, tmp_path: Path) -> None:
    found = lab.compare(small_text, models=["uniform", "bag"], budget="2s", out=tmp_path / "out").findings
    page = render(found)
    assert (SAID in page) == any("\ufffd" in entry.sample for entry in found.measured_entries)
    assert "&gt; is a byte, which is no character by itself" in page  # the uniform model thinks all tokens alike
