"""`lmlab train variational`, `lmlab eval` and `lmlab latent`, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lmlab as lab
from command_line import Lmlab, done, refused
from interrupts import InterruptAt
from killed_runs import survives_a_kill
from lmlab.config import Mistake
from lmlab.learn.run import Run
from lmlab.tasks.latent.measure import LatentResult
from lmlab.tasks.latent.show import print_scores

SETTINGS = {"layers": 1, "width": 8, "latent": 3, "segment": 16}
TEXT = "the cat sat on the mat. " * 40 + "a dog ran to the sea. " * 40


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("latent")
    (folder / "text.txt").write_text(TEXT)
    return lab.train("variational", folder / "text.txt", out=folder / "run", budget="40steps", settings=SETTINGS)


def test_eval_gives_two_bounds_and_says_so(run: Run, lmlab: Lmlab) -> None:
    out = done(lmlab("eval", str(run.folder)))
    assert "at most" in out
    assert "not ranked" in out
    assert "95% interval" in out
    out = done(lmlab("eval", str(run.folder), "--json"))
    found = json.loads(out)
    assert found["tightened"]["estimate"] <= found["bound"]["estimate"] + 1e-6
    assert found["bits_per_byte_at_most"] == found["tightened"]["estimate"]
    assert found["kl_nats"] > 0
    result = lab.evaluate(run, part="valid")
    assert isinstance(result, LatentResult)
    assert result.part == "valid"


def test_latent_writes_draws_neighbours_and_what_lies_between(run: Run, tmp_path: Path, lmlab: Lmlab) -> None:
    out = done(lmlab("latent", str(run.folder), "--json", "--number", "2", "--seed", "1"))
    drawn = json.loads(out)
    assert len(drawn) == 2
    assert drawn[0]["share"] is None
    assert len(drawn[0]["z"]) == 3
    between = lab.latent(run, "the cat", "a dog", number=3, svg=tmp_path / "bounds.svg")
    assert "draws of z" in (tmp_path / "bounds.svg").read_text()
    assert [one.share for one in between] == [0.0, 0.5, 1.0]
    assert between[1].z == pytest.approx(
        [(a + b) / 2 for a, b in zip(between[0].z, between[2].z, strict=True)], abs=1e-5
    )
    out = done(lmlab("latent", str(run.folder), "the cat", "a dog", "--number", "3"))
    assert "50%" in out


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    """Stopped at a checkpoint, as a kill would leave it."""
    (tmp_path / "text.txt").write_text(TEXT)
    asked: dict[str, Any] = {"budget": "30steps", "settings": SETTINGS, "device": "cpu"}
    whole = lab.train("variational", tmp_path / "text.txt", out=tmp_path / "whole", **asked)
    half = lab.train("variational", tmp_path / "text.txt", out=tmp_path / "half", watch=InterruptAt(16), **asked)
    assert half.status == "unfinished"
    assert lab.resume(half.folder).record.model.sha256 == whole.record.model.sha256


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    text = tmp_path / "text.txt"
    survives_a_kill("train", "variational", text, folder=tmp_path, at_step=13, budget="20steps", settings=SETTINGS)


def test_what_does_not_fit_is_refused_in_a_line(run: Run, tmp_path: Path, lmlab: Lmlab) -> None:
    for arguments, words in (
        (["a sentence that is far too long for it"], "shorter sentence"),
        (["", "a dog"], "empty"),
        (["--tokens", "99"], "from 1 to 16"),
        (["--number", "0"], "from 1 up"),
        (["--temperature", "0"], "above 0"),
    ):
        refused(lmlab("latent", str(run.folder), *arguments), words)
    (tmp_path / "text.txt").write_text(TEXT)
    ngram = lab.train("ngram", tmp_path / "text.txt", out=tmp_path / "ngram")
    with pytest.raises(Mistake, match="no latent variable"):
        lab.latent(ngram)
    with pytest.raises(Mistake, match="no language model"):
        lab.generate(run)
    with pytest.raises(Mistake, match="no language model"):
        lab.compare(tmp_path / "text.txt", models=["variational"], out=tmp_path / "c")


@pytest.mark.parametrize(
    ("used", "tells"), [(0, "from segment to segment, so that z tells nothing of them."), (2, "2 of its 8")]
)
def test_a_z_that_is_far_from_the_prior_and_always_the_same_is_not_said_to_carry_anything(
    used: int, tells: str, capsys: pytest.CaptureFixture[str]
) -> None:
    interval = SimpleNamespace(estimate=3.0, low=2.9, high=3.1)
    found: Any = SimpleNamespace(
        model="variational", where="the test part of t", bytes=100, segments=4, draws=32, kl_nats=3.51, used=used, latent=8,
        blind=5.6, tightened=interval, bound=interval, notes=(),
    )  # fmt: skip
    print_scores(found)
    said = capsys.readouterr().out
    assert "z costs 3.51 nats a segment" in said
    assert tells in said
    assert ("tells nothing" in said) == (used == 0)
