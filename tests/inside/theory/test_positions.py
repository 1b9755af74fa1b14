"""Positions: a rotation by the offset alone, no matrix for sines alone, and scores that feel distance alone."""

from __future__ import annotations

import math

import pytest
import torch

from lmlab.config import Mistake
from lmlab.inside.theory.positions import rotary_scores, rotation
from lmlab.inside.theory.verbs import explain_positions
from lmlab.layers.positions import sinusoidal_table

ROUNDING = 1e-4  # the tables are float32


@pytest.mark.parametrize(("width", "offset"), [(2, 1), (16, 5), (64, 30)])
def test_one_rotation_takes_every_position_to_the_one_that_is_the_offset_further(width: int, offset: int) -> None:
    turn, table = rotation(width, offset), sinusoidal_table(200, width).double()
    for n in (0, 1, 77, 199 - offset):
        assert torch.allclose(turn @ table[n], table[n + offset], atol=ROUNDING)
    assert torch.allclose(turn @ turn.T, torch.eye(width, dtype=torch.float64))
    assert float(torch.linalg.det(turn)) == pytest.approx(1.0)
    assert torch.allclose(rotation(width, offset) @ rotation(width, 3), rotation(width, offset + 3))


def test_sines_alone_have_no_such_matrix() -> None:
    found = explain_positions(width=16, length=60, offset=6)
    assert found.rotation_error < ROUNDING
    assert [missed.offset for missed in found.missed] == [1, 2, 3, 4, 5, 6]
    for missed in found.missed:
        assert missed.with_cosines < ROUNDING
        assert missed.sines_alone >= abs(math.sin(missed.offset)) * 0.99  # at n = 0, where all sines are 0


def test_dot_products_of_encodings_are_a_sum_of_cosines_of_the_distance() -> None:
    found = explain_positions(width=32, length=50)
    waves = [2 * math.pi / pair.wavelength for pair in found.pairs]
    assert found.similarity == pytest.approx([sum(math.cos(d * w) for w in waves) for d in range(50)], abs=ROUNDING)
    assert found.similarity_deviation < ROUNDING


def test_rotary_scores_depend_on_the_distance_alone_and_are_real_parts_of_turned_complex_numbers() -> None:
    width, length = 8, 40
    scores = rotary_scores(width, length, seed=3)
    generator = torch.Generator().manual_seed(3)
    q, k, _ = torch.randn(1, 1, 3, 1, width, generator=generator)[0, 0, :, 0].double()
    pairs_q, pairs_k = torch.complex(q[:4], q[4:]), torch.complex(k[:4], k[4:])
    omega = 10000.0 ** (-2 * torch.arange(4, dtype=torch.float64) / width)
    for n, m in ((0, 0), (5, 20), (39, 7)):
        expected = (pairs_q * pairs_k.conj() * torch.exp(1j * (n - m) * omega)).real.sum()
        assert float(scores[n, m]) == pytest.approx(float(expected), abs=ROUNDING)
    assert explain_positions(width=width, length=length).rotary_deviation < ROUNDING


@pytest.mark.parametrize("wrong", [{"width": 7}, {"width": 0}, {"length": 1}, {"offset": 0}, {"offset": 101}])
def test_what_cannot_be_encoded_is_a_mistake(wrong: dict[str, int]) -> None:
    with pytest.raises(Mistake, match=next(iter(wrong))):
        explain_positions(**wrong)  # type: ignore[arg-type]
