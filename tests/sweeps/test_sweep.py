"""The sweep: one row a cell, intervals over seeds, the same numbers wherever it runs, and no failure that spreads."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import lmlab as lab
from command_line import refused
from lmlab.comparison import work
from lmlab.comparison.entry_records import MeasuredEntry, TextChoice, TrainedEntry
from lmlab.comparison.executors import processes
from lmlab.comparison.executors.here import Here
from lmlab.comparison.executors.processes import Processes
from lmlab.comparison.executors.ray_cluster import RayCluster
from lmlab.comparison.score_found import Score
from lmlab.comparison.work import Outcome, Task, attempt
from lmlab.config import Mistake
from lmlab.measure.seeds import mean_and_margin
from lmlab.measure.spread_sample import everything
from lmlab.measure.student import t_quantile
from lmlab.sweeps import run_sweep
from lmlab.sweeps.best_cell import best_by_validation
from lmlab.sweeps.differences import differences
from lmlab.sweeps.grid import Point, grid, specs_of
from lmlab.sweeps.run_sweep import history_for, run_tasks, tasks_of
from lmlab.sweeps.table import Cell, collect
from lmlab.text.corpus import read
from mistakes import mistake
from processes import FORKED, THIS_CODE
from some_text import some_lines
from thinning import thinned

Lmlab = Callable[..., tuple[int, str, str]]
TINY = ["--set", "width=16", "--budget", "3steps"]
GRID = ["--over", "layers=1,2", "--over", "context=3,5"]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs are made in this process, which is faster than starting others; the list says which."""
    names: list[str] = []

    def here(_: Processes, tasks: Sequence[Task], work: Callable[[Task], Outcome]) -> Iterator[Outcome]:
        for task in tasks:
            names.append(task.spec.name)
            yield work(task)

    monkeypatch.setattr(Processes, "run", here)
    return names


def tasks_for(
    text: Path, out: Path, over: tuple[str, ...] = ("context=3,5",), seeds: int = 2
) -> tuple[dict[str, Point], list[Task]]:
    """The points of a tiny sweep by the names of its runs, and its tasks."""
    corpus, points = read(text), grid("gpt", over)
    asked: dict[str, Any] = {"fixed": {"layers": 1, "width": 16}, "tokenizer": "char", "budget": "3steps"}
    runs = specs_of("gpt", corpus, points, seeds=seeds, **asked)
    tasks = tasks_of([spec for _, spec in runs.values()], corpus, out.resolve(), history_for(corpus, []))
    return {name: point for name, (point, _) in runs.items()}, tasks


def numbers(found: dict[str, Outcome]) -> dict[str, tuple[float, float, int]]:
    return {
        name: (one.token_perplexity, one.bits_per_byte, one.result.parameters)
        for name, outcome in found.items()
        if (one := outcome.measured) is not None
    }


def outcome_of(
    task: Task, perplexity: float, bits: float = 3.0, valid: float | None = None, status: str = "finished"
) -> Outcome:
    """As if a run had come to these numbers."""
    document = {
        "bits_per_byte": bits,
        "perplexity": {"token": perplexity},
        "model": {"parameters": 1},
        "data": {"part": "test", "bytes": 1, "sha256": "", "measured": {"sentence": ""}},
        "certificate": {},
        "certificate_details": {},
    }
    measured = MeasuredEntry(
        weights_sha256="w",
        text=TextChoice(part="test", bytes=1, history_bytes=0),
        read_sha256="",
        result=Score(document),
        seconds=0.0,
        validated=valid is not None,
        valid_bits_per_byte=valid,
    )
    return Outcome(task=task, trained=TrainedEntry(status=status, weights_sha256="w", seconds=0.0), measured=measured)


def test_the_table_has_a_row_a_cell_with_mean_interval_and_parameters(
    lmlab: Lmlab, ran: list[str], small_text: Path
) -> None:
    command = ["sweep", "gpt", small_text, *GRID, "--seeds", 2, *TINY, "--out", "s"]
    code, out, err = lmlab(*command, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert [c["settings"] for c in document["cells"]] == [
        {"layers": layers, "context": context} for layers in (1, 2) for context in (3, 5)
    ]
    part = read(small_text).test
    said = everything(part).sentence
    for cell in document["cells"]:
        assert cell["measured"] == {"part": "test", "bytes": part.bytes, "sha256": part.sha256, "sentence": said}
        assert cell["seeds"] == [0, 1]
        assert len(set(cell["bits_per_byte"])) == 2  # seeds differ
        assert cell["mean"] == pytest.approx(np.mean(cell["bits_per_byte"]))
        spread = np.std(cell["bits_per_byte"], ddof=1) / math.sqrt(2)
        assert cell["margin"] == pytest.approx(12.7062 * spread, rel=1e-4)
    code, out, _ = lmlab(*command)
    assert code == 0
    for cell in document["cells"]:
        assert cell["unit"] == "bits per byte"
        shown = f"{cell['mean']:.4f} ± {cell['margin']:.4f}"
        row = next(line for line in out.splitlines() if shown in line)
        assert f"{cell['parameters']:,}" in row
    assert f"{part.bytes:,} test bytes" in out
    assert said in " ".join(out.split())
    assert out.count("layers 1 → 2 at context=") == 2
    assert out.count("context 3 → 5 at layers=") == 2


@pytest.mark.parametrize(("positions", "depends"), [("sinusoidal", False), ("learned", True)])
def test_parameters_depend_on_the_context_for_learned_positions_only(
    lmlab: Lmlab, ran: list[str], small_text: Path, positions: str, depends: bool
) -> None:
    fixed = ["--set", f"positions={positions}", "--seeds", 1, *TINY, "--json"]
    code, out, err = lmlab("sweep", "gpt", small_text, *GRID, *fixed)
    assert code == 0, err
    found = {(c["settings"]["layers"], c["settings"]["context"]): c["parameters"] for c in json.loads(out)["cells"]}
    for layers in (1, 2):
        assert found[layers, 5] - found[layers, 3] == (2 * 16 if depends else 0)
    assert found[2, 3] > found[1, 3]


@pytest.mark.slow
def test_two_processes_give_the_same_numbers_as_one(small_text: Path, tmp_path: Path) -> None:
    _, tasks = tasks_for(small_text, tmp_path / "side by side", seeds=1)
    _, same = tasks_for(small_text, tmp_path / "one by one", seeds=1)
    assert numbers(run_tasks(tasks, Processes(2))) == numbers(run_tasks(same, Here()))


@pytest.mark.slow
def test_a_local_ray_gives_the_same_numbers(small_text: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs ray: pip install 'lmlab[ray]'")
    _, here = tasks_for(small_text, tmp_path / "here")
    points, there = tasks_for(small_text, tmp_path / "there")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ray's own
        found = run_tasks(there, RayCluster("local"))
    assert numbers(found) == numbers(run_tasks(here, Here()))
    assert [len(cell.seeds) for cell in collect(points, found)] == [2, 2]


def test_a_failed_cell_is_reported_and_the_rest_goes_on(lmlab: Lmlab, ran: list[str], small_text: Path) -> None:
    command = [
        "sweep",
        "gpt",
        small_text,
        "--over",
        "heads=1,3",
        "--set",
        "layers=1",
        "--seeds",
        2,
        *TINY,
        "--out",
        "s",
    ]
    code, out, err = lmlab(*command)
    assert code == 1
    assert "2 of 4 runs failed" in err
    assert "heads=3-seed0: failed: width" in err
    assert "failed: width 16 is not a multiple of heads 3" in out
    assert " ± " in next(line for line in out.splitlines() if line.startswith("1 "))
    assert Path("s/sweep.svg").exists()
    ran.clear()
    code, out, _ = lmlab(*command, "--json")
    assert code == 1
    assert ran == ["heads=3-seed0", "heads=3-seed1"]  # failures are tried again, what finished is not
    good, bad = json.loads(out)["cells"]
    assert (len(good["perplexity"]), good["errors"]) == (2, [])
    assert (bad["perplexity"], bad["mean"], len(bad["errors"])) == ([], None, 2)


def test_a_cell_that_diverged_has_no_number(lmlab: Lmlab, ran: list[str], small_text: Path) -> None:
    command = ["sweep", "gru", small_text, "--over", "learning_rate=0.001,1e9", "--seeds", 1, *TINY, "--out", "s"]
    code, out, err = lmlab(*command)
    assert code == 1
    assert "failed: diverged" in out
    assert "1 of 2 runs failed" in err


def test_a_sweep_where_every_cell_fails_still_says_why(lmlab: Lmlab, ran: list[str], small_text: Path) -> None:
    code, out, err = lmlab("sweep", "gpt", small_text, "--over", "heads=3,5", "--seeds", 1, *TINY)
    assert code == 1
    assert "2 of 2 runs failed" in err
    assert out.count("not a multiple of heads") == 2
    assert (
        "No best cell is named: none came to its end with every seed." in out
    )  # and not for want of a validation part


def test_one_seed_is_said_to_tell_nothing_of_luck_and_has_no_intervals(
    lmlab: Lmlab, ran: list[str], small_text: Path
) -> None:
    code, out, err = lmlab("sweep", "gpt", small_text, "--over", "context=4,8", "--seeds", 1, *TINY)
    assert code == 0, err
    assert "which one seed cannot tell from luck" in out
    assert "Intervals" not in out


def test_a_device_that_there_is_not_is_refused_before_anything_runs(
    lmlab: Lmlab, ran: list[str], small_text: Path
) -> None:
    command = ["sweep", "ngram", small_text, "--over", "order=2,3", "--device", "gpu", "--out", "sweep"]
    refused(lmlab(*command), "device-unknown", "got 'gpu'")
    assert ran == []
    assert not Path("sweep").exists()


def dies_at_seed_one(task: Task) -> Outcome:
    if task.spec.seed == 1:
        os._exit(9)
    return outcome_of(task, float(task.spec.seed))


def test_a_process_that_is_killed_costs_its_own_cell_only(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "get_context", lambda method: FORKED)  # five processes, and one import of torch
    _, tasks = tasks_for(small_text, tmp_path, over=("context=3",), seeds=3)
    found = {outcome.task.spec.seed: outcome for outcome in Processes(2).run(tasks, dies_at_seed_one)}
    assert "process died" in found.pop(1).error
    measured = {seed: outcome.measured for seed, outcome in found.items()}
    assert {seed: one and one.token_perplexity for seed, one in measured.items()} == {0: 0.0, 2: 2.0}


@pytest.mark.slow
def test_a_plain_script_may_sweep_and_is_not_run_again_by_its_processes(small_text: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import lmlab\nprint('begins')\nover = {'tokenizer': ['byte', 'char']}\n"
        f"found = lmlab.sweep('bag', {str(small_text)!r}, over=over, out={str(tmp_path / 's')!r})\n"
        "print(len(found.cells), __file__ is not None)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "begins\n2 True\n"), done.stderr


class Idle(Here):
    """An executor that is to have nothing to do."""

    def run(self, tasks: Sequence[Task], work: object) -> Iterator[Outcome]:
        assert not tasks
        return iter(())


def test_finished_cells_are_not_run_again_and_an_unfinished_one_is(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, tasks = tasks_for(small_text, tmp_path / "s")
    first = numbers(run_tasks(tasks, Here()))
    assert numbers(run_tasks(tasks, Idle())) == first
    (Path(tasks[2].records) / "measured.json").unlink()  # as if it had been killed before its end
    with monkeypatch.context() as patch:
        patch.setattr(work, "train", None)  # it is measured, and not trained again
        assert numbers(run_tasks(tasks, Here())) == first
    (Path(tasks[1].records) / "trained.json").unlink()
    assert numbers(run_tasks(tasks, Here())) == first
    points, more = tasks_for(small_text, tmp_path / "s", seeds=3)
    assert [cell.seeds for cell in collect(points, run_tasks(more, Here()))] == [[0, 1, 2]] * 2


def test_a_folder_that_is_called_like_a_cell_is_never_cleared_away(small_text: Path, tmp_path: Path) -> None:
    _, tasks = tasks_for(small_text, tmp_path / "s")
    mine = Path(tasks[0].records)
    mine.mkdir(parents=True)
    (mine / "thesis.txt").write_text("years of work")
    with mistake("sweep-attempt-unknown"):
        run_tasks(tasks, Here())
    assert (mine / "thesis.txt").read_text() == "years of work"


def test_a_sweep_is_measured_on_bytes_spread_over_the_documents(
    ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_sweep, "TEST_BYTES", 4000)
    texts = tmp_path / "texts"
    texts.mkdir()
    for document in range(20):
        (texts / f"{document:02}.txt").write_text(some_lines(200, seed=document))
    over = {"layers": [1, 2]}
    small = {"width": 16, "context": 4}
    found = lab.sweep("gpt", texts, over=over, out=tmp_path / "s", seeds=1, budget="3steps", settings=small)
    first, second = (cell.measured for cell in found.cells)
    assert first == second
    assert first is not None
    assert first.bytes < 8000
    assert "stretches, spread evenly over" in first.sentence


def test_results_that_were_measured_on_other_bytes_are_not_mixed_in(
    ran: list[str], small_text: Path, tmp_path: Path
) -> None:
    settings = {"width": 16, "context": 4}
    lab.sweep("gpt", small_text, over=["layers=1"], out=tmp_path / "s", seeds=1, budget="3steps", settings=settings)
    kept = next((tmp_path / "s").glob("*/measured.json"))
    found = json.loads(kept.read_text())
    found["result"]["data"]["bytes"] = 100
    kept.write_text(json.dumps(found))
    with pytest.raises(Mistake, match="measured on other bytes"):
        lab.sweep(
            "gpt", small_text, over=["layers=1,2"], out=tmp_path / "s", seeds=1, budget="3steps", settings=settings
        )


def test_a_folder_with_results_of_other_settings_is_refused(lmlab: Lmlab, ran: list[str], small_text: Path) -> None:
    command = ["sweep", "gpt", small_text, "--over", "context=3", "--seeds", 1, "--out", "s", *TINY]
    assert lmlab(*command)[0] == 0
    code, out, err = lmlab(*command, "--set", "layers=2")
    assert (code, out) == (2, "")
    assert "--out" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--over", "layer=2,4"], ["'layers'"]),
        (["--over", "layers"], ["layers=2,4"]),
        (["--over", "layers="], ["layers=2,4"]),
        (["--over", "layers=2,,4"], ["layers=2,4"]),
        (["--over", "layers=2,four"], ["whole number"]),
        (["--over", "layers=2,2"], ["once"]),
        (["--over", "layers=2", "--over", "layers=4"], ["once"]),
        (["--over", "layers=2,4", "--budget", "30s"], ["300steps"]),
        (["--over", "layers=2,4", "--seeds", "0"], ["--seeds"]),
        (["--over", "layers=2,4", "--set", "widht=2"], ["'width'"]),
        (["--over", "learning_rat=0.1"], ["'learning_rate'"]),
        (["--over", "learning_rate=0,0.1"], ["above 0"]),
        (["--over", "tokenizer=char,bqe:300"], ["bpe:N"]),
        (["--over", "tokenizer=char", "--tokenizer", "byte"], ["--tokenizer", "--over"]),
        (["--over", "learning_rate=0.1", "--learn", "learning_rate=0.2"], ["--learn", "--over"]),
        (["--over", "seed=1,2"], ["--seeds"]),
        (["--over", "budget=3steps,4steps"], ["--budget"]),
    ],
)
def test_a_bad_axis_is_one_line_that_says_what_would_be_right(
    lmlab: Lmlab, small_text: Path, arguments: list[str], words: list[str]
) -> None:
    code, out, err = lmlab("sweep", "gpt", small_text, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lmlab: ")
    assert err.count("\n") == 1
    assert all(word in err for word in words)
    assert not Path("runs").exists()


@pytest.mark.slow
def test_a_large_planted_difference_is_called_real(lmlab: Lmlab, ran: list[str], small_text: Path) -> None:
    """One word of history cannot know what three know; sixty steps show it with every seed."""
    settings = ["--set", "width=32", "--set", "embedding_width=16", "--budget", "60steps"]
    code, out, err = lmlab("sweep", "feedforward", small_text, "--over", "context=1,3", "--seeds", 3, *settings)
    assert code == 0, err
    line = next(line for line in out.splitlines() if line.startswith("context 1 → 3: -"))
    assert line.endswith(" bits per byte, real")


def cell(setting: int, values: list[float], seeds: list[int] | None = None) -> Cell:
    seeds = list(range(len(values))) if seeds is None else seeds
    given: dict[str, Any] = {"parameters": 1, "bits_per_byte": values, "measured": None, "errors": []}
    return Cell(settings={"layers": setting}, seeds=seeds, perplexity=values, **given)


def test_noise_of_seeds_is_called_real_in_about_one_sweep_of_twenty() -> None:
    draws = np.random.Generator(np.random.PCG64(0)).normal(8.0, 0.1, size=(1000, 4, 4))
    wrong = sum(any(d.real for d in differences([cell(i, list(c)) for i, c in enumerate(s)])) for s in draws)
    assert 10 <= wrong <= 70  # at most 50 are expected, fewer as the six differences of four cells are not independent


def test_seeds_are_paired_by_their_number_even_where_some_failed() -> None:
    base = {0: 5.0, 1: 9.0, 2: 7.0, 3: 6.0}
    a = cell(2, [base[s] for s in (0, 1, 3)], [0, 1, 3])
    b = cell(4, [base[s] - 1.0 - 0.001 * s for s in (0, 2, 3)], [0, 2, 3])
    (found,) = differences([a, b])
    assert found.seeds == [0, 3]
    assert found.difference == pytest.approx(-1.0015)
    assert found.real


def test_one_seed_tells_no_difference_apart() -> None:
    (found,) = differences([cell(2, [5.0]), cell(4, [1.0])])
    assert math.isnan(found.margin)
    assert not found.real


def test_an_infinite_perplexity_is_no_difference_and_no_crash() -> None:
    (found,) = differences([cell(2, [5.0, math.inf]), cell(4, [1.0, 2.0])])
    assert not found.real
    assert mean_and_margin([5.0, math.inf])[0] == math.inf


@pytest.mark.parametrize(
    ("freedom", "level", "published"),
    [(1, 0.95, 12.706), (2, 0.95, 4.303), (3, 0.95, 3.182), (10, 0.95, 2.228), (30, 0.95, 2.042), (3, 0.99, 5.841),
     (1, 0.999, 636.62), (7, 0.998, 4.785)],
)  # fmt: skip
def test_student_t_agrees_with_the_printed_tables(freedom: int, level: float, published: float) -> None:
    assert t_quantile(freedom, level) == pytest.approx(published, rel=3e-4)


@pytest.mark.slow
def test_the_picture_shows_every_cell_and_seed(lmlab: Lmlab, ran: list[str], small_text: Path) -> None:
    assert lmlab("sweep", "gpt", small_text, *GRID, "--seeds", 2, *TINY, "--out", "s")[0] == 0
    picture = Path("s/sweep.svg").read_text()
    ElementTree.fromstring(picture)
    for layers in (1, 2):
        for context in (3, 5):
            assert f">layers={layers}, context={context}</text>" in picture
    assert "dots: seeds; diamonds: means with 95% intervals" in picture
    assert lmlab("sweep", "ngram", small_text, "--over", "order=1,3", "--out", "t")[0] == 0
    counted = Path("t/sweep.svg").read_text()
    assert ">bits per byte</text>" in counted  # one number a cell: neither seeds nor intervals
    assert "intervals" not in counted


@pytest.mark.slow
def test_python_sweeps_as_the_command_does(lmlab: Lmlab, ran: list[str], small_text: Path, tmp_path: Path) -> None:
    told: list[str] = []
    found = lab.sweep(
        "gpt",
        small_text,
        over={"context": [3, 5]},
        settings={"layers": 1, "width": 16},
        seeds=2,
        budget="3steps",
        out=tmp_path / "python",
        watch=lambda outcome: told.append(outcome.name),
    )
    assert told == ran == [f"context={context}-seed{seed}" for context in (3, 5) for seed in (0, 1)]
    assert found.figure.exists()
    again = ["--over", "context=3,5", "--set", "layers=1", "--seeds", 2, *TINY, "--out", "command", "--json"]
    document = json.loads(lmlab("sweep", "gpt", small_text, *again)[1])
    assert document["cells"] == json.loads(json.dumps(found.to_json()["cells"]))
    assert document["differences"] == json.loads(json.dumps(found.to_json()["differences"]))


@pytest.mark.slow
def test_learning_rate_batch_optimizer_and_tokenizer_are_axes_too(
    lmlab: Lmlab, ran: list[str], small_text: Path
) -> None:
    axes = ["--over", "learning_rate=0.001,0.02", "--over", "rows=2", "--over", "optimizer=adamw"]
    code, out, err = lmlab("sweep", "gpt", small_text, *axes, "--seeds", 1, *TINY, "--out", "s", "--json")
    assert code == 0, err
    slow, fast = json.loads(out)["cells"]
    assert slow["settings"] == {"learning_rate": 0.001, "rows": 2, "optimizer": "adamw"}
    assert slow["perplexity"] != fast["perplexity"]
    record = lab.load(f"s/{ran[1]}/run").record.training
    assert record.learning == {"learning_rate": 0.02, "rows": 2, "optimizer": "adamw"}
    crossed = ["sweep", "gpt", small_text, "--over", "tokenizer=char,bpe:280", "--seeds", 2, *TINY, "--learn", "rows=2"]
    code, out, err = lmlab(*crossed)
    assert code == 0, err
    assert out.startswith("bits per byte of")  # perplexities per token of two tokenizers cannot be compared
    assert "perplexity" not in out
    line = next(line for line in out.splitlines() if line.startswith("tokenizer char → bpe:280: "))
    assert " bits per byte, " in line
    document = json.loads(lmlab(*crossed, "--json")[1])
    assert [found["unit"] for found in (document, *document["cells"], *document["differences"])] == [
        "bits per byte"
    ] * 4
    for cell in document["cells"]:
        assert cell["mean"] == pytest.approx(np.mean(cell["bits_per_byte"]))


def test_the_best_cell_is_chosen_by_validation_and_never_by_test() -> None:
    good_test = cell(2, [1.0, 1.0]), [3.0, 3.2]
    good_valid = cell(4, [9.0, 9.0]), [2.0, 2.1]
    unknown = cell(6, [0.5, 0.5]), []
    cells = [dataclasses.replace(c, valid_bits_per_byte=valid) for c, valid in (good_test, good_valid, unknown)]
    assert best_by_validation(cells) is cells[1]
    assert best_by_validation([cells[2]]) is None
    failed = dataclasses.replace(cells[1], errors=["one seed failed"])
    assert best_by_validation([cells[0], failed]) is cells[0]


def test_the_number_that_chooses_is_of_the_validation_part(lmlab: Lmlab, ran: list[str], small_text: Path) -> None:
    code, out, err = lmlab("sweep", "ngram", small_text, "--over", "order=1,3", "--out", "s", "--json")
    assert code == 0, err
    found = json.loads(out)
    run = lab.load(f"s/{ran[1]}/run")
    assert found["cells"][1]["valid_bits_per_byte"] == [pytest.approx(lab.evaluate(run, part="valid").bits_per_byte)]
    assert found["best"] == {"order": 3}
    code, out, _ = lmlab("sweep", "ngram", small_text, "--over", "order=1,3", "--split", "90,0,10", "--out", "t")
    assert code == 0
    assert "No best cell is named: there is no validation part" in out


def test_cells_whose_validation_reads_the_same_tie(lmlab: Lmlab, ran: list[str], small_text: Path) -> None:
    command = ["sweep", "ngram", small_text, "--over", "k=0.01,0.02", "--over", "order=1,3", "--out", "s"]
    code, out, err = lmlab(*command)
    assert code == 0, err
    best = next(line for line in out.splitlines() if line.startswith("Best by validation"))
    assert ": k=0.01, order=3 and k=0.02, order=3, which tie at " in best  # k is for another smoothing
    assert "k 0.01 → 0.02 at order=3: +0.0000 bits per byte, a tie on this text" in out
    assert json.loads(lmlab(*command, "--json")[1])["tied"] == [{"k": 0.02, "order": 3}]


def test_a_model_that_counts_is_trained_once_a_cell_and_no_luck_is_claimed(
    lmlab: Lmlab, ran: list[str], small_text: Path
) -> None:
    code, out, err = lmlab("sweep", "ngram", small_text, "--over", "order=1,3", "--seeds", 3)
    assert code == 0, err
    assert ran == ["order=1-seed0", "order=3-seed0"]
    assert "the same with every seed, since ngram counts" in out
    line = next(line for line in out.splitlines() if line.startswith("order 1 → 3: "))
    assert line.endswith("on this text; counting leaves nothing to luck")
    assert " ± " not in out


def test_a_sweep_that_is_stopped_shows_what_there_is_and_goes_on(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["sweep", "ngram", small_text, "--over", "order=1,2", "--out", "s"]

    def stopped(_: Processes, tasks: Sequence[Task], work: object) -> Iterator[Outcome]:
        yield attempt(tasks[0])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Processes, "run", stopped)
        code, out, err = lmlab(*command)
    assert code == 130
    assert "no turn yet" in out
    assert "stopped; 1 of 2 runs had no" in err
    monkeypatch.setattr(Processes, "run", Here.run)
    code, out, err = lmlab(*command)
    assert (code, err.count("bits per byte")) == (0, 1), err
    assert "no turn" not in out


def test_the_best_of_a_sweep_that_was_stopped_is_among_the_cells_that_had_every_seed(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_: Processes, tasks: Sequence[Task], work: object) -> Iterator[Outcome]:
        for task, valid in zip(tasks, (3.0, 3.0, 2.0), strict=False):
            yield outcome_of(task, 5.0, valid=valid)
        raise KeyboardInterrupt

    monkeypatch.setattr(Processes, "run", stopped)
    code, out, err = lmlab("sweep", "gpt", small_text, "--over", "layers=1,2", "--seeds", 2, *TINY, "--out", "s")
    assert code == 130, err
    assert "Best by validation, in bits per byte (the test part has no say in it): layers=1\n" in out
    assert "3.0000 (1 still to come)" in out


def test_a_cell_that_diverged_after_it_had_learned_says_so(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverged(_: Processes, tasks: Sequence[Task], work: object) -> Iterator[Outcome]:
        for task in tasks:
            yield outcome_of(task, 5.0, status="diverged" if task.spec.settings["layers"] == 2 else "finished")

    monkeypatch.setattr(Processes, "run", diverged)
    code, out, err = lmlab("sweep", "gpt", small_text, "--over", "layers=1,2", "--seeds", 1, *TINY, "--out", "s")
    assert code == 0, err
    assert out.count("3.0000 (1 diverged)") == 1
    assert "measured with the best weights before that" in out


def test_what_is_infinite_is_so_when_the_sweep_goes_on(lmlab: Lmlab, ran: list[str]) -> None:
    Path("letters.txt").write_text("".join(random.Random(3).choices("abcdefgh ", k=4000)))
    command = ["sweep", "ngram", "letters.txt", "--over", "order=5,6", "--set", "smoothing=ml", "--out", "s"]
    first = lmlab(*command)
    assert first[0] == 0, first[2]
    assert "inf" in first[1]
    assert "No best cell is named: every one holds some of the validation part impossible." in first[1]
    assert "order 5 → 6: no difference to tell, as both are infinite" in first[1]
    again = lmlab(*command)
    assert again[:2] == first[:2], again[2]
    assert len(ran) == 2


def test_the_number_that_chooses_is_calibrated_where_the_weights_are(
    ran: list[str], small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmlab.learn.next_token.TIMES_READ", 0)
    asked: dict[str, Any] = {"settings": {"width": 16}, "seeds": 1, "budget": "40steps"}
    found = lab.sweep("feedforward", small_text, over=["context=3"], out=tmp_path / "s", **asked)
    run = lab.load(tmp_path / "s" / ran[0] / "run")
    assert run.record.result.calibrated is not None
    assert found.cells[0].valid_mean == pytest.approx(lab.evaluate(run, part="valid").bits_per_byte)


def test_before_a_stretch_as_much_is_read_as_the_longest_window_holds(small_text: Path) -> None:
    corpus = read(small_text)
    short, long = {"tokenizer": "byte", "context": 8}, {"tokenizer": "byte", "context": 3000}
    assert history_for(corpus, [{"tokenizer": "byte"}, short]) == 2048
    assert history_for(corpus, [short, long]) >= 3000
    assert history_for(corpus, [{**long, "tokenizer": "words"}]) > 2 * history_for(corpus, [long])


STAYING = """
import threading
from lmlab.comparison.entry_records import EntrySpec
from lmlab.comparison.executors.processes import Processes
from lmlab.comparison.work import Task

def stay(task):
    print("working", flush=True)
    threading.Event().wait()

if __name__ == "__main__":
    asked = dict(model="bag", tokenizer="char", text={}, settings={}, learning={}, budget="1steps", seed=0, device="cpu")
    list(Processes(1).run([Task(spec=EntrySpec(name="x", **asked), corpus={}, records="x", run="x")], stay))
"""


@pytest.mark.parametrize("how", thinned([signal.SIGTERM, signal.SIGKILL], [signal.SIGKILL]))
def test_the_processes_of_a_sweep_end_with_it(tmp_path: Path, how: int) -> None:
    (tmp_path / "staying.py").write_text(STAYING)
    process = subprocess.Popen(
        [sys.executable, "staying.py"],
        cwd=tmp_path,
        env=os.environ | THIS_CODE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"working\n"
    process.send_signal(how)
    assert process.communicate(timeout=120)[0] == b""  # which comes when no one has the pipe open any more
