"""The attentive scan, whose backward pass is written by hand, against the plain equations and numerical gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lmlab.layers.attentive import attentive_scan, step_by_step
from lmlab.layers.fast import attentive
from lmlab.layers.fast.attentive import Additive, Rule

ROWS, STEPS, H, A = 2, 6, 3, 4
WIDE = torch.float64


def draw(past: int, additive: bool) -> tuple[list[Tensor], Additive | None]:
    generator = torch.Generator().manual_seed(2)
    shapes = [(ROWS, STEPS, H), (ROWS, H), (ROWS, past, H), (H, H)]
    extra = [(A, H), (A, H), (A,)] if additive else []
    drawn = [torch.randn(s, generator=generator, dtype=WIDE).requires_grad_() for s in (*shapes, *extra)]
    return drawn[:4], Additive(*drawn[4:]) if additive else None


@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize(("past", "reach"), [(0, 1), (0, 3), (0, 50), (3, 3), (2, 4), (4, 50)])
def test_the_scan_and_its_gradients_are_those_of_the_equations(
    additive: bool, combined: bool, past: int, reach: int
) -> None:
    inputs, score = draw(past, additive)
    rule = Rule(reach, 0.7, combined)
    weight_BTH = torch.randn(ROWS, STEPS, H, dtype=WIDE, generator=torch.Generator().manual_seed(4))
    leaves = [t for t in (*inputs, *(score or ())) if t.numel()]
    gradients = []
    results = [function(*inputs, score, rule) for function in (attentive_scan, step_by_step)]
    for h_BTH, _ in results:
        gradients.append(torch.autograd.grad((h_BTH * weight_BTH).sum(), leaves))
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(gradients[0], gradients[1])
    assert not results[0][1].requires_grad


@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize(("past", "reach"), [(0, 1), (0, 3), (3, 3), (2, 4), (4, 50)])
def test_few_rows_that_are_read_for_no_gradient_come_out_the_same(
    additive: bool, combined: bool, past: int, reach: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, score = draw(past, additive)
    rule, results = Rule(reach, 0.7, combined), []
    with torch.no_grad():
        for few in (0, ROWS):
            monkeypatch.setattr(attentive, "FEW_ROWS", few)
            results.append(attentive_scan(*inputs, score, rule))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("combined", [False, True])
def test_the_gradients_are_the_numerical_ones(additive: bool, combined: bool) -> None:
    inputs, score = draw(2, additive)
    rule = Rule(3, 0.7, combined)

    def scan(*tensors: Tensor) -> Tensor:
        return attentive_scan(*tensors[:4], Additive(*tensors[4:]) if additive else None, rule)[0]  # type: ignore[arg-type]

    assert torch.autograd.gradcheck(scan, (*inputs, *(score or ())))


@pytest.mark.parametrize("combined", [False, True])
def test_a_stretch_continues_where_the_one_before_it_stopped(combined: bool) -> None:
    (drive_BTH, h_BH, past_BPH, state_HH), score = draw(0, True)
    rule = Rule(3, 1.0, combined)
    whole_BTH, states_BwH = attentive_scan(drive_BTH, h_BH, past_BPH, state_HH, score, rule)
    first_BTH, between_BwH = attentive_scan(drive_BTH[:, :2], h_BH, past_BPH, state_HH, score, rule)
    then_BTH, after_BwH = attentive_scan(drive_BTH[:, 2:], first_BTH[:, -1], between_BwH, state_HH, score, rule)
    torch.testing.assert_close(torch.cat([first_BTH, then_BTH], dim=1), whole_BTH)
    torch.testing.assert_close(after_BwH, states_BwH)


def test_the_first_step_has_nothing_to_attend_to() -> None:
    (drive_BTH, h_BH, past_BPH, state_HH), _ = draw(0, False)
    h_BTH, _ = attentive_scan(drive_BTH, h_BH, past_BPH, state_HH, None, Rule(5, 1.0, False))
    torch.testing.assert_close(h_BTH[:, 0], torch.tanh(drive_BTH[:, 0] + h_BH @ state_HH.T))


def test_attending_to_combined_states_grows_without_bound_and_attending_to_the_rnns_does_not() -> None:
    """Equal weights (scale 0), constant ĥ = tanh(1): the printed recipe gives ĥ times one plus the harmonic numbers."""
    steps = 400
    drive_BTH, h_BH, past_BPH = torch.ones(1, steps, H), torch.zeros(1, H), torch.zeros(1, 0, H)
    candidate = torch.tanh(torch.ones(()))
    results = {}
    for combined in (True, False):
        rule = Rule(steps, 0.0, combined)
        results[combined], _ = attentive_scan(drive_BTH, h_BH, past_BPH, torch.zeros(H, H), None, rule)
    harmonic_T = torch.cat([torch.zeros(1), (1 / torch.arange(1, steps)).cumsum(0)])
    torch.testing.assert_close(results[True][0, :, 0], candidate * (1 + harmonic_T), rtol=1e-4, atol=1e-4)
    assert results[False].abs().max() < 2


def test_a_second_derivative_is_refused() -> None:
    inputs, score = draw(2, True)
    h_BTH, _ = attentive_scan(*inputs, score, Rule(3, 0.7, False))
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(h_BTH.square().sum() + inputs[0].square().sum(), inputs[0], create_graph=True)
