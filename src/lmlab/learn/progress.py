"""The progress of a run: the amounts spent, and the best validation so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

UNSETTLED = 0.5  # share of a budget, from trained weights, in which a rising validation loss does not stop the run


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The state of a run apart from its tensors, as stored in a checkpoint."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_nats: float | None = None  # nats per item on the validation data
    best_step: int = 0
    lowest_nats: float | None = None  # as best_nats, among weights since the budget began
    worse: int = 0  # validations since the lowest loss
    highest_nats: float | None = None  # highest validation loss, if the run began with trained weights
    metrics: int = 0  # number of lines in metrics.jsonl
    first_nats: float | None = None  # loss of the first batch; if it is above a uniform guess, that is not divergence
    kernels: dict[str, bool] | None = (
        None  # C functions by name, and whether each is used (hardware/races.py); None: all are
    )

    @property
    def has_learned(self) -> bool:
        """Whether the best validation loss is below the loss of the first batch.

        An older checkpoint does not hold the loss of the first batch. Any validation then counts as lower.
        """
        return self.best_nats is not None and (self.first_nats is None or self.best_nats < self.first_nats)

    def validated(self, nats: float, fraction: float) -> Progress:
        """Return the progress after a validation that did not improve on the best weights.

        A run that starts from trained weights gets worse at first, because its learning rate is high again. So in the first
        half of the budget a new highest loss resets the count of validations without improvement. In the second half, a rising
        loss is overfitting.

        Args:
            nats: validation loss of the present weights in nats per item.
            fraction: the share of the budget that is used.
        """
        if self.lowest_nats is None or nats < self.lowest_nats:
            return replace(self, lowest_nats=nats, worse=0)
        if self.highest_nats is not None and nats > self.highest_nats and fraction < UNSETTLED:
            return replace(self, lowest_nats=nats, highest_nats=nats, worse=0)
        return replace(self, worse=self.worse + 1)
