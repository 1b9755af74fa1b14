"""Losses added up over many steps."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lmlab.interface import Loss


class Sums:
    """Nats and what they are over, added up step by step without waiting for the device.

    known: the mean of those before, which is the latest there is until more is known.
    """

    def __init__(self, device: torch.device, known: float | None = None) -> None:
        self.nats, self.count = torch.zeros((), device=device), 0
        self.parts: dict[str, Tensor] = {}
        self._asked: tuple[torch.cuda.Event, Tensor, int] | None = None  # nats on their way here, and their count
        self._known = known

    def add(self, loss: Loss) -> None:
        """One more loss."""
        self.nats += loss.total.detach()
        self.count += loss.count
        for name, part in loss.parts.items():
            self.parts[name] = self.parts.get(name, torch.zeros_like(self.nats)) + part.detach()

    @property
    def mean(self) -> float:
        """Nats per thing."""
        return float(self.nats) / max(1, self.count)

    def lately(self) -> float | None:
        """As `mean`, but a GPU is not waited for, which would then wait for us: of the steps that were taken when this was last
        asked and are done by now; else what was known before. None: nothing is.
        """
        if self.nats.device.type != "cuda":
            return self.mean if self.count else self._known
        if self._asked is not None and self._asked[0].query():
            _, nats, count = self._asked
            self._known, self._asked = float(nats) / max(1, count), None
        if self._asked is None and self.count:
            event, nats = torch.cuda.Event(), self.nats.to("cpu", non_blocking=True)
            event.record()
            self._asked = event, nats, self.count
        return self._known

    @property
    def parts_mean(self) -> dict[str, float]:
        """Of each named part, nats per thing."""
        return {name: float(part) / max(1, self.count) for name, part in self.parts.items()}

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        named = {f"part.{name}": part for name, part in self.parts.items()}
        return {"nats": self.nats, "count": torch.tensor(self.count), **named}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], device: torch.device) -> Sums:
        """What `tensors` gave."""
        sums = cls(device)
        sums.nats, sums.count = tensors["nats"].to(device), int(tensors["count"])
        sums.parts = {n.removeprefix("part."): t.to(device) for n, t in tensors.items() if n.startswith("part.")}
        return sums
