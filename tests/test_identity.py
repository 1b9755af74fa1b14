from __future__ import annotations

import json
from pathlib import Path

import pytest

import lmlab
from lmlab.identity import hash_of, model_hash
from lmlab.measure import Result
from lmlab.text.tokenizers import train_tokenizer

SETTINGS = {"ngram": {"order": 3}, "feedforward": {"context": 2, "embedding_width": 4, "width": 8, "dropout": 0.0}}


@pytest.mark.parametrize("name", ["uniform", "bag", *SETTINGS])
def test_the_hash_kept_with_a_run_is_that_of_its_model(name: str, small_text: Path, tmp_path: Path) -> None:
    run = lmlab.train(name, small_text, out=tmp_path / "run", budget="3steps", settings=SETTINGS.get(name, {}))
    again = lmlab.load(tmp_path / "run")
    assert again.model_hash == run.model_hash == model_hash(again.model, again.tokenizer)
    result = lmlab.evaluate(again, device="cpu")
    assert isinstance(result, Result)
    assert result.model["hash"] == run.model_hash


def test_a_hash_of_other_settings_or_other_weights_is_not_believed(small_text: Path, tmp_path: Path) -> None:
    lmlab.train("bag", small_text, out=tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    record = json.loads(path.read_text())
    changes = [{"config": {**record["model"]["config"], "k": 0.75}}, {"sha256": "0" * 64}, {"identity": None}]
    for change in changes:
        path.write_text(json.dumps(record | {"model": record["model"] | change}))
        run = lmlab.load(tmp_path / "run")
        if "sha256" in change:  # the file of weights is not opened at all then
            with pytest.raises(lmlab.Mistake, match="damaged"):
                _ = run.model_hash
            continue
        assert run.model_hash is None
        result = lmlab.evaluate(run, device="cpu")
        assert isinstance(result, Result)
        assert result.model["hash"] == model_hash(run.model, run.tokenizer)


def test_a_setting_that_was_added_later_leaves_earlier_hashes_as_they_are() -> None:
    tokenizer = train_tokenizer("char", ["a b"])
    before = hash_of("ngram", {"order": 2}, tokenizer, {})
    assert hash_of("ngram", {"order": 2, "prune": 0}, tokenizer, {}) == before
    assert hash_of("ngram", {"order": 2, "prune": 1}, tokenizer, {}) != before
