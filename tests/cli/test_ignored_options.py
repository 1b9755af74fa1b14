"""An option that would change nothing is refused in one line that says what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmlab as lab
from command_line import Lmlab, refused
from mistakes import mistake

RATE = ["--learn", "learning_rate=1"]
COUNTS = "leave --learn out"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "ngram", "small.txt", *RATE], COUNTS),
        (["settings", "ngram", *RATE], COUNTS),
        (["sweep", "ngram", "small.txt", "--over", "order=2,3", *RATE], COUNTS),
        (["compare", "small.txt", "--models", "bag,ngram", *RATE], "learning-of-a-counting-model"),
        (["train", "ngram", "small.txt", "--set", "order=3", "--set", "order=4"], "order is set twice"),
        (["train", "gpt", "small.txt", *RATE, *RATE], "learning_rate is set twice"),
        (["compare", "small.txt", "--set", "gpt.layers=1", "--set", "gpt.layers=2"], "gpt.layers is set twice"),
        (["compare", "small.txt", *RATE, *RATE], "learning_rate is set twice"),
        (["count", "hf.json", "--set", "n_layer=1", "--set", "n_layer=2"], "n_layer is set twice"),
        (["plan", "hf.json", "--set", "n_layer=1", "--set", "n_layer=2"], "n_layer is set twice"),
    ],
)
def test_what_would_do_nothing_is_refused(lmlab: Lmlab, small_text: Path, arguments: list[str], words: str) -> None:
    Path("hf.json").write_text('{"model_type": "gpt2"}')
    refused(lmlab(*arguments), words)
    assert not Path("runs").exists()


def test_what_counts_is_taught_nothing_in_python_either(small_text: Path, tmp_path: Path) -> None:
    with mistake("option-of-a-counting-model"):
        lab.train("bag", small_text, out=tmp_path / "run", learning={"rows": 4})
    lab.train("bag", small_text, out=tmp_path / "run", learning={}, budget="3m")  # as in a loop over several models


def test_a_budget_that_a_recipe_names_is_no_option_that_was_given(lmlab: Lmlab, small_text: Path) -> None:
    Path("old.toml").write_text(f'model = "bag"\ntext = "{small_text}"\nbudget = "3m"\n')
    Path("other.toml").write_text(f'model = "gpt"\ntext = "{small_text}"\nbudget = "3m"\n')
    assert lmlab("train", "--config", "old.toml", "--out", "one")[0] == 0
    assert lmlab("train", "--config", "one/recipe.toml", "--out", "two")[0] == 0
    assert lmlab("train", "bag", "--config", "other.toml", "--out", "three")[0] == 0
    code, _, err = lmlab("train", "--config", "old.toml", "--budget", "3m", "--out", "four")
    assert code == 0
    assert "bag reads the text once" in err
    lab.train(**lab.recipe("one/recipe.toml"), out="five")
    assert lmlab("train", "--resume", "--out", "one", "--budget", "3m")[0] == 0  # as it began


def test_a_line_of_prompts_holds_a_prompt_and_nothing_else(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("train", "bag", small_text, "--out", "run")[0] == 0
    Path("prompts.jsonl").write_text('"a"\n{"prompt": "c", "temperature": 0.1}\n')
    refused(
        lmlab("generate", "run", "--prompts", "prompts.jsonl"),
        "prompt-line-unknown-key",
        "line 2 of prompts.jsonl",
        "options are of the command",
    )
    Path("prompts.jsonl").write_text('"a"\n\n{"prompt": "c", "temprature": 0.1}\n')
    refused(
        lmlab("generate", "run", "--prompts", "prompts.jsonl"),
        "prompt-line-unknown-key",
        "line 3 of prompts.jsonl",
        '"prompt" and perhaps',
    )


@pytest.mark.parametrize("line", ['{"prompt": "c", "id": NaN}', '{"prompt": "c", "id": 1e999}', "[" * 100_000])
def test_a_line_of_prompts_that_is_no_json_is_refused_before_anything_is_written(
    line: str, lmlab: Lmlab, small_text: Path
) -> None:
    assert lmlab("train", "bag", small_text, "--out", "run")[0] == 0
    Path("prompts.jsonl").write_text(f'"a"\n{line}\n')
    refused(
        lmlab("generate", "run", "--prompts", "prompts.jsonl", "--json"),
        "prompt-line-not-json",
        "line 2 of prompts.jsonl",
    )
    Path("run/run.json").write_text("[" * 100_000)
    refused(lmlab("generate", "run"), "run.json is damaged")
