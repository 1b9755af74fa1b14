"""Published laws of how the loss falls with the size of a model and with its text, each with its source."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Law:
    """loss = E + A / N^alpha + B / D^beta, in nats a token, for N parameters and D tokens."""

    source: str
    E: float
    A: float
    B: float
    alpha: float
    beta: float

    def loss(self, parameters: float, tokens: float) -> float:
        """Nats a token."""
        return float(self.E + self.A / parameters**self.alpha + self.B / tokens**self.beta)

    def best_split(self, operations: float) -> tuple[float, float]:
        """(parameters, tokens) of least loss for so many operations, taken as 6 N D (Hoffmann and others, equation 4)."""
        both = self.alpha + self.beta
        scale = (self.alpha * self.A / (self.beta * self.B)) ** (1 / both)
        parameters = scale * (operations / 6) ** (self.beta / both)
        return parameters, operations / 6 / parameters

    def operations_for(self, loss: float) -> float:
        """The least with which this loss is reached, by bisection; infinite where none is enough."""
        if loss <= self.E:
            return math.inf
        low, high = 1.0, 1e40
        for _ in range(200):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.loss(*self.best_split(middle)) < loss else (middle, high)
        return high


LAWS = {
    "chinchilla": Law(
        source="Hoffmann and others, Training Compute-Optimal Large Language Models, 2022, third approach",
        E=1.69,
        A=406.4,
        B=410.7,
        alpha=0.34,
        beta=0.28,
    ),
    "corrected": Law(
        source="Besiroglu and others, Chinchilla Scaling: A replication attempt, 2024, which refits the former",
        E=1.8172,
        A=482.01,
        B=2085.43,
        alpha=0.3478,
        beta=0.3658,
    ),
}
