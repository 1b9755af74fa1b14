"""Where a run stands, and what a validation makes of it: the best so far, or one more that was no better."""

from __future__ import annotations

from dataclasses import dataclass, replace

UNSETTLED = (
    0.5  # of a budget that began with learned weights: so long a rise of the validation loss is no reason to stop
)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands, apart from its tensors."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_nats: float | None = None  # per token, on the validation windows
    best_step: int = 0
    lowest_nats: float | None = None  # as best_nats, of the weights that were learned since the budget began
    worse: int = 0  # validations since the lowest one
    highest_nats: float | None = None  # likewise, of weights that were learned before the budget began too
    metrics: int = 0  # lines of metrics.jsonl that belong to the run so far
    first_nats: float | None = (
        None  # that the first batch cost: far above guessing is no divergence where it began there
    )
    kernels: dict[str, bool] | None = (
        None  # functions in C that were taken or left (hardware/races.py); None: all taken
    )

    @property
    def has_learned(self) -> bool:
        """Whether the best weights cost less in validation than the first batch did; older checkpoints do not know that."""
        return self.best_nats is not None and (self.first_nats is None or self.best_nats < self.first_nats)

    def validated(self, nats: float, fraction: float) -> Progress:
        """Return the progress after a validation that found no better weights than the best.

        Weights that were learned before the budget began get worse at first, because the learning rate is high again. Half of
        the budget is time enough to come back from that; what still gets worse then is learned by heart.

        Args:
            nats: Per thing, of the weights as they are.
            fraction: The share of the budget that is used.
        """
        if self.lowest_nats is None or nats < self.lowest_nats:
            return replace(self, lowest_nats=nats, worse=0)
        if self.highest_nats is not None and nats > self.highest_nats and fraction < UNSETTLED:
            return replace(self, lowest_nats=nats, highest_nats=nats, worse=0)
        return replace(self, worse=self.worse + 1)
