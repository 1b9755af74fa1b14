from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from lmlab.comparison.close_look import prove
from lmlab.compression import proof
from lmlab.compression.proof import _spared, can_be_coded
from lmlab.measure import Scored, score_part, spread
from lmlab.measure.counted import count_within
from lmlab.text.parts import Document, Part


def scored(pair, folder: Path, *texts: str) -> Scored:
    documents = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.txt"
        path.write_text(text)
        documents.append(Document(path, 0, len(text.encode())))
    return score_part(*pair, Part("test", documents))


def test_what_every_model_claims_is_met_to_the_byte(model_name, make_model, held_out, tmp_path):
    pair = make_model(model_name)
    found = proof(*pair, scored(pair, tmp_path, held_out, held_out[500:1500]), size_bytes=600)
    assert found.holds, found.sentence
    assert found.pieces == 4
    assert abs(found.excess_bits) <= 8.2


@pytest.mark.parametrize("spec", ["byte", "words", "words:8", "bpe:300"])
def test_what_is_claimed_of_unknown_words_is_met_too(spec, make_model, held_out, tmp_path):
    pair = make_model("ngram", spec)
    found = proof(*pair, scored(pair, tmp_path, held_out), size_bytes=700)
    assert found.holds, found.sentence


def test_a_claim_that_is_a_hundredth_too_good_is_not_met(make_model, held_out, tmp_path):
    pair = make_model("ngram")
    honest = scored(pair, tmp_path, held_out)
    boast = dataclasses.replace(honest, nats_per_token=0.99 * honest.nats_per_token)
    assert proof(*pair, honest, size_bytes=700).holds
    assert not proof(*pair, boast, size_bytes=700).holds


def test_a_claim_that_is_false_in_the_middle_of_the_text_alone_is_not_met(make_model, held_out, tmp_path):
    pair = make_model("ngram")
    honest = scored(pair, tmp_path, held_out)
    nats = honest.nats_per_token.copy()
    nats[len(nats) // 2 :] *= 0.5
    assert not proof(*pair, dataclasses.replace(honest, nats_per_token=nats), size_bytes=700).holds


def test_pieces_that_come_back_changed_prove_nothing(make_model, held_out, tmp_path, monkeypatch):
    model, tokenizer = make_model("bag")
    found = scored((model, tokenizer), tmp_path, held_out)
    other = type(model)(model.config, torch.log_softmax(model.logp_V * 0.9, -1))
    monkeypatch.setattr("lmlab.measure.walk.Copies.new", lambda self: other)
    assert not proof(model, tokenizer, found, size_bytes=900).holds


def test_an_infinite_claim_is_no_claim_to_have_met(make_model, tmp_path):
    pair = make_model("ngram", smoothing="ml", order=3)
    found = proof(*pair, scored(pair, tmp_path, "qqqqzzzz impossible" * 9), size_bytes=150)
    assert not found.holds
    assert found.to_json()["claimed_bits"] is None
    assert "impossible" in found.sentence


def test_a_text_of_one_token_can_be_proved(make_model, tmp_path):
    pair = make_model("bag")
    found = proof(*pair, scored(pair, tmp_path, "a"), size_bytes=700)
    assert found.holds
    assert found.tokens == 1


def test_pieces_lie_all_over_the_text(make_model, learned, tmp_path):
    pair = make_model("ngram")
    text = scored(pair, tmp_path, learned[:20_000])
    quarters = []
    for quarter in range(4):
        nats = text.nats_per_token.copy()
        part = slice(quarter * len(nats) // 4, (quarter + 1) * len(nats) // 4)
        nats[part] = np.maximum(nats[part] - 1.0, 0.0)
        quarters.append(proof(*pair, dataclasses.replace(text, nats_per_token=nats), size_bytes=400).holds)
    assert quarters == [False] * 4


def test_a_proof_with_much_time_codes_every_token_once(make_model, held_out, tmp_path):
    pair = make_model("bag")
    text = scored(pair, tmp_path, held_out[:300], held_out[300:450])
    found = prove(*pair, text, 0, time.perf_counter() + 60.0)
    assert found.holds, found.sentence
    assert (found.original_bytes, found.tokens) == (text.bytes, text.tokens)


def test_pieces_are_of_what_counts_and_not_of_what_is_read_before_it(make_model, learned, tmp_path):
    pair = make_model("ngram")
    (tmp_path / "text.txt").write_text(learned * 4)
    part = Part("test", [Document(tmp_path / "text.txt", 0, len(learned.encode()) * 4)])
    chosen = spread(part, 3000)
    assert not chosen.everything
    text = count_within(pair[1], score_part(*pair, chosen.part), chosen)
    found = prove(*pair, text, 0, time.perf_counter() + 60.0)
    assert found.holds, found.sentence
    assert found.original_bytes == text.bytes < chosen.part.bytes


def test_a_model_that_must_read_all_before_a_piece_is_not_taken_deep(make_model, learned, tmp_path):
    pair = make_model("gru")
    text = scored(pair, tmp_path, learned * 2, learned)
    left_T = can_be_coded(text, pair[0].policy)
    assert left_T[:2048].all()
    assert not left_T[2048 : len(learned) * 2].any()
    assert left_T[len(learned) * 2 :][:2048].all()


def test_a_token_of_a_thousand_bits_takes_thirty_two():
    assert _spared(np.array([32.0, 1500.0])) == pytest.approx(1.0 + 1500.0 - 32.0)
