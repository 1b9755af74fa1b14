"""ARPA files of KenLM and SRILM become n-gram runs that say what the kenlm module says."""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch

import lmlab as lab
from command_line import Lmlab, done, refused
from lmlab.exchange.read_arpa import read_arpa
from lmlab.measure import Result
from mistakes import mistake

kenlm = pytest.importorskip("kenlm")

SRILM = """
\\data\\
ngram 1=7
ngram 2=6
ngram 3=3

\\1-grams:
-0.7\t</s>
-99\t<s>\t-0.30103
-1.2\t<unk>
-0.9\ta\t-0.2
-0.8\tb\t-0.15
-1.0\tc
-99\tnever\t-0.1

\\2-grams:
-0.4\t<s> a\t-0.05
-0.5\ta b\t-0.11
-0.3\tb </s>
-0.6\ta a
-0.2\tc a\t0.02
-0.9\t<unk> b\t-0.4

\\3-grams:
-0.1\t<s> a b
-0.25\tc a b
-0.35\ta b </s>

\\end\\
"""


def reader(path: Path) -> Any:
    config = kenlm.Config()
    config.show_progress = False
    return kenlm.Model(str(path), config)


def said(model: Any, tokenizer: Any, line: str) -> list[float]:
    ids = torch.tensor([tokenizer.encode(line + "\n").ids.tolist()])
    return (-model.score(ids)[0].double() / math.log(10)).tolist()


def agrees(path: Path, lines: list[str], run: Any) -> None:
    theirs, unknown = reader(path), run.tokenizer.unknown_id
    for line in lines:
        wanted = [score for score, _, _ in theirs.full_scores(line, bos=True, eos=True)]
        got = said(run.model, run.tokenizer, line)
        assert len(got) == len(wanted), line
        for mine, kenlms in zip(got, wanted, strict=True):
            assert mine == pytest.approx(kenlms, abs=1e-5) or (kenlms <= -99 and mine == -math.inf), line
    assert unknown is not None


def test_a_file_as_srilm_writes_it_is_read_as_kenlm_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "srilm.arpa"
    path.write_text(SRILM)
    run = lab.import_run(path, out=tmp_path / "run")
    lines = ["a b", "c a b", "a a b c", "", "x b a", "c c a a b", "never a", "b never"]
    agrees(path, lines, run)
    logp_BV, state = run.model.begin(1)
    assert logp_BV.exp().sum().item() < 1.5  # the file is made up: it need not sum to one
    logp_BV, _ = run.model.advance(torch.tensor([run.tokenizer.encode("a b").ids.tolist()]), state)
    last = run.tokenizer.encode("a\n").ids[-1]
    assert logp_BV[0, int(last)].item() == pytest.approx(-0.35 * math.log(10), abs=1e-5)


def test_a_history_that_is_missing_changes_no_prediction(tmp_path: Path) -> None:
    """KenLM refuses such a file, so the model is held against the file with the history written out."""
    lacking, whole = tmp_path / "lacking.arpa", tmp_path / "whole.arpa"
    lacking.write_text(SRILM.replace("-0.2\tc a\t0.02\n", "").replace("ngram 2=6", "ngram 2=5"))
    whole.write_text(SRILM.replace("-0.2\tc a\t0.02\n", "-0.9\tc a\n"))  # 10^-0.9 is p(a), and c has no back-off
    runs = [lab.import_run(path, out=tmp_path / path.stem) for path in (lacking, whole)]
    for line in ("c a b", "a c a b", "c a a"):
        first, second = (said(run.model, run.tokenizer, line) for run in runs)
        assert first == pytest.approx(second, abs=1e-6)


def test_an_exported_model_comes_back_with_the_same_scores(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the owl and the cat\nwent to sea\nin a  green boat\nthe cat and the owl\n" * 40)
    ours = lab.train("ngram", text, out=tmp_path / "ours", tokenizer="words", settings={"order": 3})
    lab.export(ours, out=tmp_path / "m.arpa")
    (tmp_path / "m.arpa.gz").write_bytes(gzip.compress((tmp_path / "m.arpa").read_bytes()))
    back = lab.import_run(tmp_path / "m.arpa.gz", out=tmp_path / "back")
    line = "the cat went to a  green sea"
    assert said(back.model, back.tokenizer, line) == pytest.approx(said(ours.model, ours.tokenizer, line), abs=1e-5)
    result = lab.evaluate(back, text)
    assert isinstance(result, Result)
    assert (result.certificate.failures, result.certificate.not_known) == ([], ["held_out"])
    again = tmp_path / "again.arpa"
    lab.export(back, out=again)
    assert read_arpa(again).counts == read_arpa(tmp_path / "m.arpa").counts


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t[: len(t) // 2], "ends early"),
        (lambda t: t.replace("ngram 2=6", "ngram 2=9"), "the header says 9"),
        (lambda t: t.replace("ngram 3=3", "ngram 3=999999999999"), "GB are free"),
        (lambda t: t.replace("-0.5\ta b", "x\ta b"), "is no number"),
        (lambda t: t.replace("-0.5\ta b", "nan\ta b"), "no 2-gram"),
        (lambda t: t.replace("<s> a b", "<s> a z"), "not among the 1-grams"),
        (lambda t: t.replace("-0.6\ta a", "-0.6\ta b"), "same 2-gram twice"),
        (lambda t: t.replace("</s>", "x"), "lacks <s> or </s>"),
        (lambda t: "nothing\n" * 2000, "no \\data\\"),
        (lambda t: "", "ends early"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line_and_nothing_is_written(
    change: Any, words: str, tmp_path: Path, lmlab: Lmlab
) -> None:
    (tmp_path / "m.arpa").write_text(change(SRILM))
    refused(lmlab("import", tmp_path / "m.arpa", "--out", tmp_path / "run"), words)
    assert not (tmp_path / "run").exists()


def test_the_command_says_what_it_read_and_what_to_type_next(tmp_path: Path, lmlab: Lmlab) -> None:
    (tmp_path / "m.arpa").write_text(SRILM)
    shown = done(lmlab("import", tmp_path / "m.arpa", "--out", tmp_path / "run"))
    assert "7 of order 1, 6 of order 2, 3 of order 3" in shown
    assert "lmlab eval" in shown
    with mistake("run-without-text"):
        lab.evaluate(tmp_path / "run")


@pytest.mark.slow
def test_penn_treebank_comes_back_as_kenlm_reads_it(tmp_path: Path) -> None:
    folder = os.environ.get("LMLAB_BENCH_DATA")
    if not folder:
        pytest.skip("LMLAB_BENCH_DATA is not set: the real texts are not here")
    valid, test = (Path(folder, "ptb", f"ptb.{part}.txt") for part in ("valid", "test"))
    ours = lab.train("ngram", valid, out=tmp_path / "ours", tokenizer="words", settings={"order": 4})
    lab.export(ours, out=tmp_path / "ptb.arpa")
    run = lab.import_run(tmp_path / "ptb.arpa", out=tmp_path / "run", spaced=True)
    theirs = reader(tmp_path / "ptb.arpa")
    for line in test.read_text().splitlines()[:300]:
        words = line.split()
        ids = torch.tensor([run.tokenizer.encode(" " + " ".join(words) + " \n").ids.tolist()])
        got = (-run.model.score(ids)[0].double() / math.log(10)).tolist()
        wanted = [score for score, _, _ in theirs.full_scores(" ".join(words), bos=True, eos=True)]
        assert got == pytest.approx(wanted, abs=1e-5)
