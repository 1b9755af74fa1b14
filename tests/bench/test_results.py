"""Records of benchmarks, the page that is made from them, and the numbers in prose that come from them."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import make_results
import marks
import record as records
from record import Machine, Measurement, Record, Recorder

HELP = "run `make results`, or see CONTRIBUTING.md"


def a_record(**fields: object) -> Record:
    machine = Machine(processor="P", architecture="x86_64", cores=2, features=("amx",), gpu=None)
    made = Record(
        benchmark="speed", question="fast", date="2026-01-01", machine=machine, versions={}, command="c", commit="1",
        source=records.BENCHMARK, quick=False,
        measurements=(Measurement(key="step", what="a step", unit="ms", value=12.34, low=11.0, high=13.0),),
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


def recorder(folder: Path | None, quick: bool = False) -> Recorder:
    return Recorder("speed", "fast", argparse.Namespace(write=folder, quick=quick))


def test_a_record_is_written_after_every_measurement(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    made.add("memory", "peak memory", 2.5, "GB")
    made.compare("step", "a step", [1.0, 2.0, 1.0], [3.0, 3.0, 3.0], "s", peer="other", least=2.0)
    (path,) = tmp_path.glob("speed/*.json")
    assert records.read(path) == made.record
    memory, step = records.read(path).measurements
    assert (memory.value, memory.ratio) == (2.5, None)
    assert (step.ratio, step.low, step.high, step.repetitions, step.missed) == (3.0, 1.5, 3.0, 3, False)


def test_a_peer_of_which_more_is_better_is_divided_the_other_way() -> None:
    made = recorder(None)
    assert made.compare("rate", "a rate", [30.0], [10.0], "tokens/s", peer="other", more_is_better=True) == 3.0
    assert made.compare("time", "a time", [30.0], [10.0], "s", peer="other") == pytest.approx(1 / 3)


def test_quick_numbers_are_not_kept_among_the_results() -> None:
    with pytest.raises(SystemExit, match="--quick"):
        records.write(a_record(quick=True), records.RESULTS)


def test_the_newest_measurement_of_each_key_counts(tmp_path: Path) -> None:
    records.write(a_record(), tmp_path)
    other = Measurement(key="start", what="a start", unit="ms", value=1.0)
    records.write(a_record(date="2025-12-31", measurements=(other,)), tmp_path)
    by_hand = replace(a_record().measurements[0], value=99.0)
    records.write(a_record(source="by hand", measurements=(by_hand,)), tmp_path)
    found = records.newest("speed", tmp_path)
    assert {key: measured.value for key, (measured, _) in found.items()} == {"start": 1.0, "step": 12.34}


def test_the_machine_of_a_record_is_named() -> None:
    here = records.this_machine(None)
    assert here.processor
    assert here.cores >= 1
    assert here.slug == here.slug.lower()


def test_a_marked_number_becomes_that_of_its_record_at_the_precision_that_is_printed(tmp_path: Path) -> None:
    share = Measurement(key="share", what="a share", unit="", value=0.1234, low=0.1, high=0.2)
    records.write(a_record(measurements=(*a_record().measurements, share)), tmp_path)
    step, share, high = (f" <!-- results/speed#{key} -->" for key in ("step", "share", "step.high"))
    assert marks.refreshed(f"1.1{step} ms, 50%{share}", tmp_path) == f"12.3{step} ms, 12%{share}"
    assert marks.refreshed(f"9.00 [8.00, 9.99]{step}", tmp_path) == f"12.34 [11.00, 13.00]{step}"
    assert marks.refreshed(f"7{high}", tmp_path) == f"13{high}"


@pytest.mark.parametrize("mark", ["results/speed#none", "results/other#step", "results/speed#step.peer_value"])
def test_a_mark_without_a_measurement_is_refused(mark: str, tmp_path: Path) -> None:
    records.write(a_record(), tmp_path)
    with pytest.raises(LookupError):
        marks.refreshed(f"1.0 <!-- {mark} -->", tmp_path)


@pytest.mark.parametrize(
    "prose", ["2.5 times as fast", "it takes 12 s", "1.93 bits per byte", "saves 7%", "1,024 tokens/s", "0.887", "3 GB"]
)
def test_a_measurement_without_a_mark_is_found_in_prose_and_not_in_code(prose: str) -> None:
    assert [line for line, _ in marks.unmarked(f"Words.\nSo {prose}.", ())] == [2]
    assert not list(marks.unmarked(f"`{prose}`\n\n    {prose}\n\n```text\n{prose}\n```\n", ()))
    assert not list(marks.unmarked("2.5 <!-- results/speed#step.ratio --> times as fast", ()))
    assert list(marks.unmarked("3.0 <!-- results/speed#step --> and 2.5 times", ()))


def test_a_mark_that_stands_behind_no_number_is_found() -> None:
    assert [line for line, _ in marks.dangling("as many <!-- results/speed#step -->")] == [1]


@pytest.mark.parametrize("page", marks.pages(), ids=lambda page: page.name)
def test_numbers_in_prose_are_those_of_their_records(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not list(marks.dangling(text))
    assert marks.refreshed(text) == text, HELP


@pytest.mark.parametrize("page", marks.pages(), ids=lambda page: page.name)
def test_measurements_in_prose_are_marked(page: Path) -> None:
    found = [f"{page.name}:{line}: {number}" for line, number in marks.unmarked(page.read_text(encoding="utf-8"))]
    assert not found, f"mark these numbers, or allow them with a reason in bench/marks.py: {found}"


def test_every_allowed_number_stands_somewhere() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in marks.pages())
    assert [one.pattern for one in marks.ALLOWED if not re.search(one.pattern, text)] == []


def test_the_page_of_results_is_that_of_the_records_and_fits_its_length() -> None:
    made = make_results.page()
    assert make_results.PAGE.read_text(encoding="utf-8") == made, HELP
    assert made.count("\n") <= 150


def test_every_record_reads_and_answers_a_question() -> None:
    for path in sorted(records.RESULTS.glob("*/*.json")):
        found = records.read(path)
        assert found.question in records.QUESTIONS, path
        assert path == records.RESULTS / found.benchmark / path.name
        assert not found.quick, path
        assert json.loads(path.read_text(encoding="utf-8"))["measurements"], path


def test_a_chart_is_drawn_of_measurements_with_and_without_a_range() -> None:
    rows = [
        make_results.Row(found=replace(a_record().measurements[0], ratio=ratio, low=low, high=high), record=a_record())
        for ratio, low, high in ((2.0, 1.0, 3.0), (5.0, None, None))
    ]
    assert "<svg" in make_results.chart("fast", rows)
