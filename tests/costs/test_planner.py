"""Plans: held to published runs, each predicted from the others; and one line for what cannot be."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest

import lmlab as lab
from command_line import Lmlab, done, refused
from lmlab.cli.show.plans import _moment
from lmlab.costs.calibrate import seconds_in_all, seconds_of_steps
from lmlab.costs.devices import DEVICES
from lmlab.costs.planner import predicted_from_others, published_rate, timed_rate
from lmlab.costs.published_laws import LAWS
from lmlab.costs.published_runs import RUNS
from lmlab.costs.sharding import WAYS, first_that_fits, held, usual_build
from lmlab.costs.training_run import Run


def test_a_moment_is_read_in_the_unit_that_suits_it() -> None:
    assert [_moment(s) for s in (0.0285, 0.9999, 1.01, 12.34)] == ["28.5 ms", "1 s", "1.01 s", "12.3 s"]


WANTED = 12 / 14  # of the runs in a 90% interval that is made without their group
NARROW = 3.0  # the high end of an interval over its low end, at most


def in_their_intervals(runs: list[Run]) -> int:
    return sum(found.covered for found in predicted_from_others(runs))


def test_intervals_made_without_a_group_hold_its_runs_and_are_narrow() -> None:
    found = predicted_from_others()
    assert sum(one.covered for one in found) >= WANTED * len(RUNS)
    assert max(one.interval[1] / one.interval[0] for one in found) <= NARROW
    for kind in ("A100", "H100"):  # on each alone too: no rate of the one is taken for the other
        of_kind = [one.covered for one in found if DEVICES[one.run.device].kind == kind]
        assert sum(of_kind) >= WANTED * len(of_kind)


def test_what_plan_says_is_as_narrow() -> None:
    assert all(published_rate(device).times ** 2 <= NARROW for device in DEVICES)


def test_hours_that_are_wrong_are_not_covered() -> None:
    wrong = [dataclasses.replace(run, hours=4 * run.hours) if run.group == "Meta" else run for run in RUNS]
    assert in_their_intervals(wrong) < WANTED * len(RUNS)
    assert not any(one.covered for one in predicted_from_others(wrong) if one.run.name == "Llama-3 8B")


def test_the_runs_of_a_group_say_nothing_about_their_own_interval() -> None:
    wrong = [dataclasses.replace(run, hours=4 * run.hours) if run.group == "Meta" else run for run in RUNS]
    right, moved = ({one.run.name: one.interval for one in predicted_from_others(runs)} for runs in (RUNS, wrong))
    assert right["LLaMA 7B"] == moved["LLaMA 7B"]
    assert right["BLOOM 176B"] != moved["BLOOM 176B"]


def test_published_runs_are_of_many_groups_and_devices_and_say_what_their_hours_are_of() -> None:
    assert len(RUNS) >= 14
    assert len({run.name for run in RUNS}) == len(RUNS)
    assert len({run.group for run in RUNS}) >= 10
    assert {DEVICES[run.device].kind for run in RUNS} >= {"V100", "A100", "H100", "TPUv4"}
    assert len({run.year for run in RUNS}) >= 4
    assert all(run.source and run.includes for run in RUNS)
    assert all(0.1 < run.share < 0.8 for run in RUNS), "a share of the peak that no training reaches is a slip"


def test_published_models_have_the_size_their_names_say() -> None:
    others = {"GPT-2 124M again": 124e6, "GPT-2 1.6B again": 1.56e9, "StarCoderBase 15B": 15.5e9, "Llama-2 34B": 33.7e9}
    others |= {"Pythia 1B": 1.01e9, "Phi-2": 2.78e9, "Phi-3-mini": 3.82e9, "Phi-3-medium": 14.0e9, "Phi-4": 14.7e9}
    others |= {"DeepSeek-V2": 236e9, "DeepSeek-V3": 671e9, "StableLM 3B-4E1T": 2.8e9, "MPT 7B": 6.65e9}
    for run in RUNS:
        named = re.search(r"([0-9.]+)([BM])$", run.name)
        size = others.get(run.name) or float(named[1]) * {"B": 1e9, "M": 1e6}[named[2]]  # type: ignore[index]
        assert run.parameters == pytest.approx(size, rel=0.05), run.name


def test_the_page_has_every_run_with_its_error_and_what_its_hours_include() -> None:
    page = (Path(__file__).parents[2] / "docs/costs.md").read_text(encoding="utf-8")
    for found in predicted_from_others():
        run, (low, high) = found.run, found.interval
        row = f"| {run.name} | {run.group} | {run.device} | {run.hours:,.0f} | {low:,.0f} to {high:,.0f} |"
        assert f"{row} {found.error:+.0%} | {run.includes} |" in page, "make it anew: bench/bench_published_runs.py"


def test_the_corrected_law_gives_chinchilla_for_its_budget() -> None:
    parameters, tokens = LAWS["corrected"].best_split(5.76e23)
    assert parameters == pytest.approx(70e9, rel=0.1)
    assert tokens == pytest.approx(1.4e12, rel=0.1)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_best_split_is_better_than_its_neighbours(law) -> None:  # type: ignore[no-untyped-def]
    parameters, tokens = law.best_split(1e22)
    best = law.loss(parameters, tokens)
    assert 6 * parameters * tokens == pytest.approx(1e22)
    for factor in (0.8, 0.95, 1.05, 1.25):
        assert law.loss(parameters * factor, tokens / factor) > best
    assert law.loss(*law.best_split(law.operations_for(2.2))) == pytest.approx(2.2, abs=1e-6)
    assert law.operations_for(law.E) == math.inf


def test_sharing_more_takes_less_memory_and_all_ways_are_one_on_one_device() -> None:
    build = usual_build(7e9, 2048)
    needs = [held(build, 64, shared) for shared in WAYS.values()]
    assert needs == sorted(needs, reverse=True)
    whole = {round(held(build, 1, shared)) for way, shared in WAYS.items() if way != "everything shared out"}
    assert len(whole) == 1
    assert needs[0] == pytest.approx(16 * 7e9, rel=0.02)


def test_a_tenth_of_the_memory_is_left_free() -> None:
    build = usual_build(7e9, 2048)
    simplest, next_simplest = list(WAYS)[:2]
    need = held(build, 64, WAYS[simplest])
    assert first_that_fits(build, 64, need / 0.89)[0] == simplest
    assert first_that_fits(build, 64, need / 0.91)[0] == next_simplest


def test_a_usual_build_has_about_the_parameters_that_were_asked_for() -> None:
    for parameters in (1e8, 7e9, 65e9, 1e12):
        build = usual_build(parameters, 2048)
        assert 12 * build.layers * build.width**2 == pytest.approx(parameters, rel=0.1)


def test_twice_the_devices_take_half_the_time_and_the_same_device_hours(lmlab: Lmlab) -> None:
    plans = [
        json.loads(
            lmlab("plan", "--parameters", "7B", "--tokens", "1T", "--device", "A100", "--devices", n, "--json")[1]
        )
        for n in (512, 1024)
    ]
    assert plans[0]["hours"] == pytest.approx(2 * plans[1]["hours"])
    assert plans[0]["device_hours"] == plans[1]["device_hours"]
    low, high = plans[0]["device_hours_interval"]
    assert low < plans[0]["device_hours"] < high
    assert plans[0]["rate"] == pytest.approx(published_rate("A100").per_second)


def test_a_config_file_is_planned_by_its_own_formula(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"model_type": "llama"}')
    arguments = ("plan", tmp_path / "c.json", "--tokens", "1T", "--device", "A100", "--devices", 1024, "--length", 2048)
    found = json.loads(lmlab(*arguments, "--json")[1])
    seven = next(run for run in RUNS if run.name == "LLaMA 7B")
    assert found["operations"] == pytest.approx(seven.operations)
    out = done(lmlab(*arguments))
    assert "device-hours" in out


def test_a_mixture_is_planned_by_the_experts_that_a_token_uses(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"model_type": "mixtral"}')
    arguments = ("plan", tmp_path / "c.json", "--tokens", "1T", "--device", "A100", "--devices", 1024)
    found = json.loads(done(lmlab(*arguments, "--length", 2048, "--json")))
    assert 6 * 12.8e21 < found["operations"] < 8 * 12.9e21
    assert "laws of the loss are of models without experts" in " ".join(found["notes"])


def test_compute_and_loss_choose_size_and_text_by_a_law_that_is_named(lmlab: Lmlab) -> None:
    out = done(lmlab("plan", "--compute", "5.76e23", "--device", "H100", "--devices", 512))
    assert "Besiroglu" in out
    found = json.loads(
        lmlab("plan", "--loss", 2, "--law", "chinchilla", "--device", "H100", "--devices", 512, "--json")[1]
    )
    assert found["loss"]["chinchilla"] == pytest.approx(2.0, abs=1e-6)


def test_a_measured_rate_takes_the_place_of_published_ones(lmlab: Lmlab) -> None:
    found = json.loads(lmlab("plan", "--parameters", "1B", "--tokens", "1B", "--rate", "100T", "--json")[1])
    assert found["rate"] == 1e14
    assert found["sharding"] is None
    assert found["device_hours"] == pytest.approx(found["operations"] / 1e14 / 3600)


def test_speeds_that_differ_more_give_a_wider_interval() -> None:
    narrow, wide = timed_rate([100, 101, 99], ""), timed_rate([50, 200, 100], "")
    assert narrow.per_second == pytest.approx(100, rel=0.01)
    assert wide.times > narrow.times > 1


def test_steps_are_timed_until_there_are_enough() -> None:
    import torch

    calls: list[int] = []
    assert len(seconds_of_steps(lambda: calls.append(1), torch.device("cpu"), seconds=0.0)) == len(calls) - 3 >= 24


def test_a_run_of_steps_is_planned_by_its_own_steps(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmlab.costs.calibrate.TIMED_S", 0.0)
    out = done(lmlab("plan", "bigram", small_text, "--steps", 50, "--json"))
    found = json.loads(out)
    assert found["tokens"] == 50 * 32 * 64
    assert found["interval"][0] <= found["seconds"] <= found["interval"][1]


def test_a_run_that_would_diverge_is_not_planned(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmlab.costs.calibrate.TIMED_S", 0.0)
    arguments = ("plan", "bigram", small_text, "--steps", 50, "--learn", "learning_rate=1e30")
    refused(lmlab(*arguments), "plan-diverges", "below 1e+30")


def test_a_run_is_its_steps_and_what_it_does_between_them() -> None:
    alone = seconds_in_all(100, 20, 0.0, 0.0, 0.0)
    assert alone == 100
    assert seconds_in_all(80, 20, 1.0, 0.0, 0.5) == 80 + 20 + 5 * 0.5  # a checkpoint every 20 seconds
    # samples are cheap: one at every look
    assert seconds_in_all(100, 20, 0.0, 0.05, 0.0) == pytest.approx(100 + 20 * 0.05)
    with_samples = seconds_in_all(100, 20, 0.0, 1.0, 0.0)  # they are dear, and take no more than their share
    assert 100 < with_samples <= 100 * 1.02 + 1.0


def test_what_is_left_open_is_not_asked_for() -> None:
    asked = {"parameters": "7B", "tokens": "1T", "device": "A100", "devices": 1024}
    assert lab.plan(**asked, calibrate=None) == lab.plan(**asked)  # type: ignore[arg-type]


@pytest.mark.slow
def test_this_machine_can_be_timed(lmlab: Lmlab) -> None:
    out = done(lmlab("plan", "--parameters", "1M", "--tokens", "1M", "--calibrate", "--json"))
    assert json.loads(out)["device"] == "this machine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--parameters 7B --tokens 1T --device A100 --devices 0", "devices-below-one"),
        ("--parameters 70B --tokens 1T --device A100 --devices 8", "--devices 18 or more"),
        ("--parameters 1000T --tokens 1T --device A100", "fits-on-no-devices"),
        ("--parameters 7B --tokens 1T --device A10", "did you mean 'A100'"),
        ("--parameters 7B --tokens 1T", "name a --device"),
        ("--parameters 7B --device A100", "give --parameters"),
        ("--parameters -7 --tokens 1T --device A100", "--parameters"),
        ("--parameters seven --tokens 1T --device A100", "a number above 0"),
        ("--loss 1.5 --device A100", "loss-below-the-law"),
        ("--loss 2 --tokens 1T --device A100", "leave the other sizes out"),
        ("--compute 1e20 --law kaplan --device A100", "--law is one of"),
        ("--parameters 7B --tokens 1T --device A100 --calibrate", "leave --device and --rate out"),
        ("gpt --device A100", "say how much the model reads"),
        ("gpt --parameters 7B --tokens 1T --device A100", "parameters-beside-model"),
        ("gpt --steps 10", "give both"),
        ("gpt sotu --steps 10 --tokens 1T", "leave --tokens out"),
        ("gpt sotu --steps 10 --device A100", "plan-device-unknown"),
        ("gpt sotu --steps 0", "steps-below-one"),
        ("dan sotu --steps 10", "does not learn from plain text"),
        ("gpt --tokens 1T --device A100 --learn rows=8", "option-needs-steps"),
        ("gtp --tokens 1T --device A100", "did you mean 'gpt'"),
        ("gpt b.txt --steps 10 --vocab 5000", "vocab-beside-text"),
        ("--parameters 1B --tokens 1B --rate 1T --vocab 50", "--vocab is of a model"),
    ],
)
def test_what_cannot_be_planned_gets_one_line(lmlab: Lmlab, arguments: str, words: str) -> None:
    refused(lmlab("plan", *arguments.split()), words)


def test_every_device_has_a_peak_and_a_memory() -> None:
    assert all(device.peak > 1e13 and device.memory > 1e10 for device in DEVICES.values())


def test_a_rate_above_the_peak_of_the_device_is_refused(lmlab: Lmlab) -> None:
    asked = ["plan", "--parameters", "7B", "--tokens", "1T", "--device", "H100", "--rate", "5000T"]
    refused(lmlab(*asked), "rate-above-peak", "H100")
