"""Gradients through time: exact Jacobians, the bounds of theory, and what clipping does to training."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.inside.theory.cell_jacobians import FLOWS, Flow, norm
from lmlab.inside.theory.clipping import trainings
from lmlab.inside.theory.gradients import INITIALISATIONS, Through, draw_weights, flows, products, walk
from lmlab.inside.theory.verbs import explain_gradients
from lmlab.layers.cells import CellWeights

WIDTH, LENGTH = 5, 7


def drawn(flow: Flow, scale: float, seed: int = 0, **bias: float) -> tuple[Tensor, CellWeights]:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(LENGTH, WIDTH, generator=generator, dtype=torch.float64)
    return inputs, draw_weights(flow, "xavier", scale, WIDTH, generator, **bias)


def by_autograd(flow: Flow, inputs_TX: Tensor, weights: CellWeights) -> list[float]:
    """‖∂ last state / ∂ state before step t‖, last step first, through the lab's own cell."""
    states = [torch.zeros(flow.cell.memories * WIDTH, dtype=torch.float64)]

    def run(state_S: Tensor, inputs: Tensor) -> Tensor:
        state = tuple(part[None] for part in state_S.chunk(flow.cell.memories))
        for x_X in inputs:
            state = flow.cell.step(x_X[None], state, weights)
        return torch.cat([part[0] for part in state])

    for x_X in inputs_TX:
        states.append(run(states[-1], x_X[None]))
    starts = range(LENGTH, -1, -1)
    return [norm(torch.autograd.functional.jacobian(lambda s, t=t: run(s, inputs_TX[t:]), states[t])) for t in starts]


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("cell", FLOWS)
def test_norms_of_the_products_are_those_of_automatic_differentiation(cell: str, scale: float) -> None:
    inputs, weights = drawn(FLOWS[cell], scale)
    found = products(walk(FLOWS[cell], inputs, weights))
    assert found == pytest.approx(by_autograd(FLOWS[cell], inputs, weights), rel=1e-9)


@pytest.mark.parametrize("cell", FLOWS)
def test_each_jacobian_is_within_its_bound_and_the_states_are_those_of_the_fused_kernel(cell: str) -> None:
    flow = FLOWS[cell]
    for seed, scale in itertools.product(range(5), (0.3, 1.0, 4.0)):
        inputs, weights = drawn(flow, scale, seed)
        steps = walk(flow, inputs, weights)
        assert all(norm(step.jacobian_SS) <= step.bound * (1 + 1e-12) for step in steps)
        fresh = (torch.zeros(1, WIDTH, dtype=torch.float64),) * flow.cell.memories
        hidden, _ = flow.cell.run(inputs[None], fresh, weights)
        assert torch.allclose(torch.stack([step.state[0] for step in steps]), hidden[0])


def small(**changed: object) -> list[Through]:
    asked = {"cells": list(FLOWS), "scales": [0.5, 1.0, 3.0], "inits": ["orthogonal"], "forget_biases": [0.0, 3.0]}
    return flows(**(asked | {"width": 8, "length": 30, "inputs": 0.5} | changed))  # type: ignore[arg-type]


def test_the_bounds_of_theory_hold_at_every_step_for_every_initialisation() -> None:
    found = small(inits=list(INITIALISATIONS))
    assert len(found) == 4 * 3 * (1 + 1 + 2)
    for flow in found:
        for k, (low, seen, high) in enumerate(zip(flow.lower, flow.norms, flow.upper, strict=True)):
            assert low * (1 - 1e-9) <= seen <= high * (1 + 1e-9)
            if flow.blind is not None:
                assert flow.upper[k] <= flow.blind[k] * (1 + 1e-9)
                assert flow.blind[k] == pytest.approx(flow.weight_norm**k)


def test_at_rest_a_plain_cell_follows_the_powers_of_its_weights_which_the_spectral_radius_bounds_from_below() -> None:
    (flow,) = small(cells=["rnn"], scales=[1.1], inits=["xavier"], inputs=0.0, length=60)
    generator = torch.Generator().manual_seed(0)
    torch.randn(60, 8, generator=generator, dtype=torch.float64)  # the inputs, which are drawn first
    U = draw_weights(FLOWS["rnn"], "xavier", 1.1, 8, generator).state_GH
    for k in (1, 5, 60):
        assert flow.norms[k] == pytest.approx(norm(torch.linalg.matrix_power(U, k)))
        assert flow.norms[k] >= flow.spectral_radius**k * (1 - 1e-9)
    assert flow.factor == pytest.approx(flow.spectral_radius, rel=0.05)  # Gelfand: ‖Uᵏ‖^(1/k) goes to ρ(U)


def test_a_plain_cell_vanishes_at_small_and_explodes_at_large_weights_and_the_lstm_with_forget_bias_does_neither() -> (
    None
):
    verdicts = {flow.name: flow.verdict for flow in explain_gradients(train=False).flows}
    assert verdicts["rnn, orthogonal × 0.5"] == "vanishes"
    assert verdicts["rnn, orthogonal × 2.5"] == "explodes"
    assert {verdicts[f"lstm, orthogonal × {scale}, forget bias 3"] for scale in ("0.5", "1", "2.5")} == {
        "does not vanish"
    }
    assert verdicts["lstm, orthogonal × 1, forget bias 0"] == "vanishes"


def test_without_recurrent_weights_the_forget_gate_alone_decides() -> None:
    (flow,) = small(cells=["lstm"], scales=[1e-12], forget_biases=[2.0], inputs=0.0)
    gate = 1 / (1 + math.exp(-2.0))
    assert flow.kept is not None
    for k in (1, 10, 30):
        assert flow.kept[k] == pytest.approx(gate**k)
        assert flow.norms[k] == pytest.approx(gate**k * math.hypot(1, 0.5), rel=1e-6)  # c, and h = σ(0) tanh(c)


def test_clipping_rescues_a_start_that_explodes_and_not_one_that_vanishes() -> None:
    runs = trainings(starts=[("xavier", 0.5), ("he", 2.0)], steps=80, tries=1, length=30)
    learned = {(run.start, run.clip is not None): run.learned for run in runs}
    assert learned == {
        ("xavier × 0.5", False): False,
        ("xavier × 0.5", True): False,
        ("he × 2", False): False,
        ("he × 2", True): True,
    }
    explodes, clipped = runs[2], runs[3]
    assert explodes.bits[0] == clipped.bits[0]
    assert max(explodes.gradient_norms) > 100


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"cells": ["rn"]}, "did you mean 'rnn'"),
        ({"cells": []}, "at least one"),
        ({"inits": ["xavir"]}, "did you mean 'xavier'"),
        ({"scales": [0.0]}, "above 0"),
        ({"scales": [math.inf]}, "above 0"),
        ({"forget_biases": [math.nan]}, "forget_bias"),
        ({"width": 0}, "from 1 to"),
        ({"length": 10**6}, "from 1 to"),
        ({"inputs": -1.0}, "from 0 up"),
        ({"clip": 0.0}, "above 0"),
        ({"steps": 0}, "from 1 up"),
    ],
)
def test_a_mistake_is_said_before_anything_is_computed(asked: dict[str, object], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        explain_gradients(**({"width": 4, "length": 3} | asked))  # type: ignore[arg-type]


def test_the_steps_until_a_thousandth_are_counted_from_the_last_state() -> None:
    (fades,) = flows(
        cells=["rnn"], scales=[0.5], inits=["identity"], forget_biases=[0.0], width=2, length=12, inputs=0.0
    )
    assert fades.norms == pytest.approx([0.5**k for k in range(13)])  # at rest a step back multiplies by U itself
    assert fades.steps_to_a_thousandth == 10  # 2⁹ = 512 and 2¹⁰ = 1024
    assert fades.to_json()["steps_to_a_thousandth"] == 10
    (stays,) = flows(
        cells=["rnn"], scales=[1.0], inits=["identity"], forget_biases=[0.0], width=2, length=12, inputs=0.0
    )
    assert stays.steps_to_a_thousandth is None
