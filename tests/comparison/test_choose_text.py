from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lmlab.comparison import choose_text
from lmlab.comparison.choose_text import LONG_S, Texts
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

    monkeypatch.setattr(choose_text, "score_part", score)
    monkeypatch.setattr(choose_text, "device_of", lambda model: torch.device(model.device))
    monkeypatch.setattr(choose_text, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    runs: list[Any] = [
        PlacedRun("large", {"cuda": 5 * LONG_S, "cpu": 50 * LONG_S}),
        PlacedRun("stepwise", {"cuda": 5 * LONG_S, "cpu": LONG_S}),
        PlacedRun("quick", {"cuda": LONG_S / 2, "cpu": LONG_S / 4}),  # not worth the trying
    ]
    texts = Texts(corpus=read("markov:order=1,alphabet=4,length=40000,seed=0"), tokenizers=["char"])
    chosen = choose_text.choose_text(texts, 20_000, runs, "cuda", 1e9)
    assert loaded.count("cpu") == 4  # a little and a piece, of the two that took long
    assert chosen.on_cpu == {"stepwise"}
