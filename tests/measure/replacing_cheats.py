"""A model whose module replaces what would catch it, wherever it is imported: no test imports it."""

from __future__ import annotations

import process_cheats
from torch import Tensor

from lmlab.measure import agreement, certificate, near_copies, recorded_scores, rescore

for module in (agreement, recorded_scores, rescore):
    module.disagreement = lambda *_: 0.0  # type: ignore[attr-defined]
agreement.lean = recorded_scores.lean = lambda *_: 0.0  # type: ignore[attr-defined]
certificate.Certificate.passed = True  # type: ignore[assignment,method-assign]
near_copies.LEAST_MORE = 2.0


class Replaces(process_cheats.Honest):
    """Costs half of what it should."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) * 0.5
