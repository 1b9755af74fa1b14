"""Functions in C are taken where they are faster than what they replace, which is found out by racing them."""

from __future__ import annotations

import functools
import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from lmlab.hardware import c_kernels, races, report
from lmlab.hardware.c_kernels import PROBE, SWITCH, no_c_kernels, why_not
from lmlab.hardware.choice import precision_name
from lmlab.hardware.kept_figures import PRECISIONS
from lmlab.hardware.races import Race, Raced
from lmlab.hardware.rates import crawls
from lmlab.hardware.report import about_machine
from lmlab.layers import attention
from lmlab.layers.cells import CellWeights, GRUCell
from lmlab.layers.fast import attention_in_c, one_row_in_c, recurrence, recurrence_in_c
from lmlab.layers.fast.one_row import BlockWeights, Weights
from lmlab.layers.raced import ALL_TAKEN, RACES, missing
from thinning import thinned

TROUBLE = why_not(PROBE, shared=True)
pytestmark = pytest.mark.skipif(bool(TROUBLE), reason=TROUBLE)
FLOAT, NARROW = torch.float32, torch.bfloat16


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No race was run before, and none is left out; other tests find what they knew."""
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(races, "figures_folder", lambda: tmp_path / "figures")
    for known in ("_REMEMBERED", "_WON", "_TAKEN"):
        monkeypatch.setattr(races, known, {})
    monkeypatch.setattr(races, "_OF_A_RUN", threading.local())


@dataclass
class Clock:
    """A clock that moves when somebody works, and says how often."""

    now: float = 0.0
    worked: int = 0

    def working(self, *seconds: float) -> Callable[[], object]:
        """Takes so long, the last of them again and again."""
        turns = iter(seconds)

        def work() -> None:
            self.now, self.worked = self.now + next(turns, seconds[-1]), self.worked + 1

        return work


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(races.time, "perf_counter", lambda: clock.now)
    return clock


def race(clock: Clock, ours_s: float, plain_s: float, what: str = "anything") -> Race:
    return Race(what, PROBE, lambda dtype: (clock.working(ours_s), clock.working(plain_s)))


@functools.cache
def crawling() -> bool:
    """Whether bf16 takes minutes here where it takes a moment elsewhere: then its races are not run again and again."""
    return crawls(torch.device("cpu"), NARROW)


def precisions(race: Race) -> list[torch.dtype]:
    return [dtype for dtype in race.precisions if dtype == FLOAT or not crawling()]


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "figures").glob("race-*.json"))


@pytest.mark.parametrize("scale", [0.001, 1.0])
@pytest.mark.parametrize(
    ("ours_s", "plain_s", "taken"), [(1, 2, True), (2, 1, False), (1.05, 1, True), (1.2, 1, False)]
)
def test_ours_is_taken_unless_the_plain_way_is_clearly_faster(
    clock: Clock, ours_s: float, plain_s: float, taken: bool, scale: float
) -> None:
    asked = race(clock, ours_s * scale, plain_s * scale)
    assert asked.taken(FLOAT) is taken
    assert asked.result(FLOAT).gain == pytest.approx(plain_s / ours_s)


def test_a_disturbed_try_does_not_decide(clock: Clock) -> None:
    """Whatever else runs makes a try slower, never faster: the quickest counts."""
    ours = clock.working(0.009, 0.009, 0.009, 0.001, 0.009)
    assert Race("anything", PROBE, lambda dtype: (ours, clock.working(0.002))).taken(FLOAT)


def test_a_disturbed_race_does_not_decide_either(clock: Clock) -> None:
    """What is left out is left out for long: it must have lost again and again."""
    ours = clock.working(*[0.009] * 8, 0.001)
    assert Race("anything", PROBE, lambda dtype: (ours, clock.working(0.002))).taken(FLOAT)


def test_the_first_try_which_finds_memory_is_not_counted(clock: Clock) -> None:
    lucky = clock.working(0.0001, 0.009)
    assert race_of(lucky, clock.working(0.002)).result(FLOAT).ours_s == pytest.approx(0.009)


def race_of(ours: Callable[[], object], plain: Callable[[], object]) -> Race:
    return Race("anything", PROBE, lambda dtype: (ours, plain))


def test_what_crawls_is_tried_once_and_no_more(clock: Clock) -> None:
    """In the middle of another's work, where a precision was asked for that this processor has no units for."""
    assert race(clock, 0.1, 20).taken(NARROW)
    assert clock.worked == 2


def test_what_was_found_out_is_kept_and_not_raced_again(clock: Clock, tmp_path: Path) -> None:
    race(clock, 2, 1).taken(FLOAT)
    worked = clock.worked
    races.forget()
    assert not race(clock, 2, 1).taken(FLOAT)
    assert clock.worked == worked
    race(clock, 2, 1, "another thing").taken(FLOAT)
    assert clock.worked > worked
    assert len(kept(tmp_path)) == 2


def test_it_is_kept_for_its_precision_and_for_what_the_compiler_made(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = race(clock, 2, 1)
    for dtype in (FLOAT, NARROW):
        asked.taken(dtype)
    assert len(kept(tmp_path)) == 2
    races.forget()
    other = type("Library", (), {"_name": "/elsewhere/probe-by-another-compiler.so"})
    monkeypatch.setattr(races, "decided_on", lambda source: other)
    asked.taken(FLOAT)
    assert len(kept(tmp_path)) == 3


def test_it_does_not_depend_on_the_threads_of_the_moment(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which change while a run learns: what `lmlab machine` tells is what decided."""
    race(clock, 2, 1).taken(FLOAT)
    worked = clock.worked
    races.forget()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    race(clock, 2, 1).taken(FLOAT)
    assert clock.worked == worked


def test_it_is_raced_again_for_who_asks_and_decides_anew(clock: Clock) -> None:
    changing = clock.working(*[2] * races.CHANCES, 0.5)
    asked = race_of(changing, clock.working(1))
    assert not asked.taken(FLOAT)
    asked.result(FLOAT, again=True)
    assert asked.taken(FLOAT)


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{}",
        "[1]",
        "[" * 100_000,
        '{"what": "anything", "precision": "float32", "ours_s": 0, "plain_s": 1}',
        '{"what": "anything", "precision": "float32", "ours_s": 1, "plain_s": 0}',
        '{"what": "anything", "precision": "float32", "ours_s": 1, "plain_s": NaN}',
        '{"what": "anything", "precision": "float32", "ours_s": Infinity, "plain_s": 1}',
        '{"what": "anything", "precision": "float32", "ours_s": 1, "plain_s": ' + "9" * 401 + "}",
        '{"what": "another", "precision": "float32", "ours_s": 1, "plain_s": 9}',
        '{"what": "anything", "precision": "bf16", "ours_s": 1, "plain_s": 9}',
    ],
)
def test_a_damaged_figure_is_raced_anew(clock: Clock, damage: str, tmp_path: Path) -> None:
    race(clock, 2, 1).taken(FLOAT)
    (path,) = kept(tmp_path)
    path.write_text(damage)
    races.forget()
    assert not race(clock, 2, 1).taken(FLOAT)
    assert json.loads(path.read_text())["plain_s"] == 1


@pytest.mark.parametrize("what", ["a folder stands there", "the folder cannot be made"])
def test_a_figure_that_cannot_be_kept_serves_this_process(clock: Clock, tmp_path: Path, what: str) -> None:
    race(clock, 2, 1).taken(FLOAT)
    (path,) = kept(tmp_path)
    path.unlink()
    if what.startswith("a folder"):
        path.mkdir()
    else:
        for left in path.parent.iterdir():
            left.unlink()
        path.parent.rmdir()
        path.parent.write_text("in its way")
    races.forget()
    assert not race(clock, 2, 1).taken(FLOAT)


def test_who_asks_for_functions_in_c_gets_them_unraced(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "always")
    assert race(clock, 2, 1).taken(FLOAT)
    assert not clock.worked


def test_nothing_is_concluded_where_nothing_is_computed(clock: Clock) -> None:
    """Where a step is only gone through to see what it would take, there is nothing to time."""
    with FakeTensorMode():
        assert race(clock, 2, 1).taken(FLOAT)
    assert not clock.worked
    assert not race(clock, 2, 1).taken(FLOAT)


def test_doing_without_is_remembered_of_a_machine_and_not_of_a_moment(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that began without a compiler goes on without; that a file was compressed in between says nothing of it."""
    with no_c_kernels():
        assert not race(clock, 1, 2).taken(FLOAT)
    assert races.answers() == {}
    monkeypatch.setenv(SWITCH, "off")
    assert not race(clock, 1, 2).taken(FLOAT)
    assert races.answers() == {"anything, float32": False}
    monkeypatch.delenv(SWITCH)
    assert race(clock, 1, 2).taken(FLOAT)
    assert races.answers() == {"anything, float32": True}


def test_a_run_goes_on_with_what_it_began_with(clock: Clock) -> None:
    asked = race(clock, 2, 1)
    with races.as_begun({"anything, float32": True, "another, float32": True}):
        with races.as_begun({"another, float32": False}):
            assert asked.taken(FLOAT)
        assert races.answers() == {"anything, float32": True, "another, float32": True}
    assert not asked.taken(FLOAT)
    assert races.answers() == {"anything, float32": False}


def test_what_a_run_was_answered_is_its_own(clock: Clock) -> None:
    """Another run in the same process took other functions: its checkpoint is not about them."""
    race(clock, 1, 2).taken(FLOAT)
    with races.as_begun({}):
        race(clock, 2, 1, "another").taken(FLOAT)
        assert races.answers() == {"another, float32": False}
    assert races.answers() == {"anything, float32": True}


def test_a_pause_at_the_wrong_moment_leaves_no_race_without_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first tries were quick enough, and then the clock had gone too far for another: none was run, none counted."""
    moments = iter([0.0, 0.0, 0.02, 0.021, 0.199, 0.2001])
    monkeypatch.setattr(races.time, "perf_counter", lambda: next(moments, 9.0))
    assert all(map(math.isfinite, races._quickest_s((list, list))))


def test_what_one_thread_goes_on_with_is_not_told_to_another(clock: Clock) -> None:
    found: list[bool] = []
    with races.as_begun({"anything, float32": True}):
        thread = threading.Thread(target=lambda: found.append(race(clock, 2, 1).taken(FLOAT)))
        thread.start()
        thread.join()
    assert found == [False]


@pytest.mark.parametrize("number", range(len(RACES)))
def test_a_real_race_ends_and_leaves_everything_as_it_was(number: int) -> None:
    """In the middle of another's work: random numbers, gradients, precision and counts are theirs."""
    dtypes, drawn = precisions(RACES[number]), torch.random.get_rng_state()
    for dtype in dtypes:
        counter = FlopCounterMode(display=False)
        with torch.inference_mode(), torch.autocast("cpu", dtype=NARROW), torch.device("meta"), counter:
            assert RACES[number].taken(dtype) in (True, False)
            assert torch.is_inference_mode_enabled()
            assert torch.is_autocast_enabled("cpu")
            assert torch.ones(1).device.type == "meta"
        assert RACES[number].result(dtype).gain > 0
        assert counter.get_total_flops() == 0
    assert torch.equal(torch.random.get_rng_state(), drawn)


@contextmanager
def by_default(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("default", [torch.float64, NARROW])
@pytest.mark.parametrize("number", range(len(RACES)))
def test_a_race_believes_nothing_of_torchs_default_precision(number: int, default: torch.dtype) -> None:
    """A kernel in C believes what it is told, and would write beyond the end."""
    with by_default(default):
        for dtype in precisions(RACES[number]):
            assert RACES[number].result(dtype).gain > 0


@pytest.mark.parametrize("tries", thinned([20, 200], [20]))
@pytest.mark.parametrize("number", range(len(RACES)))
def test_both_ways_of_a_race_do_the_same_work_again_and_again(number: int, tries: int) -> None:
    """Numbers that grew or died away from try to try would make it another race: denormal ones are slow."""
    for dtype in precisions(RACES[number]):
        ours, plain = RACES[number]._ways(dtype)
        for way in (ours, plain):
            found = [_largest(way()) for _ in range(tries)]
            assert all(0.5 < last / first < 2.0 for first, last in zip(found[0], found[-1], strict=True))
            assert all(1e-6 < largest < math.inf for largest in found[-1])


def _largest(found: object) -> list[float]:
    """Of each tensor of numbers the largest."""
    return [float(tensor.float().abs().max()) for tensor in _tensors(found) if tensor.is_floating_point()]


def _tensors(found: object) -> list[Tensor]:
    if isinstance(found, Tensor):
        return [found]
    return [tensor for one in found for tensor in _tensors(one)] if isinstance(found, (tuple, list)) else []


def attend(dtype: torch.dtype) -> None:
    attention.causal_self_attention(torch.randn(2, 8, 3, 2, 16).to(dtype).requires_grad_(), None)


def recur(dtype: torch.dtype) -> None:
    weights = CellWeights(torch.randn(48, 4).to(dtype), torch.randn(48, 16).to(dtype), None)
    GRUCell().run(torch.randn(2, 20, 4).to(dtype).requires_grad_(), (torch.zeros(2, 16, dtype=dtype),), weights)


def read_a_token(dtype: torch.dtype) -> None:
    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=dtype)

    block = BlockWeights(drawn(16), drawn(48, 16), drawn(16, 16), drawn(16), drawn(64, 16), drawn(16, 64))
    one_row_in_c.one_row(Weights(drawn(8, 16), [block], drawn(16), drawn(8, 16), None, 1, 4, scale=1.0, gelu=False))


@pytest.mark.parametrize(
    ("raced", "where", "work"),
    [
        (attention.RACE, attention_in_c, attend),
        (recurrence.RACE, recurrence_in_c, recur),
        (one_row_in_c.RACE, one_row_in_c, read_a_token),
    ],
    ids=lambda given: getattr(given, "what", ""),
)
def test_what_lost_is_left_out_and_what_won_is_taken(
    raced: Race, where: object, work: Callable[[torch.dtype], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And each asks its own race: all others ended the other way."""
    used: list[Path] = []
    honest = c_kernels.decided_on
    monkeypatch.setattr(where, "decided_on", lambda source: used.append(source) or honest(source))
    for dtype in raced.precisions:
        for won in (True, False):
            used.clear()
            with races.as_begun(dict.fromkeys(ALL_TAKEN, not won) | {raced.name(dtype): won}):
                work(dtype)
            assert bool(used) == won, (dtype, won)


def test_what_a_run_took_and_is_not_here_any_more_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(ALL_TAKEN) == []
    monkeypatch.setenv(SWITCH, "off")
    assert missing(ALL_TAKEN) == [race.what for race in RACES]
    assert missing({attention.RACE.name(FLOAT): True, recurrence.RACE.name(FLOAT): False}) == [attention.RACE.what]
    assert missing({"of another version, float32": True, "of a third, bf16": False}) == ["of another version"]


@pytest.mark.parametrize(
    ("gains", "chosen", "why"),
    [
        ({"float32": 1.5, "bf16": 2.0}, "in C", "C is 1.5 times as fast in float32, 2 in bf16"),
        ({"float32": 0.5, "bf16": 0.5}, "without C", "C is 0.5 times as fast in float32, 0.5 in bf16"),
        (
            {"float32": 0.5, "bf16": 2.0},
            "without C in float32, in C in bf16",
            "C is 0.5 times as fast in float32, 2 in bf16",
        ),
        ({"float32": 0.5}, "without C", "C is 0.5 times as fast in float32"),
    ],
)
def test_the_machine_tells_how_its_races_ended(gains: dict[str, float], chosen: str, why: str) -> None:
    about = Race("something", PROBE, lambda dtype: (list, list))
    raced = tuple(Raced(what="something", precision=name, ours_s=1.0, plain_s=gain) for name, gain in gains.items())
    races._WON.update({about.name(PRECISIONS[one.precision]): one.ours_won for one in raced})
    found = report._winner(about, raced)
    assert (found.what, found.chosen, found.why) == ("something", chosen, why)


def test_the_machine_is_asked_for_every_race() -> None:
    """In every precision that somebody might choose here."""
    found = about_machine(RACES)
    chosen = [dtype for dtype in (FLOAT, NARROW) if found.found[-1].rate("cpu", precision_name(dtype)).products]
    expected = {(race.what, precision_name(dtype)) for race in RACES for dtype in race.precisions if dtype in chosen}
    assert {(raced.what, raced.precision) for raced in found.raced} == expected
    told = {choice.what: choice for choice in found.choices}
    assert all(told[what].chosen and told[what].why.startswith("C is") for what, _ in expected)
    assert not {race.what for race in RACES} & told.keys() - {what for what, _ in expected}
