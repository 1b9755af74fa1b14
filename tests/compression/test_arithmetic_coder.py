"""The coder: exact, as short as the probabilities say, and never lost in a carry."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.compression.arithmetic_coder import TOTAL, Decoder, Encoder, OutOfStep, Table


def table(*weights: float) -> Table:
    p = np.array(weights, dtype=np.float64)
    return Table(np.cumsum(p / p.sum()))


def coded(tables: list[Table], symbols: list[int]) -> bytes:
    encoder = Encoder()
    for one, symbol in zip(tables, symbols, strict=True):
        encoder.encode(one, symbol)
    return encoder.finish()


def decoded(tables: list[Table], data: bytes) -> list[int]:
    decoder = Decoder(data)
    symbols = [decoder.decode(one) for one in tables]
    decoder.finish()
    return symbols


probabilities = st.lists(
    st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1e-300, 1e-12, 1e-9, 1.0 - 1e-12, 1.0])),
    min_size=1,
    max_size=40,
).filter(lambda p: sum(p) > 1e-290)


@given(probabilities)
def test_every_symbol_has_a_share_and_the_shares_fill_the_whole(p: list[float]) -> None:
    one = table(*p)
    starts = [one.start(symbol) for symbol in range(len(p) + 1)]
    assert starts[0] == 0
    assert starts[-1] == TOTAL
    assert all(below < above for below, above in pairwise(starts))
    for symbol in range(len(p)):
        assert one.find(starts[symbol]) == symbol
        assert one.find(starts[symbol + 1] - 1) == symbol


@given(probabilities)
def test_a_share_is_the_probability_to_within_the_size_of_the_vocabulary(p: list[float]) -> None:
    one, total = table(*p), sum(p)
    for symbol, probability in enumerate(p):
        share = one.start(symbol + 1) - one.start(symbol)
        assert abs(share - TOTAL * probability / total) <= len(p) + 2


@settings(deadline=None)
@given(st.lists(probabilities, max_size=60), st.data())
def test_what_was_sent_is_received_whatever_the_probabilities(many: list[list[float]], data: st.DataObject) -> None:
    tables = [table(*p) for p in many]
    symbols = [data.draw(st.integers(0, len(p) - 1)) for p in many]
    assert decoded(tables, coded(tables, symbols)) == symbols


@settings(deadline=None)
@given(st.lists(probabilities, max_size=60), st.data())
def test_the_length_is_the_information_rounded_up_to_bytes(many: list[list[float]], data: st.DataObject) -> None:
    tables = [table(*p) for p in many]
    symbols = [data.draw(st.integers(0, len(p) - 1)) for p in many]
    shares = [t.start(s + 1) - t.start(s) for t, s in zip(tables, symbols, strict=True)]
    bits = sum(math.log2(TOTAL / share) for share in shares)
    rounding = len(many) * 2.0**-23
    assert bits - 1e-6 <= 8 * len(coded(tables, symbols)) + 8  # zeros that follow are not written
    assert 8 * len(coded(tables, symbols)) <= bits + 8 + rounding


@pytest.mark.parametrize(
    "p",
    [(0.5, 0.5), (0.999999, 0.000001), (1 - 1e-9, 1e-9), (0.2, 0.0, 0.3, 0.5), (1.0,), tuple([1 / 50_000] * 50_000)],
    ids=["fair", "one in a million", "one in a milliard", "with an impossible one", "certain", "large vocabulary"],
)
def test_ten_thousand_symbols_take_their_entropy(p: tuple[float, ...]) -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    symbols = generator.choice(len(p), size=10_000, p=p).tolist()
    nats = -np.log(np.array(p)[symbols]).sum()
    data = coded([table(*p)] * len(symbols), symbols)
    assert 8 * len(data) == pytest.approx(nats / math.log(2), rel=1e-4, abs=8)
    assert decoded([table(*p)] * len(symbols), data) == symbols


def test_the_impossible_can_be_sent_for_32_bits() -> None:
    tables = [table(1.0, 0.0)] * 100
    data = coded(tables, [1] * 100)
    assert len(data) == 400
    assert decoded(tables, data) == [1] * 100


def test_a_carry_runs_back_through_every_byte_that_it_must() -> None:
    """The symbols that a decoder reads out of 1/2 = 0x80 00 00 ... keep `low` just below it: 0x7F FF FF ..."""
    generator = np.random.Generator(np.random.PCG64(3))
    tables = [table(*generator.random(5)) for _ in range(301)]
    decoder = Decoder(b"\x80" + bytes(1000))
    straddling = [decoder.decode(one) for one in tables[:300]]
    carried = 0
    for n in range(8, 300):
        for last in range(5):
            symbols, used = [*straddling[:n], last], [*tables[:n], tables[300]]
            encoder = Encoder()
            for one, symbol in zip(used[:-1], symbols[:-1], strict=True):
                encoder.encode(one, symbol)
            before = bytes(encoder._out)
            assert before == b"\x7f" + b"\xff" * (len(before) - 1)
            encoder.encode(used[-1], last)
            if encoder._out.startswith(b"\x80"):
                assert encoder._out[: len(before)] == b"\x80" + bytes(len(before) - 1)
                carried += 1
            assert decoded(used, encoder.finish()) == symbols
    assert carried > 200, "such carries did happen"


def test_nothing_takes_no_bytes_and_neither_does_the_certain() -> None:
    assert coded([], []) == b""
    assert coded([table(1.0)] * 1000, [0] * 1000) == b""


def test_more_symbols_than_were_sent_are_noticed() -> None:
    fair = table(1, 1, 1, 1)
    decoder = Decoder(coded([fair] * 100, [3] * 100))
    with pytest.raises(OutOfStep):
        [decoder.decode(fair) for _ in range(200)]


def test_fewer_symbols_than_were_sent_are_noticed() -> None:
    fair = table(1, 1, 1, 1)
    decoder = Decoder(coded([fair] * 100, [3] * 100))
    assert [decoder.decode(fair) for _ in range(90)] == [3] * 90
    with pytest.raises(OutOfStep):
        decoder.finish()


@pytest.mark.parametrize("p", [(0.0, 0.0), (float("nan"), 1.0), (float("inf"), 1.0), (0.5, 0.4)])
def test_what_is_no_distribution_is_refused(p: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="not to 1"):
        Table(np.cumsum(p))
