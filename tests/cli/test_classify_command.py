"""`lmlab train dan`, `lmlab eval` and `lmlab classify` from a table to an explanation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Lmlab, done, refused


@pytest.fixture
def trained(lmlab: Lmlab, tmp_path: Path) -> Path:
    rows = [f"{'good' if i % 2 else 'bad'},{'fine' if i % 2 else 'dull'} film number {i}" for i in range(60)]
    (tmp_path / "films.csv").write_text("stars,words\n" + "\n".join(rows) + "\n")
    code, out, err = lmlab(
        "train", "dan", tmp_path / "films.csv", "--columns", "words,stars", "--budget", "60steps",
        "--learn", "learning_rate=0.02", "--out", tmp_path / "run",
    )  # fmt: skip
    assert code == 0, err
    assert "lmlab eval" in out
    return tmp_path / "run"


def test_from_a_table_to_labels_scores_and_mistakes(lmlab: Lmlab, trained: Path) -> None:
    out = done(lmlab("eval", trained))
    assert "bag of words" in out
    assert "majority" in out
    out = done(lmlab("classify", trained, "a fine film", "dull", "--json"))
    assert [label["label"] for label in json.loads(out)] == ["good", "bad"]
    out = done(lmlab("classify", trained, "--errors", "2", "--json"))
    assert isinstance(json.loads(out), list)


def test_a_table_to_measure_is_asked_for_nothing_that_eval_has_no_option_for(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "films.tsv").write_text("".join(f"{'good' if i % 2 else 'bad'}\tfilm number {i}\n" for i in range(60)))
    done(lmlab("train", "dan", tmp_path / "films.tsv", "--budget", "3steps", "--out", tmp_path / "run"))
    (tmp_path / "other.tsv").write_text("good\tfilm\tof late\nbad\tfilm\tof old\n")
    code, _, err = lmlab("eval", tmp_path / "run", tmp_path / "other.tsv")
    assert code == 2
    assert err.endswith("other.tsv: which columns? Let its first line name them, such as text and label\n")


def test_a_classifier_begins_with_a_bert_and_its_recipe_says_so(lmlab: Lmlab, tmp_path: Path) -> None:
    rows = [f"{'good' if i % 2 else 'bad'}\t{'fine' if i % 2 else 'dull'} film number {i}" for i in range(60)]
    (tmp_path / "films.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "text.txt").write_text("a fine film, a dull film number one. " * 100)
    small = ["--set", "layers=1", "--set", "width=8", "--set", "heads=1", "--set", "context=12", "--tokenizer", "words"]
    code, _, err = lmlab(
        "train", "bert", tmp_path / "text.txt", "--budget", "2steps", *small, "--out", tmp_path / "bert"
    )
    assert code == 0, err
    begin = ["--from", tmp_path / "bert", "--budget", "2steps"]
    done(lmlab("train", "classifier", tmp_path / "films.tsv", *begin, "--out", tmp_path / "run"))
    out = done(lmlab("classify", tmp_path / "run", "a fine film", "--json"))
    assert set(json.loads(out)[0]["p"]) == {"good", "bad"}
    done(lmlab("train", "--config", tmp_path / "run" / "recipe.toml", "--out", tmp_path / "again"))
    for model, words in (("gpt", "not of gpt"), ("dan", "not of dan")):
        refused(lmlab("train", model, tmp_path / "films.tsv", *begin, "--out", tmp_path / "no"), words)
    refused(lmlab("train", "classifier", *begin), "name the table")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give texts to label"),
        (["a film", "--errors", "2"], "leave the texts out"),
        (["a film", "--html", "page.html"], "--errors"),
        ([""], "is empty"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_line(
    arguments: list[str], words: str, lmlab: Lmlab, trained: Path
) -> None:
    refused(lmlab("classify", trained, *arguments), words)


@pytest.mark.parametrize(
    "arguments", [["sweep", "dan", "--over", "width=2,3"], ["contract", "dan"], ["compare", "--models", "dan,ngram"]]
)
def test_where_language_models_are_meant_a_classifier_is_refused(arguments: list[str], lmlab: Lmlab) -> None:
    refused(lmlab(*arguments), "no language model")
