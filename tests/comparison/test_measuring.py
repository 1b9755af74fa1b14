from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmlab as lab
from lmlab.comparison.remarks import remarks
from lmlab.learn.run import Run
from mistakes import mistake

COMMON = "wind rain stone river garden window night morning letter answer question paper silver copper winter summer"


def lines(count: int, seed: int) -> str:
    random = np.random.default_rng(seed)
    words = COMMON.split()
    return "".join(" ".join(words[i] for i in random.integers(len(words), size=9)) + ".\n" for _ in range(count))


def near_copy(text: str, seed: int = 0) -> str:
    random = np.random.default_rng(seed)
    return "".join("x" if c.isalpha() and random.random() < 1 / 45 else c for c in text)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    text = tmp_path / "text.txt"
    text.write_text(lines(1200, seed=1))
    return lab.train("ngram", text, out=tmp_path / "run", settings={"order": 4})


def test_a_run_knows_what_it_was_trained_on(run: Run, tmp_path: Path, lmlab) -> None:  # type: ignore[no-untyped-def]
    copy = tmp_path / "copy.txt"
    for text in (run.corpus.train.text(), near_copy(run.corpus.train.text()), run.corpus.train.text()[9_000:15_000]):
        copy.write_text(text)
        code, shown, _ = lmlab("eval", run.folder, copy)
        assert code == 1
        assert "NOT HELD OUT" in shown
        code, shown, _ = lmlab("eval", run.folder, copy, "--json")
        found = json.loads(shown)
        assert found["held_out"]["verdict"] == "not held out"
        assert found["certified"] is found["certificate"]["held_out"] is False
        assert found["held_out"]["copied"] > 0.4
    copy.write_text(lines(300, seed=2))
    assert "NOT HELD" not in lmlab("eval", run.folder, copy)[1]
    code, shown, _ = lmlab("eval", run.folder, "--json")
    assert json.loads(shown)["held_out"]["verdict"] == "held out"
    assert code == 0


@pytest.mark.slow
@pytest.mark.parametrize("changed", [lambda text, seed: text, near_copy], ids=["exact", "near"])
def test_a_model_that_was_trained_on_the_test_text_is_caught_19_times_in_20(changed: Any, tmp_path: Path) -> None:
    caught = honest = 0
    for seed in range(20):
        text, seen, others = (tmp_path / f"{name}{seed}.txt" for name in ("text", "seen", "others"))
        text.write_text(lines(150, seed=1000 + seed))
        seen.write_text(lines(400, seed=seed) + changed(text.read_text(), seed) + lines(400, seed=2000 + seed))
        others.write_text(lines(800, seed=seed))
        for learned_from in (seen, others):
            run = lab.train(
                "ngram", learned_from, out=tmp_path / f"{learned_from.stem}", settings={"order": 3}, split=(98, 1, 1)
            )
            certified = lab.evaluate(run, text).certified
            caught += learned_from is seen and not certified
            honest += learned_from is others and certified
    assert caught >= 19
    assert honest == 20


def test_the_training_part_may_be_asked_for_and_is_marked(run: Run, lmlab) -> None:  # type: ignore[no-untyped-def]
    code, shown, _ = lmlab("eval", run.folder, "--part", "train")
    assert code == 0
    assert "NOT HELD OUT" in shown


def test_a_run_without_fingerprint_and_training_text_is_not_certified(
    run: Run,
    tmp_path: Path,
    lmlab,  # type: ignore[no-untyped-def]
) -> None:
    (run.folder / "training_text.safetensors").unlink()
    (tmp_path / "text.txt").unlink()
    other = tmp_path / "other.txt"
    other.write_text(lines(300, seed=2))
    code, shown, _ = lmlab("eval", run.folder, other)
    assert code == 0
    assert "not certified: whether the text was held out is not known" in " ".join(shown.split())
    found = json.loads(lmlab("eval", run.folder, other, "--json")[1])
    assert found["held_out"]["verdict"] == "unknown"
    assert (found["certified"], found["certificate"]["held_out"]) == (False, None)


def test_a_fingerprint_that_is_lost_is_made_again_from_the_training_text(run: Run, tmp_path: Path) -> None:
    text, copy = tmp_path / "text.txt", tmp_path / "copy.txt"
    copy.write_text(near_copy(run.corpus.train.text()))
    (run.folder / "training_text.safetensors").unlink()
    assert lab.evaluate(lab.load(run.folder)).certified
    assert lab.evaluate(lab.load(run.folder), copy).held_out.verdict == "not held out"
    text.write_text(text.read_text() + "and more\n")
    assert lab.evaluate(lab.load(run.folder), copy).held_out.verdict == "unknown", "it is another text"


def test_a_comparison_on_the_training_text_ranks_nobody_and_says_why(tmp_path: Path) -> None:
    text, copy = tmp_path / "text.txt", tmp_path / "copy.txt"
    text.write_text(lines(1200, seed=1))
    copy.write_text(near_copy(lines(1200, seed=1)))
    found = lab.compare(text, test=copy, models=["bag", "ngram"], budget="5s", out=tmp_path / "out")
    assert [entry.rank for entry in found.entries] == [None, None]
    assert "Not held out: all models" in found.report.read_text()
    assert "held-out bytes" not in found.report.read_text()
    assert any("Not held out: all models" in remark for remark in remarks(found.findings))  # as the terminal has them


def test_what_weights_learned_before_is_not_forgotten(tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text(lines(900, seed=1))
    second.write_text(lines(900, seed=2))
    old = lab.train("bigram", first, out=tmp_path / "old", budget="2steps")
    new = lab.fine_tune(old, second, out=tmp_path / "new", budget="2steps")
    assert len(new.learned_from) == 2
    for text in (first, second):
        assert lab.evaluate(new, text).held_out.verdict == "not held out"
    (old.folder / "training_text.safetensors").unlink()
    first.unlink()
    newer = lab.fine_tune(old, second, out=tmp_path / "newer", budget="2steps")
    assert lab.evaluate(newer, second).held_out.verdict == "not held out"
    assert lab.evaluate(newer).held_out.verdict == "unknown"


def test_one_of_several_fingerprints_that_is_gone_or_another_is_not_passed_over(tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text(lines(900, seed=1))
    second.write_text(lines(900, seed=2))
    old = lab.train("bigram", first, out=tmp_path / "old", budget="2steps")
    new = lab.fine_tune(old, second, out=tmp_path / "new", budget="2steps")
    assert lab.evaluate(new).held_out.verdict == "held out"
    of_first, of_second = new.folder / "training_text.1.safetensors", new.folder / "training_text.safetensors"
    kept = of_first.read_bytes()
    of_first.unlink()
    assert lab.evaluate(lab.load(new.folder), first).held_out.verdict == "unknown"
    assert lab.evaluate(lab.load(new.folder)).held_out.verdict == "unknown"
    assert lab.evaluate(lab.load(new.folder), second).held_out.verdict == "not held out"
    of_first.write_bytes(kept)
    third = lab.train("bag", lines(900, seed=3), out=tmp_path / "third")
    of_second.write_bytes((third.folder / "training_text.safetensors").read_bytes())
    with mistake("fingerprint-of-another-text"):
        lab.evaluate(lab.load(new.folder), second)


def test_training_and_test_text_twice_is_ranked_nowhere(tmp_path: Path) -> None:
    """A training text that repeats itself hides a copy from the sample, and not from the bytes."""
    text, test = lines(900, seed=1), lines(200, seed=2)
    (tmp_path / "train.txt").write_text(2 * (text + test))
    (tmp_path / "test.txt").write_text(test)
    found = lab.compare(
        tmp_path / "train.txt", test=tmp_path / "test.txt", models=["bag", "ngram"], budget="5s", out=tmp_path / "out"
    )
    assert [(entry.status, entry.rank) for entry in found.entries] == [("unranked", None)] * 2
    page = found.report.read_text()
    assert "certified: all" not in page
    assert "NOT certified: held_out failed" in page


def test_another_runs_fingerprint_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text(lines(900, seed=5))
    other = lab.train("bag", tmp_path / "other.txt", out=tmp_path / "other")
    name = "training_text.safetensors"
    (run.folder / name).write_bytes((other.folder / name).read_bytes())
    with mistake("fingerprint-of-another-text"):
        lab.evaluate(run)
