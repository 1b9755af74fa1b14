"""`lmlab train` as it is typed: going on, going on for longer, and beginning with the weights of another run."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest

import lmlab as lab
from command_line import Lmlab, done
from lmlab.learn import loop

TINY = ["--budget", "4steps", "--set", "layers=1", "--set", "width=16", "--set", "context=16"]


@pytest.fixture
def trained(lmlab: Lmlab, small_text: Path) -> Path:
    assert lmlab("train", "gpt", small_text, "--out", "run", *TINY)[0] == 0
    return Path("run")


def test_who_names_no_text_hears_which_is_learned(lmlab: Lmlab) -> None:
    code, _, err = lmlab("train", "gpt", "--set", "nonsense=1")
    assert (code, err.partition(":")[0]) == (
        2,
        "No text is named",
    )


def test_a_finished_run_is_given_more_and_says_so_where_it_gets_nothing(lmlab: Lmlab, trained: Path) -> None:
    code, _, err = lmlab("train", "--resume", "--out", trained)
    assert code == 0
    assert "and is left as it was" in err
    assert "--out run --budget +10m" in err
    out = done(lmlab("train", "--resume", "--out", trained, "--budget", "+3steps", "--json"))
    found = json.loads(out)
    assert found["result"]["steps"] == 7
    assert [a["steps"] for a in found["training"]["lineage"]] == [4]


def test_a_run_learns_another_text_from_the_weights_of_one(lmlab: Lmlab, trained: Path) -> None:
    Path("other.txt").write_text("something else altogether\n" * 60)
    out = done(lmlab("train", "--from", trained, "other.txt", "--budget", "3steps", "--json"))
    found = json.loads(out)
    assert found["run"] == "runs/run-other"
    assert found["training"]["lineage"][0]["run"] == str(trained.resolve())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gpt", "small.txt", "--budget", "+3steps"], ["a --budget with a plus", "--resume"]),
        (["--from", "run"], ["name the text", "--from RUN TEXT"]),
        (["--from", "run", "lstm", "small.txt"], ["a run of gpt, not of lstm"]),
        (["--from", "run", "small.txt", "--tokenizer", "byte"], ["char tokens", "--tokenizer"]),
        (["--from", "run", "small.txt", "--set", "width=32"], ["--set", "do not fit"]),
        (["--from", "run", "small.txt", "--resume", "--out", "run"], ["leave one out"]),
        (["--from", "nowhere", "small.txt"], ["there is no run nowhere"]),
        (["--resume", "--out", "nowhere", "--budget", "+3m"], ["nowhere holds no run"]),
        (["gpt", "small.txt", "--learn", "zzz=4"], ["learning_rate, length"]),
    ],
)
def test_what_cannot_be_is_one_line_that_says_what_would_be_right(
    lmlab: Lmlab, trained: Path, arguments: list[str], words: list[str]
) -> None:
    code, out, err = lmlab("train", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert all(word in err for word in words), err
    assert "budget, " not in err
    assert not Path("runs").exists()


def test_a_stopped_run_generates_and_is_marked_on_stderr(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "interruptible", lambda: contextmanager(lambda: iter([lambda: True]))())
    code, out, _ = lmlab("train", "gpt", small_text, "--out", "run", *TINY)
    assert code == 130
    assert "lmlab generate run" in out
    monkeypatch.undo()
    monkeypatch.chdir(small_text.parent)
    assert lab.load("run").status == "unfinished"
    code, out, err = lmlab("generate", "run", "--tokens", 5)
    assert (code, len(out) > 0) == (0, True)
    assert "run is unfinished" in err
    out = done(lmlab("eval", "run"))
    assert "note: run is unfinished" in out


def test_a_recipe_trains_and_what_is_typed_comes_before_what_it_says(lmlab: Lmlab, trained: Path) -> None:
    out = done(lmlab("train", "--config", trained / "recipe.toml", "--out", "again", "--json"))
    assert json.loads(out)["model"] == json.loads((trained / "run.json").read_text())["model"]
    more = ["--budget", "6steps", "--set", "layers=2", "--learn", "rows=2", "--out", "other", "--json"]
    out = done(lmlab("train", "--config", trained / "recipe.toml", *more))
    found = json.loads(out)
    assert (found["result"]["steps"], found["training"]["learning"]) == (6, {"rows": 2})
    assert (found["model"]["config"]["layers"], found["model"]["config"]["width"]) == (2, 16)
    code, out, err = lmlab("train", "--from", trained, "small.txt", "--budget", "2steps", "--out", "tuned", "--json")
    assert code == 0, err
    code, again, err = lmlab("train", "--config", "tuned", "--out", "tuned-again", "--json")
    assert code == 0, err
    assert json.loads(again)["model"]["sha256"] == json.loads(out)["model"]["sha256"]
    code, _, err = lmlab("train", "--config", trained, "--resume", "--out", trained)
    assert (code, "leave --config out" in err) == (2, True)


def test_help_of_a_model_lists_its_settings_and_so_does_settings(lmlab: Lmlab, small_text: Path) -> None:
    out = done(lmlab("train", "gpt", "--help"))
    assert "--resume" in out
    assert "blocks of attention" in out
    assert "matrix_learning_rate" in out
    assert "matrix_learning_rate" not in lmlab("train", "--help")[1]
    code, out, err = lmlab("settings", "feedforward", small_text, "--budget", "9steps", "--set", "width=48", "--json")
    assert code == 0, err
    here = {s["name"]: s["here"] for s in json.loads(out)["settings"]}
    assert here["width"] == 48
    assert here["context"] is not None
    assert "timed just now" not in lmlab("settings", "bag", small_text)[1]
    code, out, _ = lmlab("settings", "bag")
    assert (code, "--learn" in out) == (0, False)
    assert lmlab("settings", "gtp")[0] == 2
