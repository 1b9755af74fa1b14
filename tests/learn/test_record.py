"""The record of a run: what run.json holds, and that runs of older formats open and go on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import lmlab
from interrupts import InterruptAt
from lmlab.disk import files
from lmlab.learn import loop
from lmlab.learn.run_files import write_record
from mistakes import mistake

SETTINGS = {"context": 2, "embedding_width": 4, "width": 8, "dropout": 0.0}


def to_format_1(folder: Path) -> None:
    """Rewrite a run as lmlab wrote it when there was one task: status at the top, results among the training facts."""
    new = json.loads((folder / "run.json").read_text())
    result: dict[str, Any] = {
        key: value for key, value in new["result"].items() if key != "status" and value is not None
    }
    model = {key: value for key, value in new["model"].items() if value is not None}
    unfinished = new["result"]["status"] == "unfinished"
    old = {
        "format": 1,
        "lmlab": "0.1.0",
        "status": new["result"]["status"],
        "model": model,
        "tokenizer": new["inputs"]["tokenizer"],
        "corpus": new["inputs"]["corpus"],
        "training": new["training"] | ({} if unfinished else result),
    }
    (folder / "config.json").write_text(json.dumps(old, indent=2))
    (folder / "run.json").unlink()


def to_format_2(folder: Path) -> None:
    """Rewrite a run as lmlab wrote it when its record had the name that Hugging Face gives to another file."""
    document = json.loads((folder / "run.json").read_text()) | {"format": 2}
    (folder / "config.json").write_text(json.dumps(document, indent=2))
    (folder / "run.json").unlink()


def test_the_record_has_its_six_parts_and_the_hash_of_the_weights(small_text: Path, tmp_path: Path) -> None:
    run = lmlab.train("feedforward", small_text, out=tmp_path / "run", budget="5steps", settings=SETTINGS)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert set(record) == {"format", "lmlab", "task", "inputs", "model", "training", "result"}
    assert (record["format"], record["task"], record["result"]["steps"]) == (3, "next-token", 5)
    weights = (tmp_path / "run" / "model.safetensors").read_bytes()
    assert record["model"]["sha256"] == hashlib.sha256(weights).hexdigest()
    assert lmlab.load(tmp_path / "run").record == run.record


@pytest.mark.parametrize("model", ["ngram", "feedforward"])
def test_a_run_of_format_1_opens_with_the_same_numbers(model: str, small_text: Path, tmp_path: Path) -> None:
    settings = SETTINGS if model == "feedforward" else {"order": 3}
    run = lmlab.train(model, small_text, out=tmp_path / "run", budget="5steps", settings=settings)
    to_format_1(tmp_path / "run")
    old = lmlab.load(tmp_path / "run")
    assert old.status == "finished"
    assert old.record.result.seconds == run.record.result.seconds
    assert old.record.training == run.record.training
    tokens_BT = torch.randint(run.model.vocab_size, (2, 20))
    assert torch.equal(old.model.score(tokens_BT), run.model.score(tokens_BT))


def test_an_unfinished_run_of_format_1_is_trained_to_the_end(small_text: Path, tmp_path: Path) -> None:
    whole = lmlab.train("feedforward", small_text, out=tmp_path / "whole", budget="5steps", settings=SETTINGS)
    lmlab.train("feedforward", small_text, out=tmp_path / "run", budget="5steps", settings=SETTINGS)
    path = tmp_path / "run" / "run.json"  # as a kill before the first checkpoint leaves it
    begun = json.loads(path.read_text())
    begun["result"] = {"status": "unfinished"}
    begun["model"] |= {"sha256": None, "parameters": None}
    path.write_text(json.dumps(begun))
    to_format_1(tmp_path / "run")
    assert lmlab.load(tmp_path / "run").status == "unfinished"
    resumed = lmlab.resume(tmp_path / "run")
    assert resumed.record.model.sha256 == whole.record.model.sha256
    assert load_file(tmp_path / "run" / "model.safetensors").keys() == whole.model.tensors().keys()


@pytest.fixture
def stopped(small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a run of format 2 that was stopped in the middle."""
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(loop, "SHOW_EVERY_S", 0.0)  # Ctrl-C is heard at every step
        lmlab.train("feedforward", small_text, out=folder, budget="6steps", settings=SETTINGS, watch=InterruptAt(3))
    to_format_2(folder)
    assert lmlab.load(folder).status == "unfinished"
    return folder


def test_a_run_that_is_resumed_gets_the_new_record_whole_and_the_same_weights(
    stopped: Path, small_text: Path, tmp_path: Path
) -> None:
    whole = lmlab.train("feedforward", small_text, out=tmp_path / "whole", budget="6steps", settings=SETTINGS)
    resumed = lmlab.resume(stopped)
    assert resumed.record.model.sha256 == whole.record.model.sha256
    assert not (stopped / "config.json").exists()
    assert json.loads((stopped / "run.json").read_text())["format"] == 3
    assert lmlab.load(stopped).record == resumed.record


def test_a_finished_run_of_format_2_is_only_read(small_text: Path, tmp_path: Path) -> None:
    run = lmlab.train("bag", small_text, out=tmp_path / "run")
    to_format_2(run.folder)
    before = {path: path.read_bytes() for path in run.folder.iterdir()}
    assert lmlab.resume(run.folder).record == lmlab.load(run.folder).record == run.record
    assert {path: path.read_bytes() for path in run.folder.iterdir()} == before


def test_a_kill_before_the_new_record_leaves_the_old_one(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (stopped / "config.json").read_bytes()

    def killed(path: Path, content: bytes) -> None:
        if path.name == "run.json":
            raise KeyboardInterrupt
        files.write_atomically(path, content)

    with monkeypatch.context() as patch:
        patch.setattr("lmlab.learn.run_files.write_atomically", killed)
        with pytest.raises(KeyboardInterrupt):
            lmlab.resume(stopped)
    assert (stopped / "config.json").read_bytes() == before
    assert lmlab.load(stopped).status == "unfinished"
    assert lmlab.resume(stopped).record.result.steps == 6


def test_a_kill_between_both_records_leaves_a_run_that_the_new_one_speaks_for(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("lmlab.learn.run_files.drop_old_record", lambda folder: None)
        lmlab.resume(stopped)
    assert (stopped / "config.json").exists()
    assert lmlab.load(stopped).status == "finished"
    assert lmlab.resume(stopped, budget="+2steps").record.result.steps == 8
    assert not (stopped / "config.json").exists()


def test_a_hugging_face_folder_without_weights_is_named_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}')
    with mistake("folder-without-weights", "without model.safetensors"):
        lmlab.load(tmp_path)


def test_a_config_of_hugging_face_beside_a_run_stays(small_text: Path, tmp_path: Path) -> None:
    run = lmlab.train("bag", small_text, out=tmp_path / "run")
    (run.folder / "config.json").write_text('{"model_type": "gpt2"}')
    write_record(run)
    assert lmlab.load(run.folder).record == run.record
    assert (run.folder / "config.json").read_text() == '{"model_type": "gpt2"}'


@pytest.mark.parametrize("damage", ['{"format": 9}', "[]", "{}"])
def test_a_record_of_another_kind_is_refused_in_one_line(damage: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(damage)
    with mistake("record-of-another-version"):
        lmlab.load(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        '{"format": 1}',
        '{"format": 1, "training": 9, "corpus": 0, "tokenizer": 0, "model": 0, "status": 0}',
        '{"format": 2}',
    ],
)
def test_an_older_record_that_lacks_something_is_refused_in_one_line(damage: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(damage)
    with mistake("record-incomplete"):
        lmlab.load(tmp_path)


@pytest.mark.parametrize("key", ["inputs", "model", "training", "result"])
def test_a_record_with_something_else_in_it_is_refused_in_one_line(key: str, small_text: Path, tmp_path: Path) -> None:
    path = lmlab.train("bag", small_text, out=tmp_path / "run").folder / "run.json"
    written = path.read_text()
    for damage in (None, 9, "x", []):
        path.write_text(json.dumps(json.loads(written) | {key: damage}))
        with mistake("record-incomplete", f"{key} is missing or not"):
            lmlab.load(tmp_path / "run")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("inputs.corpus.parts", []),
        ("inputs.corpus.parts.test", None),
        ("model.config.width", None),
        ("training.learning", None),
        ("training.seed", "x"),
        ("training.plan.threads", "many"),
        ("result.tokens", "many"),
        ("result.seconds", "long"),
    ],
)
def test_a_record_that_was_edited_is_refused_in_one_line_that_names_the_key(
    key: str, value: object, small_text: Path, tmp_path: Path
) -> None:
    run = lmlab.train("feedforward", small_text, out=tmp_path / "run", budget="2steps", settings=SETTINGS)
    path = run.folder / "run.json"
    document = json.loads(path.read_text())
    *above, last = key.split(".")
    inner = document
    for name in above:
        inner = inner[name]
    inner[last] = value
    path.write_text(json.dumps(document))
    with mistake(key):
        lmlab.score(lmlab.load(run.folder), ["a cat"])
