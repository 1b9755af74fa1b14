"""The folder of a comparison: it goes on with what it began and the time that is left, and never mixes two comparisons."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command_line import Result, refused
from lmlab.comparison import choose_text, compare, work
from lmlab.comparison.folder import Terms, claimed
from lmlab.comparison.remarks import reused
from lmlab.comparison.time_shares import LEAST_TEST_BYTES
from lmlab.config import Mistake
from lmlab.learn.checkpoint import read_progress
from lmlab.learn.run import load_run
from lmlab.models.bag import Bag
from mistakes import mistake

Lmlab = Callable[..., tuple[int, str, str]]
TINY = {"bigram": {"width": 8, "embedding_width": 4}, "feedforward": {"width": 8, "context": 2, "embedding_width": 4}}
SET = ["--set", "bigram.width=8", "--set", "bigram.embedding_width=4", "--set", "feedforward.width=8"]
TEXT = {"parts": {"train": "a"}}


def terms(runs: tuple[str, ...] = ("gpt-char",), **changes: Any) -> Terms:
    return Terms(**({"budget_s": 60.0, "each": None, "shares": {}, "device": "auto", "runs": runs} | changes))


def begun(folder: Path, asked: Terms) -> None:
    with claimed(folder, TEXT, asked, beside=False) as claim:
        claim.note(train_s=5.0, used_s=20.0, began=True)


@pytest.mark.parametrize(
    ("asked", "goes_on"),
    [
        (terms(), True),
        (terms(()), True),
        (terms(("gpt-char", "gru-char")), False),
        (terms(budget_s=600.0), False),
        (terms(shares={"gpt": 2.0}), False),
        (terms(budget_s=None, each="5s"), False),
    ],
)
def test_only_what_was_planned_goes_on(tmp_path: Path, asked: Terms, goes_on: bool) -> None:
    begun(tmp_path / "out", terms())
    if goes_on:
        with claimed(tmp_path / "out", TEXT, asked, beside=False) as claim:
            assert (claim.plan.train_s, claim.plan.used_s) == (5.0, 20.0)
        return
    with (
        pytest.raises(Mistake, match="a budget of 60 s for 1 run"),
        claimed(tmp_path / "out", TEXT, asked, beside=False),
    ):
        pass
    with claimed(tmp_path / "out", TEXT, asked, beside=True) as claim:
        assert claim.path == tmp_path / "out-2"
        assert claim.plan.train_s is None


def test_with_a_time_for_each_other_models_may_join(tmp_path: Path) -> None:
    begun(tmp_path / "out", terms(budget_s=None, each="5s"))
    joined = terms(("gpt-char", "gru-char"), budget_s=None, each="5s")
    with claimed(tmp_path / "out", TEXT, joined, beside=False) as claim:
        assert claim.plan.train_s == 5.0


@pytest.mark.parametrize("content", ["", "[]", "3", "null", '{"terms": 3}', '{"terms": {"budget_s": 1}}'])
@pytest.mark.parametrize("name", ["plan.json", "corpus.json"])
def test_a_damaged_folder_is_one_clear_line(tmp_path: Path, name: str, content: str) -> None:
    begun(tmp_path / "out", terms())
    (tmp_path / "out" / name).write_text(content)
    with pytest.raises(Mistake, match=r"name a new folder with out"):
        begun(tmp_path / "out", terms())


def test_another_seed_is_named_as_what_differs(tmp_path: Path) -> None:
    begun(tmp_path / "out", terms())
    for runs, said in ((("gpt-char-seed3",), "seed 3"), (("gpt-char", "gpt-char-seed1"), "seeds 0, 1")):
        with (
            mistake("comparison-folder-taken", f"with seed 0, not {said}"),
            claimed(tmp_path / "out", TEXT, terms(runs), beside=False),
        ):
            pass


def test_who_comes_second_gets_one_clear_line(lmlab: Lmlab, small_text: Path, tmp_path: Path) -> None:
    with claimed(tmp_path / "out", TEXT, terms(), beside=False):
        refused(lmlab("compare", small_text, "--models", "bag", "--out", "out"), "comparison-folder-busy")


@pytest.mark.slow
def test_another_budget_is_another_comparison(lmlab: Lmlab, small_text: Path) -> None:
    def ask(*more: str) -> Result:
        return lmlab("compare", small_text, *SET[:4], *more)

    assert ask("--models", "bigram", "--budget", "3s")[0] == 0
    assert json.loads(Path("runs/compare-small/comparison.json").read_text())["budget_s"] == 3.0
    for other in (["--models", "bigram", "--budget", "4s"], ["--models", "bigram,feedforward", "--budget", "3s"]):
        refused(ask(*other, "--out", "runs/compare-small"), "comparison-folder-taken", "a budget of 3 s", "--out")
    _, _, err = ask("--models", "bigram", "--budget", "3s", "--split", "70,20,10", "--out", "runs/compare-small")
    assert "divided otherwise" in err
    code, _, err = ask("--models", "bigram", "--budget", "4s")  # no folder was named: beside the first
    assert code == 0, err
    assert json.loads(Path("runs/compare-small-2/comparison.json").read_text())["budget_s"] == 4.0


@pytest.mark.slow
def test_stopped_and_begun_again_it_goes_on_with_the_time_that_is_left_and_says_so(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Heard:
        def __init__(self) -> None:
            self.lines: list[str] = []

        def show(self, *_: object) -> None:
            pass

        def say(self, line: str) -> None:
            self.lines.append(line)

    honest, heard = work.train, Heard()

    def stopped_at_the_second(model: str, *args: Any, **options: Any) -> Any:
        if model == "feedforward":
            raise KeyboardInterrupt
        return honest(model, *args, **options)

    asked: dict[str, Any] = {
        "out": tmp_path / "out", "models": ["bag", *TINY], "budget": "4s", "settings": TINY, "watch": heard,
    }  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(work, "train", stopped_at_the_second)
        first = compare(small_text, **asked)
    assert first.stopped
    assert {e.model: e.status for e in first.entries} == {
        "bag": "ranked",
        "bigram": "ranked",
        "feedforward": "training",
    }
    used_s = json.loads((tmp_path / "out" / "plan.json").read_text())["used_s"]
    assert used_s > 0
    second = compare(small_text, **asked)
    by_name = {e.model: e for e in second.entries}
    assert {name: e.reused for name, e in by_name.items()} == {"bag": True, "bigram": True, "feedforward": False}
    assert second.findings.seconds > used_s
    assert any("trained before" in line and "bigram" in line for line in heard.lines)
    assert all(name in reused(second.findings) for name in ("bag", "bigram"))
    assert "Trained before" not in second.report.read_text()  # which is that of one that nobody stopped


@pytest.mark.slow
def test_measured_again_a_comparison_comes_to_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How much text there was time for is chosen once: when nothing has to be trained, nobody would choose."""
    settings = {"bigram": TINY["bigram"]}
    asked: dict[str, Any] = {"out": tmp_path / "out", "models": ["bag", "bigram"], "budget": "4s", "settings": settings}
    text = "markov:order=1,alphabet=4,length=800000,seed=0"
    with monkeypatch.context() as patch:
        patch.setattr(
            choose_text, "SCORING", math.inf
        )  # there is time for more than the bytes that are wanted at first
        first = compare(text, **asked).findings
    second = compare(text, **asked).findings
    assert first.measured.bytes > LEAST_TEST_BYTES
    assert second.measured == first.measured
    assert [e.bits_per_byte for e in second.entries] == [e.bits_per_byte for e in first.entries]
    fewer = compare(text, **asked | {"models": ["bigram"]}).findings
    assert fewer.measured == first.measured


@pytest.mark.slow
def test_the_seconds_of_a_model_are_all_that_were_spent_on_it_and_none_twice(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"bigram": TINY["bigram"]}
    asked: dict[str, Any] = {"out": tmp_path / "out", "models": ["bigram"], "budget": "4s", "settings": settings}
    with monkeypatch.context() as patch:
        patch.setattr("lmlab.learn.loop.interruptible", contextmanager(lambda: iter([lambda: True])))
        compare(small_text, **asked)
    before = read_progress(load_run(tmp_path / "out" / "models" / "bigram-char").checkpoint)
    assert before.seconds > 0
    (second,) = compare(small_text, **asked).findings.entries
    assert second.seconds > before.seconds
    (third,) = compare(small_text, **asked).findings.entries  # nothing was done
    assert third.seconds == second.seconds


def test_stopping_shows_what_there_is_and_exits_as_elsewhere(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bag, "fit", ctrl_c)
    code, out, err = lmlab("compare", small_text, "--models", "uniform,bag", "--budget", "4s", "--out", "out")
    assert code == 130
    assert " uniform " in out
    assert "stopped" in err


def test_a_budget_too_short_for_what_is_asked_names_the_least_that_would_do(lmlab: Lmlab, small_text: Path) -> None:
    code, out, err = lmlab("compare", small_text, "--budget", "2s", "--out", "out")
    assert (code, out) == (2, "")
    assert "--budget 1" in err  # some ten seconds for nine models
    assert "--models" in err
    assert not Path("out").exists()
