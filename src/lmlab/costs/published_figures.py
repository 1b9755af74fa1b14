"""What others published: training runs, and laws of how loss falls with size and text. Each with its source."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from lmlab.costs.decoders import Llama
from lmlab.costs.devices import DEVICES
from lmlab.formulas import Shape, weights, work


@dataclass(frozen=True, kw_only=True)
class Run:
    """A training run whose device-hours were published."""

    name: str
    source: str
    config: Llama
    tokens: float
    length: int  # tokens of a sequence
    hours: float  # of one device
    device: str = "A100"

    @functools.cached_property
    def parameters(self) -> int:
        """By formula."""
        return int(weights(self.config.parts(self.config, self.config.vocab_size, Shape())))

    @functools.cached_property
    def operations(self) -> float:
        """Of all its training, by formula."""
        sequence = work(self.config.parts(self.config, self.config.vocab_size, Shape(1, self.length))).both
        return float(sequence) / self.length * self.tokens

    @property
    def share(self) -> float:
        """Of its device's peak that it reached."""
        return self.operations / (self.hours * 3600 * DEVICES[self.device].peak)


LLAMA = "Touvron and others, LLaMA: Open and Efficient Foundation Language Models, 2023, table 15"
LLAMA_2 = "Touvron and others, Llama 2: Open Foundation and Fine-Tuned Chat Models, 2023, table 2"


def _llama(width: int, layers: int, heads: int, hidden: int, keys: int | None = None) -> Llama:
    return Llama(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=hidden,
        num_key_value_heads=keys,
    )


SEVEN, THIRTEEN = _llama(4096, 32, 32, 11008), _llama(5120, 40, 40, 13824)
RUNS = [
    Run(name="LLaMA 7B", source=LLAMA, config=SEVEN, tokens=1.0e12, length=2048, hours=82_432),
    Run(name="LLaMA 13B", source=LLAMA, config=THIRTEEN, tokens=1.0e12, length=2048, hours=135_168),
    Run(name="LLaMA 33B", source=LLAMA, config=_llama(6656, 60, 52, 17920), tokens=1.4e12, length=2048, hours=530_432),
    Run(
        name="LLaMA 65B", source=LLAMA, config=_llama(8192, 80, 64, 22016), tokens=1.4e12, length=2048, hours=1_022_362
    ),
    Run(name="Llama-2 7B", source=LLAMA_2, config=SEVEN, tokens=2.0e12, length=4096, hours=184_320),
    Run(name="Llama-2 13B", source=LLAMA_2, config=THIRTEEN, tokens=2.0e12, length=4096, hours=368_640),
    Run(
        name="Llama-2 70B",
        source=LLAMA_2,
        config=_llama(8192, 80, 64, 28672, 8),
        tokens=2.0e12,
        length=4096,
        hours=1_720_320,
    ),
]


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
