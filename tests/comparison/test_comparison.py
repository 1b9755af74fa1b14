"""The comparison: fair shares, honest ranks, and nothing that one model does can spoil the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from lmlab.comparison import Findings, compare
from lmlab.comparison.measured_text import first_bytes
from lmlab.comparison.report import render
from lmlab.comparison.time_shares import in_order, share_seconds, training_seconds
from lmlab.comparison.yardsticks import measure_yardsticks
from lmlab.models.bag import Bag
from lmlab.records import from_json
from lmlab.text.corpus import read

COUNTED = ["uniform", "bag", "ngram"]
TINY = {"gpt": {"layers": 1, "width": 32, "context": 32}}


def run(text: Path, out: Path, **changes: Any) -> Any:
    return compare(text, out=out, **({"budget": "4s", "models": COUNTED} | changes))


def test_every_model_is_measured_on_the_same_bytes_and_ranked_by_bits_per_byte(
    small_text: Path, tmp_path: Path
) -> None:
    found = run(small_text, tmp_path / "out", models=[*COUNTED, "gpt"], settings=TINY)
    entries = found.entries
    assert [e.status for e in entries] == ["ranked"] * 4
    assert len({e.result.data["sha256"] for e in entries}) == 1
    bits = [e.result.bits_per_byte for e in entries]
    assert bits == sorted(bits)
    assert [e.rank for e in entries] == sorted(e.rank for e in entries)
    assert entries[0].rank == 1
    assert entries[-1].model == "uniform"


def test_the_document_is_valid_json_and_holds_what_the_page_needs(small_text: Path, tmp_path: Path) -> None:
    found = run(small_text, tmp_path / "out")
    document = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert document == json.loads(json.dumps(found.to_json()))
    assert from_json(Findings, document) == found.findings
    best = document["entries"][0]
    assert {"rank", "result", "sample", "excerpt", "proof", "peak_memory_bytes", "tokens_per_second"} <= set(best)
    assert best["proof"]["holds"]
    shown = "".join(token["t"] for token in best["excerpt"])
    assert shown in small_text.read_text()
    assert all(len(token["f"]) == 5 for token in best["excerpt"])


def test_an_interruption_before_anything_was_measured_still_leaves_a_page(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lmlab.comparison.train_and_rank.measure_yardsticks", ctrl_c)
    found = run(small_text, tmp_path / "out")
    assert {e.status for e in found.entries} == {"waiting"}
    assert "No model finished" in found.report.read_text()


def test_the_bits_of_the_excerpt_are_those_of_the_favourites_distribution(small_text: Path, tmp_path: Path) -> None:
    """Where the token that came is among the five favourites, its bits must be -log2 of the probability shown for it."""
    entry = run(small_text, tmp_path / "out", models=["ngram"]).to_json()["entries"][0]
    checked = 0
    for token in entry["excerpt"]:
        for piece, probability in token["f"]:
            if piece == token["t"] and probability > 0.01:
                assert 2 ** -token["b"] == pytest.approx(probability, rel=0.02, abs=2e-4)
                checked += 1
    assert checked > 20


def test_a_model_that_crashes_is_shown_as_failed_and_the_rest_is_ranked(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Bag, "fit", crash)
    found = run(small_text, tmp_path / "out")
    states = {e.model: e.status for e in found.entries}
    assert states == {"uniform": "ranked", "bag": "failed", "ngram": "ranked"}
    assert "planted" in render(found.findings)


def test_a_model_whose_certificate_fails_is_shown_but_not_ranked(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Bag.score
    monkeypatch.setattr(Bag, "score", lambda self, tokens: honest(self, tokens) * 0.5)
    found = run(small_text, tmp_path / "out")
    bag = next(e for e in found.entries if e.model == "bag")
    assert (bag.status, bag.rank) == ("unranked", None)
    page = render(found.findings)
    assert "not ranked" in page
    assert "FAILS" in page


def test_finished_models_are_not_trained_again(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(small_text, tmp_path / "out")

    def forbidden(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(Bag, "fit", forbidden)
    second = run(small_text, tmp_path / "out")
    assert all(e.reused for e in second.entries)
    assert [e.result.bits_per_byte for e in second.entries] == [e.result.bits_per_byte for e in first.entries]


def test_an_interruption_ranks_what_finished_and_the_next_run_goes_on(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Bag, "fit", ctrl_c)
        found = run(small_text, tmp_path / "out", models=["ngram", "bag", "uniform"])
    assert [e.status for e in found.entries].count("ranked") < 3
    again = run(small_text, tmp_path / "out", models=["ngram", "bag", "uniform"])
    assert [e.status for e in again.entries] == ["ranked"] * 3


def test_another_text_does_not_mix_into_a_folder(small_text: Path, tmp_path: Path) -> None:
    run(small_text, tmp_path / "out", models=["uniform"])
    other = tmp_path / "other.txt"
    other.write_text(small_text.read_text().upper())
    with pytest.raises(ValueError, match="another text"):
        run(other, tmp_path / "out", models=["uniform"])


def test_tokenizers_are_crossed_and_compared_in_the_same_unit(small_text: Path, tmp_path: Path) -> None:
    found = run(
        small_text, tmp_path / "out", models=["ngram", "bag"], tokenizers=["char", "words", "byte"], budget="6s"
    )
    assert len(found.entries) == 6
    assert {e.name for e in found.entries} >= {"ngram · char", "bag · words"}
    assert all(e.status == "ranked" for e in found.entries)
    chars = {e.tokenizer: e.result.bits_per_byte for e in found.entries if e.model == "ngram"}
    assert chars["char"] == pytest.approx(chars["byte"], rel=0.1)


def test_on_a_known_source_context_beats_bag_and_nobody_beats_the_entropy(tmp_path: Path) -> None:
    found = run(
        "markov:order=2,alphabet=4,length=120000,seed=3", tmp_path / "out", models=["bag", "ngram"],
        settings={"ngram": {"order": 3}},
    )  # fmt: skip
    entropy = found.corpus.entropy_bits_per_symbol
    by_name = {e.model: e for e in found.entries}
    assert by_name["ngram"].rank < by_name["bag"].rank
    for entry in found.entries:
        assert entry.result.interval.high >= entropy
    assert by_name["ngram"].result.bits_per_byte < entropy + 0.03
    assert "exact entropy" in render(found.findings)


def test_a_model_made_worse_on_purpose_never_outranks_its_original(small_text: Path, tmp_path: Path) -> None:
    """Temperature on the logits makes every probability worse; measured on the same bytes it must not rank higher."""
    from lmlab.measure import evaluate, rank

    found = run(small_text, tmp_path / "out", models=["ngram"])
    good = found.entries[0].result.scored
    model = found.entries[0].run.model
    honest = type(model).score
    for hurt in (1.02, 1.2, 2.0):
        worse = type("Worse", (type(model),), {"score": lambda self, t, hurt=hurt: honest(self, t) * hurt})
        model.__class__ = worse
        ranks = rank([good, evaluate(model, found.entries[0].run.tokenizer, found.measured).scored])
        model.__class__ = worse.__mro__[1]
        assert ranks[0] <= ranks[1]


def test_later_models_inherit_the_time_that_earlier_ones_left() -> None:
    order = in_order(["gpt", "ngram", "lstm", "uniform"])
    assert order == ["ngram", "uniform", "lstm", "gpt"]
    assert share_seconds("gpt", ["gpt"], 50.0, 60.0) > share_seconds("gpt", ["gpt", "lstm"], 50.0, 60.0)
    shares = [share_seconds(m, ["lstm", "gpt"], 100.0, 100.0) for m in ("lstm", "gpt")]
    assert 97.0 < sum(shares) < 100.0


def test_all_of_a_share_goes_to_training_but_what_measuring_takes() -> None:
    assert training_seconds(30.0, 2.5, seeds=1) == 27.5
    assert training_seconds(30.0, 2.5, seeds=3) == 7.5
    assert training_seconds(30.0, 29.0, seeds=1) == 15.0
    assert training_seconds(0.1, 0.0, seeds=1) == 1.0


def test_compressors_gain_from_the_training_text_only_if_they_can() -> None:
    torch.manual_seed(0)
    words = [bytes(torch.randint(97, 123, (6,)).tolist()) for _ in range(400)]
    test = b" ".join(words[i] for i in torch.randint(400, (800,)).tolist())
    train = b" ".join(words[i] for i in torch.randint(400, (40_000,)).tolist())
    found = {y.name: y.bits_per_byte for y in measure_yardsticks(train, test)}
    alone = {y.name: y.bits_per_byte for y in measure_yardsticks(b"", test)}
    assert found["xz"] < 0.75 * alone["xz"]
    assert found["zstd"] < 0.75 * alone["zstd"]
    assert found["bzip2"] == alone["bzip2"]


def test_the_measured_slice_is_a_prefix_cut_between_characters(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("äöü€" * 5000)
    part = first_bytes(read(path).test, 999)
    assert part.bytes <= 999
    assert path.read_text().encode().find(part.text().encode()) >= 0
