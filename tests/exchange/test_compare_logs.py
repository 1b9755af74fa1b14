"""Samples of lm-eval: paired differences whose intervals cover, letters, and refusals of what cannot be compared."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmlab as lab
from command_line import Lmlab, done, refused
from mistakes import mistake


def log(folder: Path, model: str, values: Any, metric: str = "acc", task: str = "arc", **more: Any) -> Path:
    """As lm-eval writes it: a file for each model and task, in a folder of the model."""
    path = folder / model / f"samples_{task}_2026-01-02T03-04-05.678901.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {"doc_id": i, "doc": {}, "doc_hash": f"h{i}", "filter": "none", "metrics": [metric], metric: value, **more}
        for i, value in enumerate(values)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_models_are_told_apart_document_by_document(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    hard = generator.random(400)
    draws = {name: (hard < p).astype(float).tolist() for name, p in (("weak", 0.4), ("strong", 0.7), ("twin", 0.7))}
    found = lab.compare_logs([log(tmp_path, name, values) for name, values in draws.items()])
    (task,) = found.tasks
    assert (task.task, task.metric, task.documents, task.lower_is_better) == ("arc", "acc", 400, False)
    letters = {one.model: one.letters for one in task.models}
    assert letters == {"strong": "a", "twin": "a", "weak": "b"}
    (twins,) = [pair for pair in task.pairs if {pair.a, pair.b} == {"strong", "twin"}]
    assert twins.differing == 0
    assert twins.low < 0 < twins.high
    (worse,) = [pair for pair in task.pairs if (pair.a, pair.b) == ("strong", "weak")]
    assert worse.difference == pytest.approx(np.mean(draws["strong"]) - np.mean(draws["weak"]))
    assert worse.low < worse.difference < worse.high


def test_bits_per_byte_are_a_quotient_of_sums(tmp_path: Path) -> None:
    a = [[-10.0, 8], [-30.0, 24], [-5.0, 2]]
    b = [[-12.0, 8], [-36.0, 24], [-7.0, 2]]
    found = lab.compare_logs([log(tmp_path, name, values, "bits_per_byte") for name, values in (("a", a), ("b", b))])
    (task,) = found.tasks
    assert task.lower_is_better
    assert task.models[0].model == "a"
    assert task.models[0].value == pytest.approx(45 / math.log(2) / 34)
    assert task.pairs[0].difference == pytest.approx(-10 / math.log(2) / 34)
    assert not task.pairs[0].apart  # of three documents no sign is a wonder


def test_equal_models_are_told_apart_as_seldom_as_promised() -> None:
    """Planted: without the correction for many pairs the rate is far above a twentieth."""
    from lmlab.exchange.compare_logs import _pair

    generator = np.random.default_rng(3)
    wrong = 0
    for _ in range(300):
        scores = (generator.random((4, 60)) < 0.5).astype(float)
        rows = np.stack([scores, np.ones_like(scores)], axis=2)
        pairs = [_pair("a", "b", rows[i], rows[j], 1 - 0.05 / 6) for i in range(4) for j in range(i + 1, 4)]
        wrong += any(pair.apart for pair in pairs)
    assert wrong / 300 < 0.08


@pytest.mark.parametrize(
    ("name", "change", "word"),
    [
        ("cut", lambda text: text[:-20], "log-damaged"),
        ("other", lambda text: text.replace("h3", "x"), "logs-of-other-documents"),
        ("none", lambda text: '{"a": 1}\n', "log-of-other-format"),
        ("empty", lambda text: "", "log-without-metrics"),
        ("twice", lambda text: text + text, "log-document-twice"),
        ("deep", lambda text: "[" * 100_000, "log-damaged"),
    ],
)
def test_what_is_no_such_log_is_refused_in_one_line(
    name: str, change: Any, word: str, tmp_path: Path, lmlab: Lmlab
) -> None:
    first, second = (log(tmp_path, model, [1.0, 0.0, 1.0, 1.0]) for model in ("a", "b"))
    second.write_text(change(second.read_text()))
    refused(lmlab("compare", "--logs", first, second), word)


def test_the_command_prints_letters_and_intervals(tmp_path: Path, lmlab: Lmlab) -> None:
    files = [
        log(tmp_path, model, values) for model, values in (("a", [1.0] * 40), ("b", [0.0] * 40), ("c", [1.0] * 40))
    ]
    shown = done(lmlab("compare", "--logs", *files))
    assert "not told apart" in shown
    assert "40 documents" in shown
    document = json.loads(done(lmlab("compare", "--logs", *files, "--json")))
    assert document["tasks"][0]["models"][0]["letters"] == "a"
    with mistake("logs-without-pairs"):
        lab.compare_logs(files[:1])
    refused(lmlab("compare", "--logs", *files, "--budget", "5s"), "option-beside-logs")
    refused(lmlab("compare", "sotu", "other"), "several-texts")
