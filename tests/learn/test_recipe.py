"""The recipe of a run repeats it, to the last bit where its budget is of steps; and one by hand is read with care."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import lmlab
from lmlab.config import Mistake

SETTINGS = {"context": 2, "embedding_width": 4, "width": 8}


@pytest.mark.parametrize("model", ["feedforward", "ngram"])
def test_a_run_is_repeated_by_its_recipe(model: str, small_text: Path, tmp_path: Path) -> None:
    learning = {"rows": 4} if model == "feedforward" else {}
    settings = SETTINGS if model == "feedforward" else {}
    run = lmlab.train(
        model, small_text, out=tmp_path / "run", tokenizer="words", budget="5steps", split=(70, 20, 10), seed=3,
        settings=settings, learning=learning,
    )  # fmt: skip
    again = lmlab.train(**lmlab.recipe(tmp_path / "run" / "recipe.toml"), out=tmp_path / "again")
    assert again.record.model == run.record.model
    assert again.record.inputs == run.record.inputs
    assert lmlab.recipe(tmp_path / "run") == lmlab.recipe(tmp_path / "again")  # a run stands for its recipe


def test_the_recipe_holds_what_was_chosen_so_that_another_machine_makes_the_same_model(
    small_text: Path, tmp_path: Path
) -> None:
    run = lmlab.train("lstm", small_text, out=tmp_path / "run", budget="2steps")
    chosen = tomllib.loads((tmp_path / "run" / "recipe.toml").read_text())["settings"]
    assert chosen == {key: value for key, value in run.record.model.config.items() if value is not None}
    assert chosen["width"] > 0


def test_a_run_that_began_with_another_is_repeated_from_there(small_text: Path, tmp_path: Path) -> None:
    lmlab.train("feedforward", small_text, out=tmp_path / "first", budget="5steps", settings=SETTINGS)
    tuned = lmlab.fine_tune(tmp_path / "first", small_text, out=tmp_path / "tuned", budget="3steps")
    again = lmlab.fine_tune(**lmlab.recipe(tmp_path / "tuned"), out=tmp_path / "again")
    assert again.record.model.sha256 == tuned.record.model.sha256
    longer = lmlab.resume(tuned, budget="+2steps")
    text = (longer.folder / "recipe.toml").read_text()
    assert "# and then: lmlab train --resume --out NEW --budget +2steps" in text
    assert lmlab.recipe(longer.folder)["budget"] == "3steps"


def test_names_with_quotes_and_letters_of_all_kinds_come_back(tmp_path: Path) -> None:
    text = tmp_path / 'a "quoted" \\ näme \x7f 漢.txt'
    text.write_text("the cat sat on the mat\n" * 20)
    lmlab.train("bag", text, out=tmp_path / "run")
    assert lmlab.recipe(tmp_path / "run")["text"] == str(text.resolve())


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('modl = "gpt"', "did you mean 'model'"),
        ('model = "gpt"\nseed = "one"', "seed is a whole number"),
        ('model = "gpt"\nbudget = 5', "budget is a text in quotes"),
        ('model = "gpt"\nsettings = 3', r"settings is a table \[settings\]"),
        ("model = ", "is not TOML"),
        ('text = "x.txt"', "names either a model"),
        ('model = "gpt"\nfrom = "runs/x"', "names either a model"),
    ],
)
def test_a_slip_in_a_recipe_is_answered_with_what_would_be_right(written: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(written)
    with pytest.raises(Mistake, match=said):
        lmlab.recipe(tmp_path / "mine.toml")


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"every run has a recipe\.toml"):
        lmlab.recipe(tmp_path / "nowhere.toml")


def test_several_files_to_validate_and_test_on_are_named_as_several_are_to_learn(
    small_text: Path, tmp_path: Path
) -> None:
    held_out = [tmp_path / f"{i}.txt" for i in range(4)]
    for path in held_out:
        path.write_text("the cat sat on the mat\n" * 5)
    run = lmlab.train("bag", small_text, valid=held_out[:2], test=held_out[2:], out=tmp_path / "run")
    again = lmlab.train(**lmlab.recipe(run.folder), out=tmp_path / "again")
    assert again.record.inputs == run.record.inputs
