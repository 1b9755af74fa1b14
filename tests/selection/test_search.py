"""A search finds the best model of a small text, goes on after a kill at any step, and leaves one run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import lmlab as lab
from command_line import Lmlab, done, refused
from lmlab.comparison.choose_text import ChosenText
from lmlab.learn.run import load_run
from lmlab.selection import candidates
from lmlab.selection.run_search import Search
from lmlab.selection.search import Best
from some_text import some_lines

ASKED: dict[str, Any] = {
    "budget": "8s",
    "models": ["ngram", "gru", "lstm"],
    "tokenizers": ["char", "bpe:260"],
    "device": "cpu",
}


@pytest.fixture
def by_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two candidates learn, in budgets of steps, and nothing depends on the clock."""
    spec, far = Search._spec, 1e9

    def in_steps(self: Search, candidate: Any) -> Any:
        usual = spec(self, candidate)
        return usual if candidate.counts else replace(usual, budget="40steps", learning={"rows": 4, "length": 16})

    monkeypatch.setattr(Search, "_spec", in_steps)
    monkeypatch.setattr(candidates, "FIELDS", ((far, 2),))
    monkeypatch.setattr(candidates, "LEAST_RESERVE_S", 100.0)  # so that no time is left for those that were stopped
    monkeypatch.setattr(candidates, "LEAST_TRAIN_S", 1.0)
    monkeypatch.setattr("lmlab.selection.rungs.LATE", -far)
    monkeypatch.setattr("lmlab.selection.run_search.COUNTING", far)
    monkeypatch.setattr("lmlab.selection.choose._tokens_in", lambda *_: 2000)
    monkeypatch.setattr(
        "lmlab.selection.run_search.choose_text", lambda *_: ChosenText(bytes=20_000, on_cpu=frozenset())
    )


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(some_lines(700))
    return path


@pytest.mark.usefixtures("by_steps")
def test_a_search_killed_after_every_step_goes_on_and_repeats_none(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lmlab: Lmlab
) -> None:
    steps: list[tuple[str, str]] = []
    take = Search._do

    def take_one_and_die(self: Search, step: Any) -> None:
        take(self, step)
        steps.append((step.what, step.name))
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "_do", take_one_and_die)
    found = None
    for _ in range(12):
        try:
            found = lab.best(text, out=tmp_path / "best", **ASKED)
            break
        except KeyboardInterrupt:
            continue
    assert found is not None, steps
    assert len(steps) == len(set(steps)) + sum(what == "train" for what, _ in steps) - len(
        {step for step in steps if step[0] == "train"}
    ), "only training is taken up again, to the next rung"
    assert [what for what, _ in steps] == [*["count"] * 2, "plan", *["train"] * 3, "choose", "measure"]
    _holds(found)
    monkeypatch.setattr(Search, "_do", take)
    undisturbed = lab.best(text, out=tmp_path / "undisturbed", **ASKED).found
    assert undisturbed.choice == found.found.choice
    assert undisturbed.result.bits_per_byte == found.bits_per_byte
    folder = tmp_path / "best"
    assert "bits per byte" in done(lmlab("eval", folder, "--device", "cpu"))
    assert len(done(lmlab("generate", folder, "--tokens", "5", "--device", "cpu"))) > 0
    assert json.loads((folder / "best.json").read_text())["choice"]["tokenizer"] == found.found.choice.tokenizer


def _holds(found: Best) -> None:
    rows = {row.name: row for row in found.found.candidates}
    assert {name.partition("-")[0] for name in rows} == {"ngram", "gru", "lstm"}
    learned = [row for row in rows.values() if row.model != "ngram"]
    assert sorted(len(row.rungs) for row in learned) == [1, 2]
    assert [row.ended for row in learned if len(row.rungs) == 1] == ["stopped"]
    assert {row.tokenizer for row in learned} == {
        min(
            (row for row in rows.values() if row.model == "ngram"), key=lambda row: row.rungs[-1].bits_per_byte
        ).tokenizer
    }
    assert all(row.weight is None for row in learned if row.ended == "stopped")
    choice, result = found.found.choice, found.found.result
    best = found.run
    assert (best.status, best.record.model.sha256) == ("finished", choice.sha256)
    assert load_run(best.folder / "search" / "models" / choice.run).record.model.sha256 == choice.sha256
    assert result.certified
    assert result.bits_per_byte == found.bits_per_byte
    assert choice.bits_per_byte[choice.run] == min(choice.bits_per_byte.values())
    page = found.page.read_text()
    assert f"{found.bits_per_byte:.4f}" in page
    assert "stopped at 20%" in page


def test_a_small_text_allows_fewer_ids_than_a_tokenizer_that_nobody_named_asks_for(tmp_path: Path) -> None:
    (tmp_path / "small.txt").write_text(some_lines(300))
    found = lab.best(tmp_path / "small.txt", out=tmp_path / "best", budget="20s", models=["ngram"], device="cpu").found
    assert [row.ended for row in found.candidates] == ["counted"] * len(found.candidates)
    (row,) = [row for row in found.candidates if row.tokenizer.startswith("bpe")]
    assert row.settings["order"] is not None
    assert "lmlab" not in found.choice.why


def test_names_a_line_have_an_end_that_is_predicted(tmp_path: Path, lmlab: Lmlab) -> None:
    random = Random(0)
    names = {"".join(random.choices("abdeilmnorst", k=random.randint(3, 9))) for _ in range(3000)}
    (tmp_path / "names.txt").write_text("\n".join(sorted(names)) + "\n")
    words = ("best", tmp_path / "names.txt", "--documents", "lines", "--models", "ngram", "--budget", "20s")
    done(lmlab(*words, "--out", tmp_path / "best", "--device", "cpu"))
    assert load_run(tmp_path / "best").model.end_id is not None


def test_a_search_needs_a_time_and_both_held_out_parts(text: Path, tmp_path: Path, lmlab: Lmlab) -> None:
    refused(lmlab("best", text, "--budget", "300steps"), "search-budget-of-steps")
    refused(lmlab("best", text, "--split", "90,0,10"), "search-without-part")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    refused(lmlab("best", text, "--out", tmp_path / "other"), "search-folder-taken")
