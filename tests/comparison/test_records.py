"""A comparison goes on from its records: nothing finished is done again, and its page is that of an undisturbed one."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmlab as lab
from lmlab.comparison import compare, entry_store, run_comparison, work
from lmlab.comparison.entry_records import EntrySpec, MeasuredEntry, TextChoice, TrainedEntry
from lmlab.comparison.entry_store import EntryStore
from lmlab.comparison.findings import Findings
from lmlab.comparison.report import render
from lmlab.comparison.schedule import EntryState, State, next_step
from lmlab.comparison.score_found import Score
from lmlab.comparison.work import Shared, Task, attempt
from lmlab.hardware.openmp import set_threads
from lmlab.learn import loop
from lmlab.records import from_json
from lmlab.text.corpus import read
from mistakes import mistake
from processes import FORKED
from some_text import some_lines

TINY = {"bigram": {"width": 8, "embedding_width": 4}, "feedforward": {"width": 8, "context": 2, "embedding_width": 4}}
TIMES = {"seconds", "certificate_seconds", "tokens_per_second", "peak_memory_bytes"}
KILLS = 20


class Killed(BaseException):
    """As a kill is: nobody catches it."""


def timeless(value: Any) -> Any:
    """A document of findings without what a clock said, or how much memory a process held."""
    if isinstance(value, dict):
        return {key: 1.0 if key in TIMES else key != "reused" and timeless(item) for key, item in value.items()}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def page(folder: Path) -> str:
    """The page of a comparison, but for times."""
    return render(from_json(Findings, timeless(json.loads((folder / "comparison.json").read_text()))))


def asked(out: Path) -> dict[str, Any]:
    return {"out": out, "each": "12steps", "models": ["uniform", "bag"], "device": "cpu"}


def counting(patch: pytest.MonkeyPatch, done: Counter[str], place: Any, name: str, of: Callable[..., str]) -> None:
    honest = getattr(place, name)

    def counted(*given: Any, **named: Any) -> Any:
        done[f"{name} {of(*given)}"] += 1
        return honest(*given, **named)

    patch.setattr(place, name, counted)


def test_killed_after_every_single_record_it_does_nothing_twice_and_comes_to_the_same_page(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(small_text, **asked(tmp_path / "whole"))
    done: Counter[str] = Counter()
    counting(monkeypatch, done, work, "train", lambda model, *_: str(model))
    counting(monkeypatch, done, work, "measure_run", lambda run, *_: run.folder.name)
    counting(monkeypatch, done, run_comparison, "run_baselines", lambda *_: "")
    counting(monkeypatch, done, run_comparison, "mixed", lambda *_: "")
    honest = entry_store.write_atomically
    killed_at: list[str] = []

    def killed(path: Path, content: bytes) -> None:
        honest(path, content)
        if path.name not in ("plan.json", "comparison.json"):
            killed_at.append(f"{path.parent.name}/{path.name}")
            raise Killed

    out = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(entry_store, "write_atomically", killed)
        for _ in range(100):
            try:
                compare(small_text, **asked(out))
                break
            except Killed:
                assert not (out / "report.html").exists()
    of_each, of_all = ["spec", "trained", "measured", "look"], ["overlap", "baselines", "mix"]
    assert len(set(killed_at)) == len(killed_at) == 2 * len(of_each) + len(of_all), killed_at
    assert set(done.values()) == {1}, done
    assert page(out) == page(tmp_path / "whole")
    again = compare(small_text, **asked(out))
    assert set(done.values()) == {1}, done
    assert again.findings == from_json(Findings, json.loads((out / "comparison.json").read_text()))


def compare_until(text: str, out: str, cpu_s: float | None, environment: dict[str, str]) -> None:
    """Compare, and end without a word when this process has used so many seconds."""
    os.environ.update(environment)
    set_threads(1)
    loop.CHECKPOINT_EVERY_S = 0.0
    if cpu_s is not None:
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)  # which ends the process, wherever it is
        signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
    models = ["bag", "ngram", "bigram", "feedforward"]
    compare(text, out=out, each="300steps", models=models, seeds=2, device="cpu", settings=TINY)


def in_a_process(text: Path, out: Path, cpu_s: float | None) -> bool:
    """Whether it came to its end."""
    process = FORKED.Process(target=compare_until, args=(str(text), str(out), cpu_s, dict(os.environ)))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGVTALRM)
    return process.exitcode == 0


def records(out: Path) -> dict[Path, bytes]:
    """What is finished, with the times it took."""
    return {
        path: path.read_bytes()
        for path in out.glob("entries/*/*")
        if path.name in ("trained.json", "measured.json", "look.json")
    }


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of the process")
def test_killed_at_twenty_random_moments_it_does_nothing_finished_twice_and_comes_to_the_same_page(
    tmp_path: Path,
) -> None:
    text, whole = tmp_path / "text.txt", tmp_path / "whole"
    text.write_text(some_lines(400))
    assert in_a_process(text, whole, None)
    moments, kills, number = random.Random(0), 0, 0
    while kills < KILLS:
        out, finished = tmp_path / f"killed-{number}", False
        number += 1
        kept: dict[Path, bytes] = {}
        while not finished:
            finished = in_a_process(text, out, moments.uniform(0.05, 1.5) if kills < KILLS else None)
            kills += not finished
            assert kept.items() <= records(out).items()
            kept = records(out)
        assert page(out) == page(whole)


# --- what is next ---


def entry(name: str, **known: bool) -> EntryState:
    return EntryState(name=name, counts=name in ("bag", "ngram"), **known)


def planned(*entries: EntryState, timed: bool = True, **known: Any) -> list[tuple[str, tuple[str, ...]]]:
    """All steps from here to the end, each taken to succeed."""
    state, steps = State(entries=entries, timed=timed, to_mix=("char",), **known), []
    while (step := next_step(state)) is not None:
        steps.append((step.what, step.names))
        states = {one.name: one for one in state.entries}
        done = {"train": "trained", "measure": "measured", "look closely": "looked"}.get(step.what)
        for name in step.names if done else ():
            states[name] = EntryState(**{**vars(states[name]), str(done): True})
        state = State(
            **{
                **vars(state),
                "entries": tuple(states.values()),
                "time_planned": state.time_planned or step.what == "plan the time",
                "text_chosen": state.text_chosen or step.what == "choose the text",
                "has_baselines": state.has_baselines or step.what == "run the baselines",
                "to_mix": () if step.what == "mix" else state.to_mix,
            }
        )
    return steps


def test_in_a_budget_of_time_what_counts_comes_first_and_learners_one_by_one() -> None:
    what = [what for what, _ in planned(entry("bag"), entry("gpt"), entry("gru"))]
    begin = ["train", "measure", "plan the time", "train", "train", "choose the text", "run the baselines", "measure"]
    assert what == [*begin, "mix", "look closely"]


def test_in_a_budget_of_steps_everything_is_trained_at_once_and_no_clock_is_asked() -> None:
    steps = planned(entry("bag"), entry("gpt"), entry("gru"), timed=False, text_chosen=True)
    assert steps[1] == ("train", ("gpt", "gru"))
    assert not {"plan the time", "choose the text"} & {what for what, _ in steps}


def test_who_stops_the_training_sees_what_is_trained_measured_and_no_more() -> None:
    steps = planned(entry("bag", trained=True), entry("gpt"), hurry=True)
    assert steps == [("run the baselines", ()), ("measure", ("bag",)), ("look closely", ("bag",))]


def test_what_failed_holds_nobody_up() -> None:
    assert planned(entry("bag", failed=True)) == []
    assert ("train", ("gpt",)) not in planned(entry("bag"), entry("gpt", failed=True))


# --- what is kept ---


def task_of(text: Path, folder: Path, tokenizer: str) -> tuple[Task, Shared]:
    corpus = read(text)
    parts = {name: part.sha256 for name, part in corpus.parts.items()}
    spec = EntrySpec(
        name="e", model="ngram", tokenizer=tokenizer, text=parts, settings={"order": 2}, learning={},
        budget="1steps", seed=0, device="cpu",
    )  # fmt: skip
    choice = TextChoice(part="test", bytes=1500, history_bytes=64)
    task = Task(
        spec=spec, corpus=corpus.spec(), records=str(folder / "e"), run=str(folder / "r"), text=choice, keep_scores=True
    )
    return task, Shared(corpus=corpus)


@pytest.mark.parametrize("tokenizer", ["char", "words:20"])
def test_a_result_that_is_read_again_is_the_same_to_the_bit(small_text: Path, tmp_path: Path, tokenizer: str) -> None:
    small_text.write_text(some_lines(900))
    task, shared = task_of(small_text, tmp_path, tokenizer)
    store = EntryStore(Path(task.records), Path(task.run))
    shared.store_of = lambda _: store
    outcome = attempt(task, shared)
    assert not outcome.error
    assert task.text is not None
    text = shared.text(task.text)
    assert not text.everything
    made, again = store.result(text), EntryStore(store.records, store.run_folder).result(text)
    assert made is not again
    assert made.to_json() == again.to_json()
    for name in ("nats_per_token", "byte_ends", "spans"):
        assert np.array_equal(getattr(made.scored, name), getattr(again.scored, name))
    assert (made.interval, made.certificate) == (again.interval, again.certificate)
    (store.records / "scores.safetensors").write_bytes(b"other scores")
    with mistake("kept-scores-damaged"):
        EntryStore(store.records, store.run_folder).result(text)
    (store.records / "scores.safetensors").unlink()
    assert EntryStore(store.records, store.run_folder).measured is None  # so it is measured again


def test_a_run_that_was_trained_for_longer_since_is_no_longer_the_one_that_was_measured(
    small_text: Path, tmp_path: Path
) -> None:
    run = lab.train("bag", small_text, out=tmp_path / "run")
    store = EntryStore(tmp_path / "records", run.folder)
    sha256 = str(run.record.model.sha256)
    for trained_on in (sha256, "other weights"):
        store.write_trained(TrainedEntry(status="finished", weights_sha256=trained_on, seconds=1.0))
        choice = TextChoice(part="test", bytes=1, history_bytes=0)
        store.write_measured(
            MeasuredEntry(weights_sha256=sha256, text=choice, read_sha256="", result=Score({}), seconds=1.0)
        )
        is_same = trained_on == sha256
        assert (store.trained is not None, store.measured is not None) == (is_same, is_same)


def test_a_damaged_record_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text("{")
    with mistake("comparison-record-damaged"):
        _ = EntryStore(tmp_path, tmp_path / "run").spec


@pytest.mark.slow  # processes begin with an import of torch
def test_a_comparison_in_steps_runs_in_processes_and_one_in_seconds_does_not(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmlab.comparison.executors.processes.get_context", lambda method: FORKED)
    found = compare(small_text, **asked(tmp_path / "out"), executor="processes:2")
    assert {e.status for e in found.entries} == {"ranked"}
    with mistake("executor-beside-time"):
        compare(small_text, out=tmp_path / "timed", executor="processes:2")
    with mistake("executor-unknown"):
        compare(small_text, out=tmp_path / "other", executor="abacus")
