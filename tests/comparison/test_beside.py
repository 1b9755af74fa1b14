"""Models trained elsewhere are measured on the bytes of a comparison, and have no rank."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lmlab as lab
from command_line import Lmlab, done
from lmlab.measure import Result


def test_a_run_is_held_against_the_best_model_on_the_same_bytes(tmp_path: Path, lmlab: Lmlab) -> None:
    generator = np.random.default_rng(0)
    words = ["".join(generator.choice(list("etaoinshr"), size=n)) for n in generator.integers(2, 9, size=60)]
    text = tmp_path / "text.txt"
    text.write_text("\n".join(" ".join(generator.choice(words, size=9)) for _ in range(900)) + "\n")
    other = lab.train("bag", text, out=tmp_path / "other")
    shown = done(
        lmlab("compare", text, "--models", "uniform,ngram", "--with", other.folder, "--out", tmp_path / "found")
    )
    assert "not ranked" in shown
    assert "worse than ngram" in shown
    (one,) = json.loads((tmp_path / "found" / "beside.json").read_text())["beside"]
    alone = lab.evaluate(other)
    assert isinstance(alone, Result)
    assert one["result"]["bits_per_byte"] == pytest.approx(alone.bits_per_byte, abs=1e-6)
    assert 0 < one["interval"][0] <= one["difference"] <= one["interval"][1]
    assert 'id="beside"' in (tmp_path / "found" / "report.html").read_text()
