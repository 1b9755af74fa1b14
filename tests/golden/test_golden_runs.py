"""Runs, mixes, comparisons and a sweep that an earlier version made open from wherever they lie, score alike and go on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import golden_uses
import make_runs
import pytest
from golden_groups import GROUPS
from golden_places import RUNS, Place, brought
from golden_values import plain

import lmlab
from lmlab.config import Mistake

MOST_BYTES = 480_000
BY_NAME = {group.name: group for group in GROUPS}
RESUMED = 2e-4  # as ten steps: see test_golden


def test_the_kept_runs_are_small_and_name_no_folder_of_a_machine() -> None:
    files = [path for path in RUNS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    for path in files:
        assert not re.search(rb"/(tmp|home|root|work|Users|var)/", path.read_bytes()), path


@pytest.mark.parametrize("case", ["ngram-words", "gpt-char", "gpt-stopped", "mix-words", "bag-markov"])
def test_a_run_scores_alike_where_its_text_is_gone(case: str, kept: Path, tmp_path: Path) -> None:
    moved = brought(tmp_path / "elsewhere", (case,), home=False)
    place = Place(kept=moved, new=tmp_path)
    (moved / "texts").symlink_to(kept / "texts")  # for the test text, which no record names here
    group = BY_NAME["scores"]
    assert group.moved(group.golden()[case], plain(golden_uses.scored(case, place))) == []


def test_a_run_says_in_one_line_that_its_text_is_gone(tmp_path: Path) -> None:
    moved = brought(tmp_path / "elsewhere", ("ngram-words",), home=False)
    with pytest.raises(Mistake, match=r"/golden/texts/\S+"):
        lmlab.evaluate(moved / "ngram-words", device="cpu")


def test_a_run_whose_text_was_divided_by_default_finds_its_parts_again(kept: Path) -> None:
    """It alone depends on how one file is divided: its record has to say enough to divide the text as it was divided."""
    run = lmlab.load(kept / "bag-markov")
    recorded = run.record.inputs.corpus["parts"]
    assert {name: part.sha256 for name, part in run.corpus.parts.items()} == {
        name: part["sha256"] for name, part in recorded.items()
    }


def test_a_stopped_run_goes_on_and_ends_as_the_undisturbed_one(tmp_path: Path) -> None:
    folder = brought(tmp_path / "golden", ("gpt-stopped", "texts"))
    assert lmlab.load(folder / "gpt-stopped").status == "unfinished"
    resumed = lmlab.resume(folder / "gpt-stopped")
    whole = json.loads((RUNS / make_runs.WHOLE).read_text())
    assert (resumed.status, resumed.record.result.steps) == ("finished", whole["steps"])
    test = (folder / "texts" / "test.txt").read_text(encoding="utf-8")
    assert lmlab.score(resumed, test, device="cpu").bits == pytest.approx(whole["test_bits"], rel=RESUMED)


def test_a_finished_run_gets_more_time_and_keeps_its_best_weights(tmp_path: Path) -> None:
    folder = brought(tmp_path / "golden", ("gpt-words", "texts"))
    run = lmlab.resume(folder / "gpt-words", budget="+2steps")
    assert run.record.result.steps == make_runs.LONGER["gpt-words"] + 2
    assert run.record.training.lineage[-1].steps == make_runs.LONGER["gpt-words"]


def test_another_text_is_learned_from_the_weights_of_a_kept_run(tmp_path: Path) -> None:
    folder = brought(tmp_path / "golden", ("gpt-char", "texts"))
    text, valid = folder / "texts" / "neighbours.txt", folder / "texts" / "valid.txt"
    tuned = lmlab.fine_tune(folder / "gpt-char", text, valid=valid, out=tmp_path / "new", budget="2steps", device="cpu")
    assert tuned.record.training.lineage[-1].sha256 == lmlab.load(folder / "gpt-char").record.model.sha256


@pytest.mark.slow  # the golden values of a comparison say `reused` of every model, fast
def test_a_finished_comparison_asked_for_again_trains_nothing(tmp_path: Path) -> None:
    folder = brought(tmp_path / "golden", ("compare", "texts"))
    before = weights(folder / "compare")
    found = make_runs.compare_again(folder / "texts", folder / "compare", make_runs.COMPARED)
    assert [entry.reused for entry in found.findings.entries] == [True] * len(make_runs.COMPARED)
    assert before.items() <= weights(folder / "compare").items()


@pytest.mark.slow
def test_a_stopped_comparison_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    folder = brought(tmp_path / "golden", ("compare-stopped", "texts"))
    before = weights(folder / "compare-stopped")
    found = make_runs.compare_again(folder / "texts", folder / "compare-stopped", make_runs.INTERRUPTED)
    assert {entry.name: entry.reused for entry in found.findings.entries} == {
        "ngram": True, "bigram": True, "feedforward": False,
    }  # fmt: skip
    assert {entry.status for entry in found.findings.entries} == {"ranked"}
    assert before.items() <= weights(folder / "compare-stopped").items()


def test_a_finished_sweep_asked_for_again_trains_nothing(tmp_path: Path) -> None:
    folder = brought(tmp_path / "golden", ("sweep", "texts"))
    before = {path: path.stat().st_mtime_ns for path in (folder / "sweep").rglob("result.json")}
    found = make_runs.sweep_again(folder / "texts", folder / "sweep")
    assert (found.runs, found.left) == (len(before), 0)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def weights(folder: Path) -> dict[str, bytes]:
    """The weights of all models in a comparison."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("model.safetensors")}
