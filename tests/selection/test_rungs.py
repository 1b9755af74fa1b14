"""What a search does next follows from its records alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmlab.selection.rungs import CandidateState, State, Step, budgets_in_all, next_step, survivors

RUNGS = (0.1, 0.3, 1.0)
TRAIN_S = 100.0


def candidate(name: str, *bits: float, counts: bool = False) -> CandidateState:
    """A candidate that reached as many rungs as there are numbers of bits."""
    shares = (1.0,) if counts else RUNGS
    valid = tuple(zip(shares, bits, strict=False))
    reached = valid[-1][0] if valid else 0.0
    return CandidateState(name=name, counts=counts, reached=reached, valid=valid, to_finish_s=(1 - reached) * TRAIN_S)


def state(*candidates: CandidateState, left_s: float = 1000.0) -> State:
    return State(candidates=candidates, rungs=RUNGS, left_s=left_s)


def test_models_are_counted_first_and_then_the_time_is_planned() -> None:
    begun = State(candidates=(candidate("a", counts=True), candidate("b", counts=True)))
    assert next_step(begun) == Step(what="count", name="a")
    begun = State(candidates=(candidate("a", 2.0, counts=True), candidate("b", counts=True)))
    assert next_step(begun) == Step(what="count", name="b")
    assert next_step(replace(begun, counting_s=-1.0)) == Step(what="plan")


def test_all_reach_a_rung_before_the_better_half_goes_on() -> None:
    names = "abcd"
    at_first = [candidate(name, bits) for name, bits in zip(names, (3.0, 2.0, 4.0, 2.5), strict=True)]
    waiting = [*at_first[:2], candidate("c"), candidate("d")]
    assert next_step(state(*waiting)) == Step(what="train", name="c", until=0.1)
    assert next_step(state(*at_first)) == Step(what="train", name="b", until=0.3)
    assert [c.name for c in survivors(at_first, 0.1)] == ["b", "d"]
    second = [at_first[0], candidate("b", 2.0, 1.9), at_first[2], candidate("d", 2.5, 1.8)]
    assert next_step(state(*second)) == Step(what="train", name="d", until=1.0)


def test_candidates_are_compared_at_equal_shares_of_the_budget() -> None:
    ahead = candidate("ahead", 3.0, 1.0)  # further along, and worse where the other is
    behind = candidate("behind", 2.0)
    assert [c.name for c in survivors([ahead, behind], 0.1)] == ["behind"]


def test_a_run_that_stopped_early_is_compared_by_its_end() -> None:
    early = CandidateState(name="early", counts=False, reached=1.0, valid=((0.1, 3.0), (1.0, 2.9)))
    assert early.bits_at(0.3) == 3.0
    ended_before = CandidateState(name="early", counts=False, reached=1.0, valid=((1.0, 2.9),))
    assert ended_before.bits_at(0.3) == 2.9


def test_time_that_is_left_finishes_the_best_of_those_that_were_stopped() -> None:
    done = candidate("done", 2.0, 1.8, 1.6)
    stopped = [candidate("third", 2.4), candidate("second", 2.2, 1.9), candidate("fourth", 2.3)]
    assert next_step(state(done, *stopped, left_s=80.0)) == Step(what="train", name="second")
    assert next_step(state(done, *stopped, left_s=60.0)) == Step(what="choose")


def test_a_budget_that_is_nearly_used_up_ends_training_only_if_something_is_finished() -> None:
    counted, waiting = candidate("counted", 2.0, counts=True), candidate("waiting", 3.0, 2.9)
    assert next_step(state(waiting, left_s=10.0)) == Step(what="train", name="waiting", until=1.0)
    assert next_step(state(counted, waiting, left_s=65.0)) == Step(what="train", name="waiting", until=1.0)
    assert next_step(state(counted, waiting, left_s=50.0)) == Step(what="choose")


def test_a_candidate_that_fails_is_left_out_and_the_others_go_on() -> None:
    failed = replace(candidate("failed"), failed=True)
    assert next_step(state(failed, candidate("other"))) == Step(what="train", name="other", until=0.1)


def test_the_best_is_chosen_and_measured_once() -> None:
    done = replace(state(candidate("done", 2.0, 1.8, 1.6), left_s=0.0), chosen=True)
    assert next_step(done) == Step(what="measure")
    assert next_step(replace(done, measured=True)) is None


@pytest.mark.parametrize(("candidates", "total"), [(1, 1.0), (2, 1.1), (4, 0.4 + 0.4 + 0.7)])
def test_the_time_of_all_candidates_is_that_of_the_field_at_each_rung(candidates: int, total: float) -> None:
    assert budgets_in_all(RUNGS, candidates) == pytest.approx(total)
