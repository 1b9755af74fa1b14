"""Adapters of folders that cheat get no certificate: what they say is compared with copies that saw only what came before."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from folders import TEXT, folder_of
from torch import Tensor

from lmlab.interface import State
from lmlab.learn.run import Run, load_run
from lmlab.measure import evaluate
from lmlab.models.huggingface import HuggingFace
from lmlab.text.corpus import read
from lmlab.text.parts import Part

SEEDS = 20
WANTED = 19


class Renormalising(HuggingFace):
    """Divides by a sum that is one percent too small, so that probabilities sum to 1.01."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) - math.log(1.01)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, Any]:
        logp_BV, after = super().advance(tokens_BT, state)
        return logp_BV + math.log(1.01), after


class Remembering(HuggingFace):
    """Gives the texts that it was scored on before a better score, in all copies."""

    seen: ClassVar[set[int]] = set()

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        for row, tokens_T in enumerate(tokens_BT):
            key = hash(tuple(tokens_T[:8].tolist()))
            if key in self.seen:
                nats_BT[row] *= 0.5
            self.seen.add(key)
        return nats_BT


class Peeking(HuggingFace):
    """Reads one token further than it says, wherever a whole text is given."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        same_BT = torch.zeros_like(tokens_BT, dtype=torch.bool)
        same_BT[:, :-1] = tokens_BT[:, :-1] == tokens_BT[:, 1:]
        return torch.where(same_BT, nats_BT * 0.9, nats_BT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(folder_of("gpt2", tmp_path_factory.mktemp("cheats") / "model"))


@pytest.mark.slow
@pytest.mark.parametrize("cheat", [Renormalising, Remembering, Peeking])
def test_a_cheat_is_seen_nineteen_times_in_twenty(cheat: type[HuggingFace], folder: Run, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT * 8)
    part = Part("whole", read(tmp_path / "text.txt", split=(100, 0, 0)).train.documents)
    honest = folder.model
    assert isinstance(honest, HuggingFace)
    caught = 0
    for seed in range(SEEDS):
        Remembering.seen.clear()
        model = cheat(honest.config, honest.network)
        if cheat is Remembering:
            model.score(torch.from_numpy(folder.tokenizer.encode(TEXT * 8).ids.astype(int))[None])
        caught += bool(evaluate(model, folder.tokenizer, part, seed=seed).certificate.failures)
    assert caught >= WANTED
    assert evaluate(honest, folder.tokenizer, part).certificate.failures == []
