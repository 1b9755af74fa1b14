"""A seed that no generator takes is refused in the same line by every verb, before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lmlab as lab
from command_line import Lmlab, refused
from mistakes import mistake

VERBS = [
    ["explain", "dot-products"],
    ["explain", "positions"],
    ["explain", "gradients"],
    ["explain", "sandbox"],
    ["check", "sheet.txt"],
    ["check", "--grade", "sheet.txt", "--key", "sheet.txt"],
    ["compare", "small.txt", "--models", "bag", "--budget", "3s", "--out", "out"],
    ["train", "ngram", "small.txt", "--out", "out"],
    ["data", "show", "small.txt"],
    ["settings", "gpt"],
    ["eval", "run"],
    ["generate", "run"],
    ["latent", "run"],
]


@pytest.mark.parametrize("seed", ["-5", "99999999999999999999999"])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: " ".join(verb[:2]))
def test_a_seed_out_of_range_is_refused_alike(lmlab: Lmlab, small_text: Path, verb: list[str], seed: str) -> None:
    Path("sheet.txt").write_text("given x: n\nclaim x == x\n")
    refused(lmlab(*verb, "--seed", seed), "--seed is", f"got {seed}")
    assert not Path("out").exists()


def test_the_last_of_several_seeds_is_looked_at_too(lmlab: Lmlab, small_text: Path) -> None:
    code, _, err = lmlab("compare", small_text, "--models", "bag", "--seed", 2**32 - 1, "--seeds", 2, "--out", "out")
    assert (code, Path("out").exists()) == (2, False)
    assert "--seed is a whole number" in err


@pytest.mark.parametrize("seed", [-1, 2**40, 0.5, "nonsense", None, True])
@pytest.mark.parametrize(
    "ask",
    [
        lambda seed: lab.compare("small.txt", models=["bag"], out="out", seed=seed),
        lambda seed: lab.check("claim 1 == 1", seed=seed),
        lambda seed: lab.grade({"ann": ""}, key="small.txt", seed=seed),
        lambda seed: lab.train("ngram", "small.txt", out="out", seed=seed),
        lambda seed: lab.read("small.txt", seed=seed),
        lambda seed: lab.evaluate("run", seed=seed),
        lambda seed: lab.explain_positions(seed=seed),
        lambda seed: lab.explain_sandbox(seed=seed),
        lambda seed: lab.explain_gradients(seed=seed),
        lambda seed: lab.explain_dot_products(seed=seed),
    ],
)
def test_in_python_too(
    ask: Callable[[Any], object], seed: object, small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with mistake("seed-out-of-range"):
        ask(seed)
    assert not Path("out").exists()
