"""Functions in C are taken where they are faster than what they replace, which is found out by racing them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from lmlab.hardware import races, report
from lmlab.hardware.c_kernels import PROBE, SWITCH, why_not
from lmlab.hardware.kept_figures import figures_folder
from lmlab.hardware.races import Race
from lmlab.hardware.report import about_machine
from lmlab.layers import attention
from lmlab.layers.fast import attention_in_c
from lmlab.layers.raced import RACES

TROUBLE = why_not(PROBE, shared=True)
pytestmark = pytest.mark.skipif(bool(TROUBLE), reason=TROUBLE)


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """No race was run before, and none is left out; other tests find what they knew."""
    monkeypatch.delenv(SWITCH, raising=False)
    for known in ("_REMEMBERED", "_ANSWERED", "_BEGUN_WITH"):
        monkeypatch.setattr(races, known, {})


@dataclass
class Clock:
    """A clock that moves when somebody works, and says how often."""

    now: float = 0.0
    worked: int = 0

    def working(self, seconds: float) -> Callable[[], object]:
        def work() -> None:
            self.now, self.worked = self.now + seconds, self.worked + 1

        return work


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(races.time, "perf_counter", lambda: clock.now)
    return clock


def race(clock: Clock, ours_s: float, plain_s: float, what: str = "anything") -> Race:
    return Race(what, PROBE, lambda dtype: (clock.working(ours_s), clock.working(plain_s)))


@pytest.mark.parametrize(
    ("ours_s", "plain_s", "taken"), [(1, 2, True), (2, 1, False), (1.01, 1, True), (1.2, 1, False)]
)
def test_ours_is_taken_unless_the_plain_way_is_clearly_faster(
    clock: Clock, ours_s: float, plain_s: float, taken: bool
) -> None:
    asked = race(clock, ours_s, plain_s)
    assert asked.won(torch.float32) is taken
    assert asked.result(torch.float32).gain == pytest.approx(plain_s / ours_s)


def test_a_disturbed_try_does_not_decide(clock: Clock) -> None:
    """Whatever else runs makes a try slower, never faster: the quickest counts."""
    turns = iter([0.009, 0.009, 0.009, 0.001, *[0.009] * 100])

    def ours() -> None:
        clock.now += next(turns)

    assert Race("anything", PROBE, lambda dtype: (ours, clock.working(0.002))).won(torch.float32)


def test_what_was_found_out_is_kept_and_not_raced_again(clock: Clock) -> None:
    race(clock, 2, 1).won(torch.float32)
    worked = clock.worked
    races.forget()
    assert not race(clock, 2, 1).won(torch.float32)
    assert clock.worked == worked
    race(clock, 2, 1, "another thing").won(torch.float32)
    assert clock.worked > worked


@pytest.mark.parametrize(
    "damage", ["", "{}", "[1]", '{"what": "anything", "precision": "float32", "ours_s": 0, "plain_s": 1}']
)
def test_a_damaged_figure_is_raced_anew(clock: Clock, damage: str) -> None:
    race(clock, 2, 1).won(torch.float32)
    (path,) = figures_folder().glob("race-*.json")
    path.write_text(damage)
    races.forget()
    assert not race(clock, 2, 1).won(torch.float32)
    assert json.loads(path.read_text())["plain_s"] == 1


def test_who_asks_for_functions_in_c_gets_them_unraced(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "always")
    assert race(clock, 2, 1).won(torch.float32)
    assert not clock.worked


def test_nothing_is_concluded_where_nothing_is_computed(clock: Clock) -> None:
    """Where a step is only gone through to see what it would take, there is nothing to time."""
    with FakeTensorMode():
        assert race(clock, 2, 1).won(torch.float32)
    assert not clock.worked
    assert not race(clock, 2, 1).won(torch.float32)


def test_a_run_goes_on_with_what_it_began_with(clock: Clock) -> None:
    asked = race(clock, 2, 1)
    with races.as_begun({"anything, float32": True}):
        assert asked.won(torch.float32)
        assert races.answers() == {"anything, float32": True}
    assert not asked.won(torch.float32)
    assert races.answers() == {"anything, float32": False}


@pytest.mark.parametrize("number", range(len(RACES)))
def test_a_real_race_ends_and_leaves_everything_as_it_was(number: int) -> None:
    """In the middle of another's work: random numbers, gradients and precision are theirs."""
    drawn = torch.random.get_rng_state()
    for dtype in RACES[number].precisions:
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            assert RACES[number].won(dtype) in (True, False)
            assert torch.is_inference_mode_enabled()
            assert torch.is_autocast_enabled("cpu")
        assert RACES[number].result(dtype).gain > 0
    assert torch.equal(torch.random.get_rng_state(), drawn)


def test_attention_that_lost_is_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(attention, "attention_in_c", lambda *given, **more: calls.append(given))
    qkv_BT3HD = torch.randn(2, 8, 3, 2, 16, requires_grad=True)
    assert attention_in_c.fits(qkv_BT3HD)
    name = f"{attention.RACE.what}, float32"
    with races.as_begun({name: False}):
        attention.causal_self_attention(qkv_BT3HD, None)
    assert not calls
    with races.as_begun({name: True}):
        attention.causal_self_attention(qkv_BT3HD, None)
    assert calls


@pytest.mark.parametrize(
    ("plain_s", "chosen", "why"),
    [
        ({"float32": 3.0, "bf16": 4.0}, "in C", "C is 1.5 times as fast in float32, 2 in bf16"),
        ({"float32": 1.0, "bf16": 1.0}, "without C", "C is 0.5 times as fast in float32, 0.5 in bf16"),
        (
            {"float32": 1.0, "bf16": 4.0},
            "without C in float32, in C in bf16",
            "C is 0.5 times as fast in float32, 2 in bf16",
        ),
    ],
)
def test_the_machine_tells_how_its_races_ended(plain_s: dict[str, float], chosen: str, why: str) -> None:
    about = Race("something", PROBE, lambda dtype: (list, list))
    raced = tuple(
        races.Raced(what=about.what, precision=precision, ours_s=2.0, plain_s=seconds)
        for precision, seconds in plain_s.items()
    )
    found = report._winner(about, raced)
    assert (found.what, found.chosen, found.why) == ("something", chosen, why)


def test_the_machine_is_asked_for_every_race() -> None:
    found = about_machine(RACES)
    assert {raced.what for raced in found.raced} == {race.what for race in RACES}
    assert {race.what for race in RACES} < {choice.what for choice in found.choices}
