"""What `lmlab machine` prints, whole on every terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from lmlab.cli.commands import machine
from lmlab.hardware.kept_figures import Device, Found, Rate
from lmlab.hardware.report import Choice, Kept, MachineReport

RATES = tuple(
    Rate(device=device, precision=precision, threads=threads, products=products, iteration=1.2345e12)
    for device, threads, products in (("cuda", 1, 2.5e14), ("cpu", 16, 1.35e11), ("cpu", 1, 0.0))
    for precision in ("float32", "bf16")
)
REPORT = MachineReport(
    found=(Found(key={}, rates=RATES, devices=(Device(device="cpu", copies=2e10, request_s=3e-6),), seconds=1.0),),
    choices=(Choice(device="cpu", what="precision of products", chosen="bf16", why="bf16 is 5.9 times as fast"),),
    memory_bytes=7 * 10**9,
    versions={"processor": "A Processor, 2 cores", "system": "Linux", "torch": "2.6.0", "numpy": "2.0"},
    cache="/home/somebody/.cache/lmlab",
    kept=(Kept(folder="/home/somebody/.cache/lmlab/corpora", bytes=12 * 10**6, files=240),),
)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_rows_of_figures_stay_rows_however_narrow_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    console = Console(file=shown, width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr("lmlab_derive.shared.console.result_console", lambda: console)
    machine._print(REPORT)
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    rows = [line.split() for line in lines if line.startswith(("cuda  ", "cpu, "))]
    assert [row[-3:] for row in rows] == [
        ["float32", "250,000", "1,234"], ["bf16", "250,000", "1,234"],
        ["float32", "135", "1,234"], ["bf16", "135", "1,234"],
        ["float32", "crawls", "1,234"], ["bf16", "crawls", "1,234"],
    ]  # fmt: skip
    words = " ".join(shown.getvalue().split())
    assert "cpu: copies 20 GB/s, a request 3.0 µs" in words
    assert "cpu: precision of products: bf16 (bf16 is 5.9 times as fast)" in words
    kept = "(lmlab machine --clear deletes all but what is in piped) corpora: 240 files, 12.0 MB"
    assert f"{Path(REPORT.cache)} {kept}" in words
