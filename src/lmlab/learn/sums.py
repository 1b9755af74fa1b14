"""Running sums of losses over many steps."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lmlab.interface import Loss


class Sums:
    """Running sums of nats and item counts. Adding a loss does not wait for the device.

    Args:
        device: the device of the losses.
        known: the mean of the previous sums. `recent_mean` returns it until a new mean has arrived.
    """

    def __init__(self, device: torch.device, known: float | None = None) -> None:
        self.nats, self.count = torch.zeros((), device=device), 0
        self.parts: dict[str, Tensor] = {}
        self._asked: tuple[torch.cuda.Event, Tensor, int] | None = None  # a copy in progress: event, nats, count
        self._known = known

    def add(self, loss: Loss) -> None:
        """Add one loss to the sums."""
        self.nats += loss.total.detach()
        self.count += loss.count
        for name, part in loss.parts.items():
            self.parts[name] = self.parts.get(name, torch.zeros_like(self.nats)) + part.detach()

    @property
    def mean(self) -> float:
        """The mean loss in nats per item. Waits for the device."""
        return float(self.nats) / max(1, self.count)

    def recent_mean(self) -> float | None:
        """Return a recent mean loss without waiting for a GPU, because waiting would leave the GPU idle.

        On a GPU, each call starts an asynchronous copy of the sums unless one is in progress. The result is the mean of the
        last copy that has arrived.

        Returns:
            The mean in nats per item; None if none is known yet.
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
        """The mean of each named component of the loss, in nats per item."""
        return {name: float(part) / max(1, self.count) for name, part in self.parts.items()}

    def tensors(self) -> dict[str, Tensor]:
        """Return the sums as tensors by name, for a checkpoint."""
        named = {f"part.{name}": part for name, part in self.parts.items()}
        return {"nats": self.nats, "count": torch.tensor(self.count), **named}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], device: torch.device) -> Sums:
        """Restore the sums from the tensors of a checkpoint."""
        sums = cls(device)
        sums.nats, sums.count = tensors["nats"].to(device), int(tensors["count"])
        sums.parts = {n.removeprefix("part."): t.to(device) for n, t in tensors.items() if n.startswith("part.")}
        return sums
