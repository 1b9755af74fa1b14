"""A gpt as a folder of transformers: the same log-probabilities, tokens and greedy text, and refusals that say why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import TEXT

import lmlab as lab
from command_line import Lmlab, done, refused
from lmlab.exchange.write_gpt import as_their_network
from lmlab.learn.run import Run
from lmlab.measure import Result
from lmlab.models.gpt import GPT
from mistakes import mistake

CONTEXT = 40


def trained(folder: Path, tokenizer: str = "char", **settings: Any) -> Run:
    """A few steps, and then norms away from one: a norm of ones would hide mistakes."""
    text = folder.parent / "text.txt"
    text.write_text(TEXT * 20)
    sizes = {"layers": 2, "width": 32, "heads": 4, "context": CONTEXT, **settings}
    learning = {"learning_rate": 0.05, "rows": 4}
    return lab.train("gpt", text, out=folder, tokenizer=tokenizer, settings=sizes, learning=learning, budget="6steps")


@pytest.mark.parametrize(
    ("positions", "tie", "tokenizer", "activation"),
    [
        ("rotary", True, "char", "relu2"),
        pytest.param("rotary", False, "bpe:300", "gelu", marks=pytest.mark.slow),
        ("learned", True, "byte", "gelu"),
        pytest.param("learned", False, "char", "relu2", marks=pytest.mark.slow),
        pytest.param("sinusoidal", True, "bpe:300", "relu2", marks=pytest.mark.slow),
        pytest.param("sinusoidal", False, "char", "gelu", marks=pytest.mark.slow),
    ],
)
def test_what_transformers_loads_predicts_and_writes_the_same(
    positions: str, tie: bool, tokenizer: str, activation: str, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run = trained(tmp_path / "run", tokenizer, positions=positions, tie=tie, activation=activation)
    lab.export(run, to="hf", out=tmp_path / "hf")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "hf").eval()
    their_tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    text = TEXT[:25]
    ids = their_tokenizer(text, return_tensors="pt").input_ids
    with torch.no_grad():
        logp_TV = theirs(ids).logits.log_softmax(-1)[0, :-1]
    wanted_T = run.model.score(ids[:, 1:])[0]
    assert torch.allclose(-logp_TV.gather(1, ids[0, 1:, None])[:, 0], wanted_T, atol=1e-4)
    prompt = their_tokenizer("The", return_tensors="pt").input_ids
    new = CONTEXT - prompt.shape[1]
    written = theirs.generate(prompt, max_new_tokens=new, do_sample=False)
    (ours,) = lab.generate(run, "The", method="greedy", tokens=new)
    assert their_tokenizer.decode(written[0], skip_special_tokens=True) == "The" + ours.text
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "bits per byte" in card.lower()
    assert "certified" in card


def test_the_folder_measured_as_a_folder_has_the_bits_of_the_run(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    lab.export(run, to="hf", out=tmp_path / "hf")
    whole, again = (lab.evaluate(which, tmp_path / "text.txt") for which in (run, tmp_path / "hf"))
    assert isinstance(whole, Result)
    assert isinstance(again, Result)
    assert again.bits_per_byte == pytest.approx(whole.bits_per_byte, abs=1e-5)
    assert again.certificate.failures == []


def test_a_planted_mistake_is_seen_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path / "run")

    def planted(model: GPT, begin_id: int | None) -> Any:
        written = as_their_network(model, begin_id)
        written.tensors["model.norm.bias"].zero_()
        return written

    monkeypatch.setattr("lmlab.exchange.write_folder.as_their_network", planted)
    with pytest.raises(RuntimeError, match="differs by"):
        lab.export(run, to="hf", out=tmp_path / "hf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "text.txt"]


def test_what_has_no_counterpart_is_refused_with_the_reason(tmp_path: Path, lmlab: Lmlab) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT * 20)
    ngram = lab.train("ngram", text, out=tmp_path / "ngram")
    refused(lmlab("export", ngram.folder, "--to", "hf", "-o", tmp_path / "x"), "export-without-counterpart")
    refused(lmlab("export", ngram.folder, "--to", "onnx", "-o", tmp_path / "x"), "export-format-unknown")
    words = trained(tmp_path / "words", "words")
    with mistake("export-of-words", "unknown words"):
        lab.export(words, to="hf", out=tmp_path / "x")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").write_text("mine")
    with mistake("export-folder-taken"):
        lab.export(trained(tmp_path / "run"), to="hf", out=tmp_path / "taken")
    assert not (tmp_path / "x").exists()


def test_the_command_says_which_architecture_it_wrote(tmp_path: Path, lmlab: Lmlab) -> None:
    run = trained(tmp_path / "run")
    shown = done(lmlab("export", run.folder, "--to", "hf", "-o", tmp_path / "hf"))
    assert "NemotronForCausalLM" in shown
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert (config["partial_rotary_factor"], config["norm_eps"]) == (1.0, 1e-5)
