"""`lmlab export`, as a user calls it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

import lmlab as lab
from command_line import Lmlab, done, refused
from some_documents import list_of_names


def test_kenlm_reads_what_is_exported_and_scores_a_line_as_the_run_does(
    small_text: Path, tmp_path: Path, lmlab: Lmlab
) -> None:
    kenlm = pytest.importorskip("kenlm")
    settings = {"order": 3, "restart": "line"}
    run = lab.train("ngram", small_text, out=tmp_path / "run", tokenizer="words", settings=settings)
    assert lmlab("export", tmp_path / "run", "-o", "model.arpa")[0] == 0
    line = "the cat sat on the log"
    ids = run.tokenizer.encode(line + "\n").ids.astype("int64")
    nats = float(run.model.score(torch.tensor(ids)[None]).sum())
    assert kenlm.Model("model.arpa").score(line, bos=True, eos=True) == pytest.approx(-nats / 2.302585093, abs=1e-4)


def test_the_numbers_that_are_said_are_those_in_the_file(small_text: Path, tmp_path: Path, lmlab: Lmlab) -> None:
    lab.train("ngram", small_text, out=tmp_path / "run", settings={"order": 3})
    out = done(lmlab("export", tmp_path / "run", "-o", "model.arpa"))
    in_file = re.findall(r"^ngram (\d)=(\d+)$", Path("model.arpa").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(in_file) == 3
    for order, count in in_file:
        assert f"{int(count):,} of order {order}" in out
    _, out, _ = lmlab("export", tmp_path / "run", "-o", "model.arpa", "--force", "--json")
    assert json.loads(out)["ngrams"] == [int(count) for _, count in in_file]


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    small_text: Path, tmp_path: Path, lmlab: Lmlab
) -> None:
    lab.train("bag", small_text, out=tmp_path / "run")
    refused(lmlab("export", tmp_path / "run", "-o", "model.arpa"), "only ngram models")
    assert not Path("model.arpa").exists()


def test_a_file_that_exists_is_kept_unless_forced(small_text: Path, tmp_path: Path, lmlab: Lmlab) -> None:
    lab.train("ngram", small_text, out=tmp_path / "run", settings={"order": 2})
    Path("model.arpa").write_text("mine")
    assert lmlab("export", tmp_path / "run", "-o", "model.arpa")[0] == 2
    assert Path("model.arpa").read_text() == "mine"
    assert lmlab("export", tmp_path / "run", "-o", "model.arpa", "--force")[0] == 0
    assert Path("model.arpa").read_text().startswith("\\data\\")


def test_a_longer_model_than_kenlm_reads_says_so_and_a_shorter_one_is_fitted(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("train", "ngram", small_text, "--set", "order=8", "--out", "run")[0] == 0
    code, _, err = lmlab("export", "run", "-o", "long.arpa")
    assert code == 0
    assert "-DKENLM_MAX_ORDER=8" in err
    assert "--order 5" in err
    code, out, err = lmlab("export", "run", "-o", "short.arpa", "--order", "3")
    assert (code, err) == (0, "")
    assert "of order 3" in out
    assert "of order 4" not in out
    assert lmlab("train", "ngram", small_text, "--set", "order=3", "--out", "three")[0] == 0
    assert lmlab("export", "three", "-o", "three.arpa")[0] == 0
    assert Path("short.arpa").read_text() == Path("three.arpa").read_text()
    refused(lmlab("export", "run", "-o", "no.arpa", "--order", "0"), "ngram-order-out-of-range")


def test_kenlm_gives_a_document_the_probability_that_the_run_does(lmlab: Lmlab, tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    done(lmlab("train", "ngram", list_of_names(tmp_path), "--documents", "lines", "--out", "run", "--set", "order=4"))
    done(lmlab("export", "run", "-o", "model.arpa"))
    reader = kenlm.Model("model.arpa")
    for name in ("bara", "ba", "zq", ""):
        bits = lab.score("run", name).bits
        assert reader.score(" ".join(name), bos=True, eos=True) == pytest.approx(-bits * 0.30103, abs=1e-4)
