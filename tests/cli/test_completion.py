"""Shells complete names of models, tokenizers, corpora, settings and runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Lmlab, done


@pytest.fixture
def completed(lmlab: Lmlab, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_LMLAB_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        out = done(lmlab())
        return out.split()

    return complete


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("lmlab sco", ["score"]),
        ("lmlab train gp", ["gpt"]),
        ("lmlab sweep rnn-", ["rnn-attention"]),
        ("lmlab train gpt shak", ["shakespeare"]),
        ("lmlab train gpt sotu --tokenizer by", ["byte"]),
        ("lmlab train gpt sotu --set lay", ["layers="]),
        ("lmlab eval ru", ["runs/"]),
        ("lmlab eval runs/m", ["runs/mine"]),
        ("lmlab train gpt runs/mi", ["runs/mine"]),
        ("lmlab fill runs/m", ["runs/mine"]),
        ("lmlab mix runs/mine runs/m", ["runs/mine"]),
        ("lmlab curves runs/mine runs/m", ["runs/mine"]),
        ("lmlab count runs/m", ["runs/mine"]),
        ("lmlab count gp", ["gpt"]),
        ("lmlab plan gp", ["gpt"]),
        ("lmlab vectors runs/mine ne", ["neighbours"]),
        ("lmlab train translator --set lay", ["layers="]),
    ],
)
def test_what_was_begun_is_completed(completed: Callable[[str], list[str]], line: str, found: list[str]) -> None:
    Path("runs/mine").mkdir(parents=True)
    Path("runs/mine/run.json").write_text("{}")
    assert completed(line) == found
