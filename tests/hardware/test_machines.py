"""Machines that are not this one, simulated: the right choices are made on each, and nothing fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import lmlab
from lmlab.config import Note
from lmlab.hardware import choice, kept_figures, memory, precision, rates, report, threads
from lmlab.hardware.kept_figures import Rate, thread_counts
from mistakes import mistake

GIGA = 1e9
Speed = Callable[[torch.dtype, int], float]  # of products, by precision and threads


@pytest.fixture(autouse=True)
def nothing_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "cache"))
    kept_figures.forget()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A machine whose products run as fast as a function says."""

    def simulate(speed: Speed, *, request_s: float = 3e-6, crawling: bool = False, threads: int = 2) -> None:
        held = {"threads": threads}
        monkeypatch.setattr(torch, "get_num_threads", lambda: held["threads"])
        monkeypatch.setattr(torch, "set_num_threads", lambda n: held.update(threads=n))
        monkeypatch.setattr(rates, "product_flops", lambda device, dtype: speed(dtype, held["threads"]))
        monkeypatch.setattr(rates, "iteration_flops", lambda device, dtype: speed(dtype, held["threads"]))
        monkeypatch.setattr(rates, "crawls", lambda device, dtype: crawling)
        monkeypatch.setattr(rates, "copy_bytes_per_s", lambda device: 1e10)
        monkeypatch.setattr(rates, "request_s", lambda device: request_s)

    return simulate


def scaling(float32: float, bf16: float) -> Speed:
    return lambda dtype, threads: threads * GIGA * (bf16 if dtype == torch.bfloat16 else float32)


def test_units_for_bf16_are_used(machine: Callable[..., None]) -> None:
    machine(scaling(float32=100, bf16=400))
    chosen = choice.choose("cpu")
    assert (chosen.dtype, chosen.iteration_dtype) == (torch.bfloat16, torch.bfloat16)
    assert chosen.flops == 800 * GIGA
    assert str(chosen) == "cpu, bf16, 2 threads"


@pytest.mark.parametrize("bf16", [0.5, 90, 120])
def test_bf16_that_is_slow_or_hardly_faster_is_left_alone(machine: Callable[..., None], bf16: float) -> None:
    machine(scaling(float32=100, bf16=bf16))
    assert choice.choose("cpu").dtype == torch.float32


def test_where_bf16_crawls_neither_products_nor_the_iteration_use_it(machine: Callable[..., None]) -> None:
    machine(scaling(float32=10, bf16=1e6), crawling=True)  # the figure is never asked for
    chosen = choice.choose("cpu")
    assert (chosen.dtype, chosen.iteration_dtype) == (torch.float32, torch.float32)
    with pytest.warns(Note, match="hundreds of times slower"):
        assert choice.choose("cpu", "bf16").dtype == torch.bfloat16  # who asks for it gets it
    words = [c.why for c in report.about_machine().choices if "precision" in c.what]
    assert all("no units" in why for why in words)


def test_a_device_that_takes_longer_to_ask_than_to_multiply_is_timed_where_it_multiplies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the size of a small model's matrices both precisions would seem equally fast: what asking takes."""
    asking_s, speed = 7e-6, {torch.float32: 4e13, torch.bfloat16: 7e14}
    monkeypatch.setattr(rates, "request_s", lambda device: asking_s)

    def seconds(flops: float) -> Callable[[torch.device, torch.dtype, int], float]:
        return lambda device, dtype, scale: asking_s + flops * scale**3 / speed[dtype]

    monkeypatch.setattr(rates, "_products_s", seconds(6.0 * rates.ROWS * rates.WIDTH * rates.HIDDEN))
    monkeypatch.setattr(rates, "_iteration_s", seconds(4.0 * rates.MATRICES * rates.WIDTH**3))
    for dtype, true in speed.items():
        for timed in (rates.product_flops, rates.iteration_flops):
            assert timed(torch.device("cpu"), dtype) == pytest.approx(true, rel=0.15)


@pytest.mark.parametrize(("bf16", "said"), [(0, "hundreds of times slower"), (10, "10 times slower"), (90, None)])
def test_whoever_asks_for_slow_bf16_is_told_so_in_one_line(
    machine: Callable[..., None], bf16: float, said: str | None
) -> None:
    machine(scaling(float32=100, bf16=bf16))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        assert choice.choose("cpu", "bf16").dtype == torch.bfloat16
        # as torch does
        warnings.warn("mkldnn_matmul failed, switching to BLAS gemm: and frames upon frames", stacklevel=1)
    assert [str(note.message).partition(" than in")[0][-len(said or "") :] for note in notes] == (
        [said] if said else []
    )


def test_a_product_in_bf16_leaves_no_trace_in_later_runs(tmp_path: Path) -> None:
    """Without units for bf16, torch gives oneDNN up for the rest of the process, and float32 has other last bits."""
    text, options = "the cat sat on the mat and the dog on the log\n" * 40, {"budget": "3steps", "precision": "float32"}
    settings = {"layers": 1, "width": 32}
    before = lmlab.train("gpt", text, out=tmp_path / "before", settings=settings, device="cpu", **options)
    torch.backends.mkldnn.set_flags(_enabled=not precision.ONEDNN)
    after = lmlab.train("gpt", text, out=tmp_path / "after", settings=settings, device="cpu", **options)
    assert torch.backends.mkldnn.enabled == precision.ONEDNN
    for name, weight in before.saved.tensors().items():
        assert torch.equal(after.saved.tensors()[name], weight), name


def test_a_device_that_takes_long_to_ask_gets_larger_batches(machine: Callable[..., None]) -> None:
    machine(scaling(float32=20_000, bf16=200_000), request_s=6e-6)
    assert choice.choose("cpu").batch == 4
    machine(scaling(float32=50, bf16=20), request_s=6e-6)
    kept_figures.find("cpu", again=True)
    assert choice.choose("cpu").batch == 1


def test_one_core_has_one_choice_of_threads(machine: Callable[..., None]) -> None:
    machine(scaling(float32=10, bf16=1), threads=1)
    assert thread_counts(1) == [1]
    chosen = threads.at_this_moment(choice.choose("cpu"))
    assert (chosen.threads, chosen.now) == (1, 1)
    assert threads.neighbours(1, 1) == [1]


def test_many_cores_are_tried_by_doubling() -> None:
    assert thread_counts(16) == [1, 2, 4, 8, 16]
    assert thread_counts(6) == [1, 2, 4, 6]
    assert thread_counts(2) == [1, 2]


def test_beside_a_busy_process_fewer_threads_are_taken(machine: Callable[..., None]) -> None:
    machine(lambda dtype, threads: GIGA * {1: 50, 2: 20}[threads])
    assert threads.at_this_moment(choice.choose("cpu")).now == 1
    machine(lambda dtype, threads: GIGA * {1: 50, 2: 95}[threads])
    assert threads.at_this_moment(choice.choose("cpu")).now == 2


def test_a_kept_figure_that_is_wrong_by_a_factor_of_two_is_measured_anew(machine: Callable[..., None]) -> None:
    machine(scaling(float32=100, bf16=1))
    choice.choose("cpu")
    machine(scaling(float32=60, bf16=1))
    assert threads.at_this_moment(choice.choose("cpu")).flops == 120 * GIGA
    assert kept_figures.find("cpu").rate("cpu", "float32").products == 200 * GIGA  # near enough
    machine(scaling(float32=30, bf16=1))
    threads.at_this_moment(choice.choose("cpu"))
    assert kept_figures.find("cpu").rate("cpu", "float32").products == 60 * GIGA
    kept_figures.forget()
    machine(scaling(float32=7, bf16=1))  # what was measured anew is also what is kept
    assert kept_figures.find("cpu").rate("cpu", "float32").products == 60 * GIGA


def test_figures_are_measured_once_and_kept(machine: Callable[..., None]) -> None:
    machine(scaling(float32=100, bf16=1))
    first = kept_figures.find("cpu")
    assert Path(first.kept).is_file()
    kept_figures.forget()
    machine(scaling(float32=1, bf16=1))
    assert kept_figures.find("cpu").rates == first.rates
    assert kept_figures.find("cpu", again=True).rates != first.rates


def test_figures_belong_to_a_processor_a_torch_and_the_limits_set(
    machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(scaling(float32=100, bf16=1))
    kept = {kept_figures.find("cpu").kept}
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "another")
    kept.add(kept_figures.find("cpu").kept)
    monkeypatch.setattr(torch, "__version__", "2.99")
    kept.add(kept_figures.find("cpu").kept)
    monkeypatch.setattr(kept_figures, "usable_cores", lambda: 77)
    kept.add(kept_figures.find("cpu").kept)
    assert len(kept) == 4


DAMAGES = {
    "empty": "",
    "cut": '{"key": {',
    "other": "[1, 2]",
    "nothing": "{}",
    "words": '{"rates": "fast"}',
    "null": "null",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_measured_again(machine: Callable[..., None], damage: str) -> None:
    machine(scaling(float32=100, bf16=1))
    path = Path(kept_figures.find("cpu").kept)
    for content in (DAMAGES[damage], json.dumps({**json.loads(path.read_text()), "rates": [{"device": "cpu"}]})):
        path.write_text(content)
        kept_figures.forget()
        machine(scaling(float32=50, bf16=1))
        assert kept_figures.find("cpu").rate("cpu", "float32").products == 100 * GIGA


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device")])
def test_a_home_that_cannot_be_written_costs_only_the_keeping(
    machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def refuse(path: Path, content: bytes) -> None:
        raise error

    machine(scaling(float32=100, bf16=1))
    monkeypatch.setattr(kept_figures, "write_atomically", refuse)
    chosen = kept_figures.find("cpu")
    assert (chosen.kept, chosen.trouble.startswith("not kept: ")) == ("", True)
    assert str(error.strerror) in chosen.trouble
    assert kept_figures.find("cpu") is chosen  # not measured a second time


def test_without_proc_everything_is_still_answered(
    machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_text

    def no_proc(path: Path, *arguments: object, **options: object) -> str:
        if str(path).startswith(("/proc", "/sys")):
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return read(path, *arguments, **options)  # type: ignore[arg-type]

    machine(scaling(float32=100, bf16=1))
    monkeypatch.setattr(Path, "read_text", no_proc)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sysconf")
    assert choice.choose("cpu").dtype == torch.float32
    assert kept_figures.usable_cores() >= 1
    assert memory.available_bytes() is None
    assert report.about_machine().versions["processor"]


def test_a_device_or_precision_that_is_none_is_refused_with_what_would_be_right() -> None:
    with mistake("device-unknown"):
        choice.choose("gpu")
    with mistake("precision-unknown"):
        choice.choose("cpu", "fp16")
    if not torch.cuda.is_available():
        with mistake("device-not-there", "say device='cpu'"):
            choice.choose("cuda")


def test_processes_are_forked_for_the_code_of_others_alone_and_no_library_call_changes_the_heap() -> None:
    source = Path(kept_figures.__file__).parents[1]
    texts = {path: path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    forks = {path.name for path, text in texts.items() if "os.fork" in text or 'get_context("fork")' in text}
    assert forks == {"measure_apart.py", "model_process.py"}  # from a process that began no threads
    calls = {path.relative_to(source).parts[0] for path, text in texts.items() if "keep_memory()" in text}
    assert calls <= {"hardware", "cli"}


def test_a_real_measurement_of_this_machine_is_quick_and_sound() -> None:
    measured = kept_figures.measure("cpu")
    assert measured.rate("cpu", "float32").products > 1e8
    assert measured.device("cpu").copies > 1e8
    assert 0 < measured.device("cpu").request_s < 1e-2
    assert {(r.device, r.precision) for r in measured.rates} == {("cpu", "float32"), ("cpu", "bf16")}


def test_the_environment_tells_child_processes_to_keep_memory() -> None:
    code = "from lmlab.hardware.memory import keep_memory as k; k(); import os; print(os.environ.get('MALLOC_TRIM_THRESHOLD_'))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert said == (str((1 << 31) - 1) if sys.platform == "linux" and not os.environ.get("LD_PRELOAD") else "None")


def test_rates_are_chosen_by_speed_unless_threads_are_named() -> None:
    pairs = [(1, 50.0), (2, 20.0)]
    figures = kept_figures.Found(
        key={},
        rates=tuple(Rate(device="cpu", precision="float32", threads=t, products=p, iteration=p) for t, p in pairs),
        devices=(),
        seconds=0.0,
    )
    assert figures.rate("cpu", "float32").threads == 1
    assert figures.rate("cpu", "float32", 2).products == 20.0


def test_the_peak_holds_memory_that_was_freed_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, freed = iter([100, 900, 200]), threading.Event()

    def resident() -> int:
        size = next(sizes, 100)
        if size == 100 and watched.peak_bytes:
            freed.set()
        return size

    monkeypatch.setattr(memory, "EVERY_S", 0.0)
    monkeypatch.setattr(memory, "resident_bytes", resident)
    watched = memory.PeakMemory()
    with watched:
        assert freed.wait(60)
    assert watched.peak_bytes == 900
