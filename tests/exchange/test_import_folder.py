"""Folders of transformers as native runs: equal probabilities, trained further, looked into, and exported back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import TEXT, folder_of, save_tokenizer
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

import lmlab as lab
from command_line import Lmlab, refused
from lmlab.learn.run import load_run
from mistakes import mistake

KINDS = ["gpt2", "llama", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("qwen2", "mistral", "nemotron"))]


@pytest.mark.parametrize("kind", KINDS)
def test_an_imported_folder_has_the_probabilities_of_the_folder(kind: str, tmp_path: Path) -> None:
    folder = folder_of(kind, tmp_path / "theirs")
    native = lab.import_run(folder, out=tmp_path / "run")
    theirs = load_run(folder).model
    ids = torch.tensor([native.tokenizer.encode(TEXT).ids.astype(int).tolist()])
    assert torch.allclose(native.model.score(ids), theirs.score(ids), atol=1e-4)
    assert native.model.policy == theirs.policy
    (tmp_path / "text.txt").write_text(TEXT * 3)
    first, second = (lab.evaluate(which, tmp_path / "text.txt") for which in (native, folder))
    assert first.bits_per_byte == pytest.approx(second.bits_per_byte, abs=1e-5)  # type: ignore[union-attr]
    assert first.certificate.failures == []  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", KINDS)
def test_an_imported_model_trains_further_and_goes_back(kind: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    folder = folder_of(kind, tmp_path / "theirs")
    native = lab.import_run(folder, out=tmp_path / "run")
    lab.export(native, to="hf", out=tmp_path / "back")
    before, after = (AutoModelForCausalLM.from_pretrained(path).eval() for path in (folder, tmp_path / "back"))
    ids = torch.randint(before.config.vocab_size, (2, 20), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(before(ids).logits.log_softmax(-1), after(ids).logits.log_softmax(-1), atol=1e-4)
    assert type(after).__name__ == {"qwen2": "LlamaForCausalLM"}.get(kind, type(before).__name__)
    text = tmp_path / "text.txt"
    text.write_text(TEXT * 30)
    tuned = lab.fine_tune(native, text, out=tmp_path / "tuned", budget="5steps", learning={"rows": 2})
    assert tuned.record.result.steps == 5
    assert not all(one.is_known for one in tuned.learned_from)
    lab.export(tuned, to="hf", out=tmp_path / "tuned-back")


@pytest.mark.slow
def test_an_imported_model_can_be_looked_into(tmp_path: Path) -> None:
    native = lab.import_run(folder_of("llama", tmp_path / "theirs"), out=tmp_path / "run")
    assert lab.explain_attention(native, "the cat sat on the mat")
    assert lab.count(tmp_path / "run").parameters > 0


def wordpiece() -> Backend:
    backend = Backend(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    backend.train_from_iterator([TEXT], trainer)
    return backend


def test_a_bert_becomes_a_native_bert(tmp_path: Path) -> None:
    import transformers as hf

    from huggingface import shaken

    backend = wordpiece()
    config = hf.BertConfig(
        vocab_size=backend.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=24,
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = hf.BertForMaskedLM(config).eval()
    shaken(theirs)
    theirs.tie_weights()
    theirs.save_pretrained(tmp_path / "theirs")
    save_tokenizer(backend, tmp_path / "theirs", None, None)
    run = lab.import_run(tmp_path / "theirs", out=tmp_path / "run")
    assert (run.record.model.name, run.record.task) == ("bert", "masked-token")
    assert load_run(tmp_path / "run").saved.parameters_count > 0
    (tmp_path / "text.txt").write_text(TEXT * 20)
    with mistake("masked-without-training-text"):
        lab.evaluate(tmp_path / "run", tmp_path / "text.txt")
    tuned = lab.fine_tune(run, tmp_path / "text.txt", out=tmp_path / "tuned", budget="3steps")
    assert lab.evaluate(tuned)


def test_what_has_no_counterpart_is_refused_with_its_key(tmp_path: Path, lmlab: Lmlab) -> None:
    folder = folder_of("llama", tmp_path / "theirs")
    config = json.loads((folder / "config.json").read_text())
    rope: dict[str, Any] = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}
    (folder / "config.json").write_text(json.dumps(config | {"rope_parameters": rope, "rope_scaling": rope}))
    refused(lmlab("import", folder, "--out", tmp_path / "run"), "rope_scaling")
    neox = folder_of("gpt_neox", tmp_path / "neox")
    refused(lmlab("import", neox, "--out", tmp_path / "run"), "import-without-counterpart")
    nothing = folder_of("llama", tmp_path / "nothing", eos=None)
    with mistake("import-without-begin"):
        lab.import_run(nothing, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
