"""The weights of a mix, from what its parts said of text that none of them was trained on.

Constants and a gate are fitted on one half of that text and compared on the other; the better kind is then fitted on all of it.
What is minimised is what the mix would have paid, in nats.

Shapes: N tokens, K parts, S features of all parts together, H width of the gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lmlab.interface import LanguageModel, Windows
from lmlab.models.mix import Gate, Weighting

WIDTH = 16  # of the gate
DECAY = 1e-4  # nats for each squared weight of the gate: keeps it near constants where there is little to learn from
STEPS = 60  # of L-BFGS, which has then long converged
SPREAD = 1e-3  # the least spread of a feature: one that never changes says nothing
SLIGHT = 0.01  # a part whose constant weight is below this costs its whole time for next to nothing
WORTH = 0.001  # what all parts must save, of the nats, over those that have weight


@dataclass(frozen=True, kw_only=True, eq=False)
class Heard:
    """What parts said of the same tokens. Where none of them holds a token possible, it is left out."""

    nats_NK: Tensor
    features: list[Tensor]  # of each part, N×features

    @classmethod
    @torch.no_grad()
    def of(cls, parts: Iterable[LanguageModel], batches: Sequence[Windows]) -> Heard:
        """Read these windows with one part after the other."""
        nats, features = [], []
        for part in parts:
            device = next(part.parameters()).device if isinstance(part, nn.Module) else torch.device("cpu")
            read = [part.score_with_confidence(batch.tokens_BT.to(device)) for batch in batches]
            nats.append(_under_mask([nats_BT[..., None] for nats_BT, _ in read], batches)[:, 0])
            features.append(_under_mask([features_BTS for _, features_BTS in read], batches))
        nats_NK = torch.stack(nats, dim=-1)
        possible_N = nats_NK.isfinite().any(dim=-1)
        return cls(nats_NK=nats_NK[possible_N], features=[features_NS[possible_N] for features_NS in features])

    def only(self, parts: Sequence[int]) -> Heard:
        """Of these parts alone."""
        return Heard(nats_NK=self.nats_NK[:, parts], features=[self.features[k] for k in parts])

    def halves(self) -> tuple[Heard, Heard]:
        """The first half of the tokens, and the second."""
        cut = len(self.nats_NK) // 2
        first, second = slice(None, cut), slice(cut, None)
        return (
            Heard(nats_NK=self.nats_NK[first], features=[s[first] for s in self.features]),
            Heard(nats_NK=self.nats_NK[second], features=[s[second] for s in self.features]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """The weights of a mix."""

    kept: tuple[int, ...]  # the parts that are worth their time
    weights: list[float]  # of those, on average over the text
    weighting: Weighting
    gate: dict[str, Tensor]
    nats: dict[Weighting, float]  # a token, on the half that decided


def fit_weights(heard: Heard) -> Fitted:
    """Choose, on text that none of them was fitted on, between constants and a gate, and between all parts and few.

    Parts that constants give next to no weight are left out, unless a gate makes enough of them.
    """
    shares_K = fit_constants(heard)["logits_K"].softmax(dim=-1)
    everyone = tuple(range(len(shares_K)))
    few = tuple(k for k in everyone if shares_K[k] >= SLIGHT)
    if not heard.nats_NK[:, few].isfinite().any(dim=-1).all():
        few = everyone  # what only a slight part holds possible would cost infinitely many nats
    first, second = heard.halves()
    nats = {
        (weighting, parts): mean_nats(fit(first.only(parts)), second.only(parts))
        for parts in dict.fromkeys((few, everyone))
        for weighting, fit in FITS.items()
        if weighting == "constant" or any(heard.features[k].shape[1] for k in parts)
    }
    weighting, kept = min(nats, key=lambda choice: nats[choice] * (1.0 if choice[1] == few else 1.0 + WORTH))
    heard = heard.only(kept)
    gate = FITS[weighting](heard)
    with torch.no_grad():
        weights_K = Gate(gate)(torch.cat(heard.features, dim=-1)).softmax(dim=-1).mean(dim=0)
    decided = {kind: value for (kind, parts), value in nats.items() if parts == kept}
    return Fitted(kept=kept, weights=weights_K.tolist(), weighting=weighting, gate=gate, nats=decided)


@torch.no_grad()
def mean_nats(gate: dict[str, Tensor], heard: Heard) -> float:
    """Nats a token of the mix."""
    return float(_paid(Gate(gate)(torch.cat(heard.features, dim=-1)), heard.nats_NK))


def fit_constants(heard: Heard) -> dict[str, Tensor]:
    """The best constant weights: the problem is convex."""
    weights = {"logits_K": torch.zeros(heard.nats_NK.shape[1])}
    return _minimise(weights, lambda w: _paid(w["logits_K"].expand_as(heard.nats_NK), heard.nats_NK))


def fit_gate(heard: Heard) -> dict[str, Tensor]:
    """A gate that begins as the best constants."""
    features_NS = torch.cat(heard.features, dim=-1)
    fixed = {"mean_S": features_NS.mean(dim=0), "spread_S": features_NS.std(dim=0, correction=0).clamp(min=SPREAD)}
    scaled_NS = (features_NS - fixed["mean_S"]) / fixed["spread_S"]
    sizes = scaled_NS.shape[1], heard.nats_NK.shape[1]
    weights = fit_constants(heard)
    weights["inner_SH"] = torch.randn(sizes[0], WIDTH, generator=torch.Generator().manual_seed(0)) * sizes[0] ** -0.5
    weights["inner_H"], weights["outer_HK"] = torch.zeros(WIDTH), torch.zeros(WIDTH, sizes[1])

    def cost(w: dict[str, Tensor]) -> Tensor:
        logits_NK = torch.tanh(scaled_NS @ w["inner_SH"] + w["inner_H"]) @ w["outer_HK"] + w["logits_K"]
        return _paid(logits_NK, heard.nats_NK) + DECAY * (w["inner_SH"].square().sum() + w["outer_HK"].square().sum())

    return fixed | _minimise(weights, cost)


FITS: dict[Weighting, Callable[[Heard], dict[str, Tensor]]] = {"constant": fit_constants, "gate": fit_gate}


def _under_mask(found: Sequence[Tensor], batches: Sequence[Windows]) -> Tensor:
    """What was found of the tokens that windows hold, N×F."""
    kept = [
        found_BTF.flatten(0, 1).cpu() if batch.mask_BT is None else found_BTF.cpu()[batch.mask_BT]
        for found_BTF, batch in zip(found, batches, strict=True)
    ]
    return torch.cat(kept)


def _paid(logits_NK: Tensor, nats_NK: Tensor) -> Tensor:
    """What a token costs under these weights, in nats, on average."""
    return -torch.logsumexp(torch.log_softmax(logits_NK, dim=-1) - nats_NK, dim=-1).mean()


def _minimise(weights: dict[str, Tensor], cost: Callable[[dict[str, Tensor]], Tensor]) -> dict[str, Tensor]:
    for weight in weights.values():
        weight.requires_grad_()
    optimizer = torch.optim.LBFGS(list(weights.values()), max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = cost(weights)
        value.backward()
        return value

    optimizer.step(closure)
    return {name: weight.detach() for name, weight in weights.items()}
