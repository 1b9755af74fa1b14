"""Names that other tools use are taken where they mean one thing, and answered with what to type where they do not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import lmlab as lab
from command_line import Lmlab, refused
from lmlab.config import Note
from lmlab.learn.settings import LEARNING
from lmlab.models.registry import KINDS, model_class
from lmlab.other_names import ELSEWHERE, MODELS, NOT_HERE, OF_MODELS, OF_TRAINING, SETTINGS

TINY = ["--set", "n_layer=1", "--set", "n_head=2", "--set", "n_embd=8", "--set", "block_size=8"]


def test_every_name_of_ours_in_the_tables_is_one_and_no_name_of_theirs_is() -> None:
    assert set(MODELS.values()) <= set(KINDS)
    assert not (set(MODELS) | set(NOT_HERE)) & set(KINDS)
    assert set(OF_TRAINING) <= set(LEARNING)
    of_models = {name for kind in KINDS for name in model_class(kind).Config.__dataclass_fields__}
    assert of_models >= OF_MODELS
    ours = {name for names in SETTINGS.values() for name in names}
    assert not set(SETTINGS) & ours
    assert not set(ELSEWHERE) & (of_models | set(LEARNING))


def test_a_transformer_with_the_settings_of_nanogpt_is_trained_and_recorded_by_our_names(
    lmlab: Lmlab, small_text: Path
) -> None:
    learning = ["--learn", "batch_size=4", "--learn", "lr=0.01"]
    code, _, err = lmlab("train", "transformer", small_text, *TINY, *learning, "--budget", "3steps", "--out", "run")
    assert code == 0
    for said in (
        "transformer is called gpt",
        "n_layer is called layers",
        "n_embd is called width",
        "lr is called learning_rate",
    ):
        assert f"note: {said} here" in err
    run = lab.load("run")
    assert run.record.model.name == "gpt"
    assert run.record.model.config["context"] == 8
    assert run.record.training.learning == {"rows": 4, "learning_rate": 0.01}
    assert tomllib.loads(Path("run/recipe.toml").read_text())["model"] == "gpt"


def test_the_same_names_are_taken_in_python(small_text: Path, tmp_path: Path) -> None:
    settings = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 8}
    with pytest.warns(Note, match="is called"):
        run = lab.train(
            "nanogpt", small_text, out=tmp_path / "run", budget="3steps", settings=settings, learning={"batch_size": 4}
        )
    assert run.record.model.config["layers"] == 1
    with pytest.warns(Note, match="kenlm is called ngram here"):
        found = lab.compare(small_text, models="bag, kenlm", budget=3, out=tmp_path / "both")
    assert {entry.model for entry in found.entries} == {"bag", "ngram"}
    assert found.findings.budget_s == 3.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "mamba", "small.txt"], "are rnn, gru and lstm"),
        (["train", "bag,ngram", "small.txt"], "lmlab compare takes several"),
        (["train", "gpt", "small.txt", "--set", "batch_size=4"], "--learn rows=4"),
        (["train", "gpt", "small.txt", "--set", "learning_rate=0.1"], "--learn learning_rate=0.1"),
        (["train", "gpt", "small.txt", "--learn", "dropout=0.1"], "--set dropout=0.1"),
        (["train", "gpt", "small.txt", "--learn", "n_layer=3"], "--set layers=3"),
        (["train", "gpt", "small.txt", "--set", "max_iters=10"], "--budget 500steps"),
        (["train", "gpt", "small.txt", "--set", "vocab_size=99"], "--tokenizer bpe:1000"),
        (["train", "gpt", "small.txt", "--set", "layers=1", "--set", "n_layer=1"], "layers is set twice"),
    ],
)
def test_what_means_something_else_is_answered_with_what_to_type(
    lmlab: Lmlab, small_text: Path, arguments: list[str], words: str
) -> None:
    refused(lmlab(*arguments), words)


def test_a_comparison_offers_language_models_alone(lmlab: Lmlab, small_text: Path) -> None:
    code, _, err = lmlab("compare", small_text, "--models", "foo")
    assert code == 2
    assert "ngram" in err
    assert "autoencoder" not in err


def test_a_budget_for_what_counts_is_ignored_with_a_note(lmlab: Lmlab, small_text: Path) -> None:
    code, _, err = lmlab("train", "ngram", small_text, "--budget", "3m", "--out", "run")
    assert code == 0
    assert "ignores --budget" in err


def test_shares_with_slashes_say_what_was_made_of_them(lmlab: Lmlab, small_text: Path) -> None:
    code, _, err = lmlab("train", "bag", small_text, "--split", "90/5/5", "--out", "run")
    assert code == 0
    assert "90.0%, validation 5.0%" in err
