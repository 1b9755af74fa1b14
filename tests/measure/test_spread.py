from __future__ import annotations

from pathlib import Path

import measure_models as planted
import numpy as np
import pytest

from lmlab.interface import ContextPolicy
from lmlab.measure import score_part
from lmlab.measure.interval import cells, sums_within, tokens_within, units_of
from lmlab.measure.spread_sample import HISTORY_BYTES, Spread, enough_history, spread, word_end
from lmlab.text.parts import Document, Part


def long_part(tmp_path: Path) -> Part:
    """Three documents, one of them long, 190 kB in all."""
    return planted.part_of(
        tmp_path, planted.some_text(6000), planted.some_text(30_000, seed=1), planted.some_text(700, seed=2)
    )


def bytes_of(document: Document) -> bytes:
    return b"".join(document.blocks())


def test_when_there_is_time_all_is_measured_and_the_number_stays_what_it_was(tmp_path: Path) -> None:
    part = long_part(tmp_path)
    chosen = spread(part, part.bytes)
    assert chosen.everything
    assert chosen.part is part
    assert chosen.counted() is part
    assert chosen.bytes == part.bytes
    tokenizer = planted.tokenizer_for("byte")
    scored = score_part(planted.Chain.random(tokenizer), tokenizer, chosen.part)
    starts, stops, _ = chosen.bounds()
    nats, size = sums_within(scored.byte_ends, scored.nats_per_token, starts, stops)
    assert size.sum() == scored.bytes
    assert nats.sum() == pytest.approx(scored.total_nats, rel=1e-12)


def test_stretches_are_text_of_their_documents_and_begin_where_a_word_ends(tmp_path: Path) -> None:
    part = long_part(tmp_path)
    chosen = spread(part, 20_000)
    assert not chosen.everything
    assert chosen.bytes == pytest.approx(20_000, rel=0.15)
    for reading, document in zip(chosen.readings, chosen.part.documents, strict=True):
        whole = bytes_of(part.documents[reading.document])
        assert bytes_of(document) == whole[reading.start : reading.stop]
        assert reading.start <= reading.stretches[0][0]
        assert reading.stop == reading.stretches[-1][1]
        for edge in (edge for stretch in reading.stretches for edge in stretch):
            between = whole[edge - 1 : edge + 1]
            assert edge in (0, len(whole)) or (not between[:1].isspace() and between[1:].isspace())


@pytest.mark.parametrize("spec", ["byte", "char", "bpe:300", "words"])
def test_a_token_counts_as_it_does_in_the_whole_text(spec: str, tmp_path: Path) -> None:
    """A model that looks one token back costs in the stretches exactly what it costs there in the whole documents."""
    part = long_part(tmp_path)
    chosen = spread(part, 20_000, history_bytes=200)
    tokenizer = planted.tokenizer_for(spec)
    model = planted.Chain.random(tokenizer)
    scored = score_part(model, tokenizer, chosen.part)
    starts, stops, documents = chosen.bounds()
    nats, size = sums_within(scored.byte_ends, scored.nats_per_token, starts, stops)
    whole = score_part(model, tokenizer, part)
    offset = np.cumsum([0] + [d.size for d in part.documents])
    places = [
        (offset[r.document] + start, offset[r.document] + stop) for r in chosen.readings for start, stop in r.stretches
    ]
    there = sums_within(whole.byte_ends, whole.nats_per_token, *(np.array(edge) for edge in zip(*places, strict=True)))
    assert np.array_equal(size, there[1])
    assert nats == pytest.approx(there[0], rel=1e-6)
    assert size.sum() == chosen.bytes
    assert len(documents) == chosen.stretches


def test_each_token_counts_once_or_not_at_all_and_brings_its_own_bytes() -> None:
    ends = np.array([4, 6, 6, 11, 15, 20, 22])  # the third token has no bytes
    starts, stops = np.array([4, 6, 15]), np.array([6, 13, 22])
    tokens, units = tokens_within(ends, starts, stops)
    assert tokens.tolist() == [1, 2, 3, 5, 6]  # the token from 11 to 15 reaches over the edge at 13
    assert units.tolist() == [0, 1, 1, 2, 2]
    nats, size = sums_within(ends, np.arange(1.0, 8.0), starts, stops)
    assert size.tolist() == [2, 5, 7]
    assert nats.tolist() == [2.0, 7.0, 13.0]


def test_a_token_across_two_stretches_that_touch_belongs_to_the_first() -> None:
    tokens, units = tokens_within(np.array([3, 8, 10]), np.array([0, 5]), np.array([5, 10]))
    assert tokens.tolist() == [0, 1, 2]
    assert units.tolist() == [0, 0, 1]


def test_text_without_whitespace_is_cut_between_characters(tmp_path: Path) -> None:
    path = tmp_path / "wide.txt"
    path.write_text("äöü€" * 500)
    document = Document(path, 0, path.stat().st_size)
    for place in range(100, 120):
        end = word_end(document, place)
        assert place <= end < place + 4
        document_bytes = bytes_of(document)
        document_bytes[:end].decode()


def test_what_is_drawn_depends_on_the_text_and_on_nothing_else(tmp_path: Path) -> None:
    part = long_part(tmp_path)
    moved = Part("other name", part.documents)
    edited = tmp_path / "edited.txt"
    edited.write_bytes(b"X" + bytes_of(part.documents[1])[1:])
    changed = Part(part.name, [part.documents[0], Document(edited, 0, part.documents[1].size), part.documents[2]])

    def first(chosen: Spread) -> list[tuple[int, int]]:
        return [(r.start, r.stop) for r in chosen.readings]

    assert first(spread(part, 20_000)) == first(spread(moved, 20_000))
    assert first(spread(part, 20_000)) != first(spread(part, 20_000, seed=1))
    assert first(spread(part, 20_000)) != first(spread(changed, 20_000))


def test_where_nearly_all_would_be_read_all_is_measured(tmp_path: Path) -> None:
    part = long_part(tmp_path)
    assert spread(part, part.bytes // 2, history_bytes=10_000).everything


def test_the_longest_window_decides_how_much_history_is_read() -> None:
    recurrent, trigram, windows = ContextPolicy(None, None), ContextPolicy(3, 1), ContextPolicy(512, 256)
    assert enough_history([(recurrent, 1.0), (trigram, 5.0)]) == HISTORY_BYTES
    assert enough_history([(recurrent, 1.0), (windows, 4.5)]) == 2304


def test_the_record_says_what_was_measured(tmp_path: Path) -> None:
    part = long_part(tmp_path)
    chosen = spread(part, 20_000)
    found = chosen.to_json()
    assert found["of_bytes"] == part.bytes
    assert found["bytes"] == sum(d.size for d in chosen.counted().documents)
    assert found["documents"] == len({r.document for r in chosen.readings})
    assert f"{found['bytes']:,} bytes in {found['stretches']} stretches" in found["sentence"]
    assert "of 3 documents" in found["sentence"]
    assert spread(part, part.bytes).sentence.startswith("All of the")


def test_units_of_a_spread_text_know_their_documents_and_their_share(tmp_path: Path) -> None:
    part = long_part(tmp_path)
    chosen = spread(part, 20_000)
    tokenizers = [planted.tokenizer_for(spec) for spec in ("byte", "words")]
    units = units_of([score_part(planted.Chain.random(t), t, chosen.part) for t in tokenizers], chosen)
    assert units.share == chosen.share < 1.0
    assert units.about == "part"
    assert units.bytes_KU.sum(axis=1).tolist() == [chosen.bytes, chosen.bytes]
    assert set(units.document_U.tolist()) == {r.document for r in chosen.readings}


def test_no_cell_reaches_over_the_end_of_a_document() -> None:
    documents = np.array([5, 100_000, 3, 0, 640, 400, 7770])
    starts, stops, document = cells(documents)
    assert np.array_equal(starts[1:], stops[:-1])
    assert set(np.cumsum(documents)) <= set(stops.tolist())
    assert np.array_equal(np.bincount(document, weights=stops - starts, minlength=7), documents)
