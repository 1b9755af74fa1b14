"""The command line on texts that consist of many documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Lmlab, done, refused
from some_documents import invented_names, list_of_names


def test_twenty_names_are_written_one_on_each_line(lmlab: Lmlab, tmp_path: Path) -> None:
    names = list_of_names(tmp_path)
    done(lmlab("train", "ngram", names, "--documents", "lines", "--out", "run"))
    lines = done(lmlab("generate", "run", "-n", "20")).splitlines()
    assert len(lines) == 20
    assert sum(line in invented_names(400) for line in lines) > 2
    found = json.loads(done(lmlab("generate", "run", "-n", "3", "--json")))
    assert {text["finish"] for text in found} == {"end"}
    scored = done(lmlab("score", "run", "bara"))
    assert "its end included" in scored
    assert "<|end|>" in scored
    assert "<|end|>" not in done(lmlab("score", "run", "bara", "--no-end"))


def test_what_is_guessed_is_said_and_recorded(lmlab: Lmlab, tmp_path: Path) -> None:
    names = list_of_names(tmp_path)
    said = lmlab("train", "ngram", names, "--out", "run")[2]
    assert "documents=lines" in said
    record = json.loads(Path("run/run.json").read_text())
    assert record["inputs"]["corpus"]["documents"] == "lines"
    assert "400 documents" in done(lmlab("data", "show", names))
    plain = lmlab("train", "ngram", names, "--documents", "none", "--out", "plain")
    assert "documents=" not in plain[2]


@pytest.mark.parametrize("mode", ["jsonl:text", "blank", "files"])
def test_texts_are_documents_that_end(lmlab: Lmlab, mode: str, tmp_path: Path) -> None:
    names = invented_names(600)
    texts = [f"{a} {b}\n{c} {a}." for a, b, c in zip(names[::3], names[1::3], names[2::3], strict=True)]
    data = tmp_path / "data"
    if mode == "files":
        data.mkdir()
        for number, text in enumerate(texts):
            (data / f"{number}.txt").write_text(text + "\n")
    else:
        lines = (json.dumps({"id": "x", "text": text}) for text in texts)
        data.write_text("\n".join(lines) if mode.startswith("jsonl") else "\n\n".join(texts))
    done(lmlab("train", "ngram", data, "--documents", mode, "--out", "run"))
    result = json.loads(done(lmlab("eval", "run", "--json")))
    assert result["certified"]
    code, out, _ = lmlab("eval", "run", data, "--json")
    assert code == 1  # most of it was trained on
    assert json.loads(out)["bytes"] == sum(len(text) + (2 if mode == "blank" else 1) for text in texts)
    assert "6 tokens" in done(lmlab("explain", "run", "bara."))


def test_a_wrong_division_is_refused_with_what_to_type(lmlab: Lmlab, tmp_path: Path) -> None:
    names = list_of_names(tmp_path)
    out = ["--out", "run"]
    refused(lmlab("train", "ngram", names, "--documents", "jsonl", *out), "--documents jsonl:text")
    refused(
        lmlab("train", "ngram", names, "--documents", "lines", "--split-by", "tail", *out), "split-by-beside-documents"
    )


def test_a_comparison_and_a_sweep_of_documents_rank_models_that_end(lmlab: Lmlab, tmp_path: Path) -> None:
    names = list_of_names(tmp_path, 800)
    models = ["--models", "ngram,bag,feedforward", "--each", "3steps", "--out", "compared"]
    found = json.loads(done(lmlab("compare", names, "--documents", "lines", *models, "--json")))
    assert found["corpus"]["documents"] == 800
    assert next(entry["model"] for entry in found["entries"]) == "ngram"
    assert all(entry["rank"] for entry in found["entries"])
    again = json.loads(done(lmlab("compare", names, "--documents", "lines", *models, "--json")))
    assert [entry["model"] for entry in again["entries"]] == [entry["model"] for entry in found["entries"]]
    swept = ["--over", "width=4,8", "--seeds", "1", "--budget", "2steps", "--out", "swept"]
    table = done(lmlab("sweep", "feedforward", names, "--documents", "lines", *swept))
    assert "width" in table
    assert json.loads(next(Path("swept").rglob("run.json")).read_text())["inputs"]["corpus"]["documents"] == "lines"
