"""The worked example of docs/your-own-model.md: certified by the contract, trained, measured and ranked like ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lmlab as lab
from command_line import Lmlab
from lmlab.models import registry
from mistakes import mistake
from some_text import some_lines

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "your_own_model.py"
NAME = "your_own_model:SkipBigram"


@pytest.fixture(autouse=True)
def beside_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE.parent)


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 60


def test_the_contract_holds_and_a_broken_promise_is_named(lmlab: Lmlab, tmp_path: Path) -> None:
    code, out, _ = lmlab("contract", NAME, "--set", "width=8", "--json")
    found = json.loads(out)
    assert (code, found["kept"]) == (0, True)
    assert {f["tokenizer"] for f in found["findings"]} == {"words", "char", "byte", "bpe"}
    broken = tmp_path / "broken_model.py"
    broken.write_text(
        "from your_own_model import *\nclass Leaky(SkipBigram):\n    def score(self, t):\n"
        "        return super().score(t) * 0.9\n"
    )
    code, out, _ = lmlab("contract", "broken_model:Leaky", "--set", "width=8")
    assert code == 1
    assert "FAILS  score equals steps (char)" in out


def test_it_is_trained_and_opened_again_by_where_it_is(small_text: Path, tmp_path: Path) -> None:
    run = lab.train(NAME, small_text, out=tmp_path / "run", budget="20steps", device="cpu")
    again = lab.load(tmp_path / "run")
    assert again.model.name == "skip-bigram"
    assert lab.evaluate(again).model["name"] == NAME
    assert lab.evaluate(again).bits_per_byte == lab.evaluate(run).bits_per_byte


def test_it_is_ranked_beside_ours(small_text: Path, tmp_path: Path) -> None:
    small_text.write_text(some_lines(900))  # long enough to tell them apart
    found = lab.compare(
        small_text, out=tmp_path / "out", models=["uniform", "bag", NAME], each="150steps", device="cpu"
    )
    ranks = {entry.model: (entry.status, entry.rank) for entry in found.entries}
    assert ranks[NAME][0] == "ranked"
    assert ranks[NAME][1] < ranks["bag"][1] < ranks["uniform"][1]


def test_the_plain_module_of_the_page_is_trained_and_certified(small_text: Path, tmp_path: Path) -> None:
    settings = {"width": 16, "context": 8}
    run = lab.train(
        "plain_module:TinyTransformer", small_text, out=tmp_path / "run", budget="3steps", settings=settings
    )
    assert lab.evaluate(run).certificate.passed


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:X", "model-module-not-found"),
        (".no_such_module:X", "without a dot before it"),
        ("your_own_model:NoSuchClass", "has no class 'NoSuchClass'"),
        ("your_own_model:SkipBigramConfig", "is not a model"),
        ("lmlab.interface:NeuralLanguageModel", "is not a whole model yet"),
        ("skipbigram", "model-unknown"),
    ],
)
def test_what_is_no_model_is_told_in_one_line(name: str, said: str) -> None:
    with mistake(said):
        registry.kind_of(name)


def test_an_entry_point_names_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    point = EntryPoint(name="skip-bigram", value=NAME, group=registry.GROUP)
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: [point] if group == registry.GROUP else [])
    kind = registry.kind_of("skip-bigram")
    assert (kind.name, kind.way, kind.role) == ("skip-bigram", registry.Way.LEARNS, registry.Role.LANGUAGE_MODEL)
    assert kind.load().name == "skip-bigram"
