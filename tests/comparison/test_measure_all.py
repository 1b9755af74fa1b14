from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lmlab.comparison import measure_all
from lmlab.comparison.contender import Contender
from lmlab.comparison.measure_all import LONG_S, Measuring
from lmlab.text.corpus import read


class PlacedRun:
    """A run whose model takes so many seconds for a piece of text on each device."""

    def __init__(self, name: str, seconds: dict[str, float]) -> None:
        self.folder, self.seconds, self.tokenizer = Path(name), seconds, None
        self.model: Any = None

    def load(self, device: str) -> Any:
        self.model = SimpleNamespace(device=device, takes=self.seconds[device])
        return self.model


def test_a_model_that_a_gpu_must_ask_for_every_token_is_measured_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    loaded: list[str] = []

    def score(model: Any, tokenizer: object, part: object) -> None:
        now[0] += model.takes
        loaded.append(model.device)

    monkeypatch.setattr(measure_all, "score_part", score)
    monkeypatch.setattr(measure_all, "device_of", lambda model: torch.device(model.device))
    monkeypatch.setattr(measure_all, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    measured: list[tuple[Path, str]] = []
    monkeypatch.setattr(
        measure_all, "measure_run", lambda run, text, *, name, seed, device: measured.append((run.folder, device))
    )
    runs: list[Any] = [
        PlacedRun("large", {"cuda": 5 * LONG_S, "cpu": 50 * LONG_S}),
        PlacedRun("stepwise", {"cuda": 5 * LONG_S, "cpu": LONG_S}),
        PlacedRun("quick", {"cuda": LONG_S / 2, "cpu": LONG_S / 4}),  # not worth the trying
    ]
    measuring = Measuring(
        part=read("markov:order=1,alphabet=4,length=40000,seed=0").test,
        name="markov",
        tokenizers=["char"],
        contexts=[],
        wanted_bytes=20_000,
        device="cuda",
        seed=0,
    )
    entries = [Contender("gpt", "char", name=run.folder.name, runs=[run]) for run in runs]
    measuring.choose(entries, 1e9)
    assert loaded.count("cpu") == 4  # a little and a piece, of the two that took long
    for run in runs:
        measuring.result(run)
    assert measured == [(Path("large"), "cuda"), (Path("stepwise"), "cpu"), (Path("quick"), "cuda")]
    assert [entry.name for entry in measuring.in_one_place(entries)] == ["large", "quick"]
