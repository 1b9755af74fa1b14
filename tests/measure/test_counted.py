from __future__ import annotations

import math
from pathlib import Path

import measure_models as planted
import numpy as np
import pytest

from lmlab.measure import evaluate, spread
from lmlab.measure.interval import units_of
from lmlab.text.parts import Part


def long_part(tmp_path: Path) -> Part:
    texts = [planted.some_text(words, seed=seed, rare=True) for seed, words in enumerate((6000, 30_000))]
    return planted.part_of(tmp_path, *texts)


@pytest.mark.parametrize("spec", ["byte", "char", "bpe:300", "words"])
def test_the_number_is_that_of_the_stretches_alone(spec: str, tmp_path: Path) -> None:
    """A model that looks one token back costs in the stretches what it costs there in the whole text."""
    part, tokenizer = long_part(tmp_path), planted.tokenizer_for(spec)
    model = planted.Chain.random(tokenizer)
    chosen = spread(part, 20_000)
    result, whole = evaluate(model, tokenizer, chosen), evaluate(model, tokenizer, part).scored
    scored, text = result.scored, chosen.counted()
    assert result.certificate.failures == []
    assert (scored.bytes, scored.chars, scored.words) == (text.bytes, text.chars, text.words)
    offset = np.cumsum([0] + [d.size for d in part.documents])
    places = np.array(
        [(offset[r.document] + a, offset[r.document] + b) for r in chosen.readings for a, b in r.stretches]
    )
    begins = np.concatenate([[0], whole.byte_ends[:-1]])
    inside = ((begins[:, None] >= places[:, 0]) & (whole.byte_ends[:, None] <= places[:, 1])).any(axis=1)
    assert scored.tokens == inside.sum()
    fallback = int(np.isin(whole.stream.ids[inside], tokenizer.fallback_ids).sum())
    assert scored.fallback_tokens == fallback
    assert (fallback > 0) == (spec == "char")  # the letters of rare words
    assert scored.total_nats == pytest.approx(whole.nats_per_token[inside].sum(dtype=np.float64), rel=1e-6)
    assert scored.bits_per_byte == pytest.approx(scored.total_nats / math.log(2) / text.bytes)
    assert units_of([scored]).bits_K[0] == pytest.approx(scored.bits_per_byte)


def test_sums_over_words_are_those_of_the_stretches(tmp_path: Path) -> None:
    """Unknown words, their spelling and the closed vocabulary of the stretches are part of those of all that was read."""
    tokenizer = planted.tokenizer_for("words")
    scored = evaluate(planted.Chain.random(tokenizer), tokenizer, spread(long_part(tmp_path), 20_000)).scored
    assert scored.counted is not None
    read = scored.counted.read
    share = scored.bytes / read.bytes
    assert scored.model_nats + scored.spelling_nats == pytest.approx(scored.total_nats)
    for name in ("unknown_tokens", "spelling_nats", "closed_tokens", "closed_nats", "closed_unknown", "known_nats"):
        counted, all_of_it = getattr(scored, name), getattr(read, name)
        assert 0 < counted < all_of_it
        assert counted == pytest.approx(share * all_of_it, rel=0.2)


def test_where_everything_is_measured_nothing_changes_to_the_last_digit(tmp_path: Path) -> None:
    part, tokenizer = long_part(tmp_path), planted.tokenizer_for("words")
    model = planted.Chain.random(tokenizer)
    a, b = evaluate(model, tokenizer, part), evaluate(model, tokenizer, spread(part, part.bytes))
    assert a.scored.total_nats == b.scored.total_nats
    times = {"seconds": 0, "certificate_seconds": 0}
    assert a.to_json() | times == b.to_json() | times
    assert b.scored.counted is None


def test_a_result_says_what_was_measured(tmp_path: Path) -> None:
    part, tokenizer = long_part(tmp_path), planted.tokenizer_for("byte")
    chosen = spread(part, 20_000)
    data = evaluate(planted.Chain.random(tokenizer), tokenizer, chosen).to_json()["data"]
    assert data["measured"] == chosen.to_json()
    assert data["bytes"] == chosen.bytes
    assert data["sha256"] == chosen.counted().sha256
