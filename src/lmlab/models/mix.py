"""`mix`: a model made of models over one vocabulary, which predicts better than any of them.

    p(token | before) = Σ_k w_k · p_k(token | before),     w = softmax(logits)

The logits are constants, or a small network makes them from what the parts say of how sure they are (their confidence features)
before the token is seen. Either was fitted on text that no part was trained on (`_mix_fit`). A mix that adapts moves its logits
after every token by the gradient of what it just paid,

    logits_k += RATE · (w_k p_k(token) / Σ_j w_j p_j(token)  -  w_k),

so that parts which do well on this very text gain weight. Only tokens that were read have a say: a decoder can follow.

Shapes: B rows, T tokens, V vocabulary, K parts, S features of all parts together, H width of the small network.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lmlab.config import Mistake, make, one_of, recorded
from lmlab.interface import ContextPolicy, LanguageModel, State, advance, confidence_after, side_by_side, spend
from lmlab.models.registry import model_class

RATE = 0.02  # of adapting: less is too slow for a document of a few thousand tokens, more follows chance
Weighting = Literal["constant", "gate"]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MixConfig:
    """What a mix is made of."""

    parts: Sequence[Mapping[str, Any]] = ()  # of each: the name of its kind (model) and its settings (config)
    weighting: Weighting = "constant"  # constant, or a gate that sees how sure the parts are
    adapt: bool = False  # whether the weights go on learning while it reads

    def __post_init__(self) -> None:
        one_of("mix", Weighting, weighting=self.weighting)


class Gate(nn.Module):
    """The logits of the parts: constants, and what a hidden layer makes of the features where there is one."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name, tensor in tensors.items():
            self.register_parameter(name, nn.Parameter(tensor, requires_grad=False))

    def forward(self, features_BTS: Tensor) -> Tensor:
        """Logits, …×K; constants look at the shape of what they are given alone."""
        tensors = dict(self.named_parameters())
        if "inner_SH" not in tensors:
            return tensors["logits_K"].expand(*features_BTS.shape[:-1], -1)
        scaled_BTS = (features_BTS - tensors["mean_S"]) / tensors["spread_S"]
        return (
            torch.tanh(scaled_BTS @ tensors["inner_SH"] + tensors["inner_H"]) @ tensors["outer_HK"]
            + tensors["logits_K"]
        )


class MixState(State):
    """The states of the parts; and for a mix that adapts, what they said last and how far the logits have moved."""

    def __init__(
        self,
        states: list[tuple[State, torch.device]],
        logp_KBV: Tensor,
        logits_BK: Tensor,
        moved_BK: Doubles,
        begun: bool,
    ) -> None:
        super().__init__()
        self.states = states  # and where each of them lies
        self.logp_KBV, self.logits_BK, self.moved_BK = logp_KBV, logits_BK, moved_BK
        self.begun = begun  # whether a token was read

    def select(self, rows_B: Tensor) -> MixState:
        """Copy, repeat or reorder rows."""
        states = [(state.select(rows_B.to(device)), device) for state, device in self.states]
        moved_BK = self.moved_BK[rows_B.cpu().numpy()]
        return MixState(states, self.logp_KBV[:, rows_B], self.logits_BK[rows_B], moved_BK, self.begun)

    @classmethod
    def concat(cls, states: Sequence[MixState]) -> MixState:
        """Return one state with the rows of all states. Spends them."""
        spend(states)
        rows = [len(state.logits_BK) for state in states]
        parts = zip(*(state.states for state in states), strict=True)
        joined = [(side_by_side([state for state, _ in part], rows), part[0][1]) for part in parts]
        logp_KBV = torch.cat([state.logp_KBV for state in states], dim=1)
        logits_BK = torch.cat([state.logits_BK for state in states])
        moved_BK = np.concatenate([state.moved_BK for state in states])
        return MixState(joined, logp_KBV, logits_BK, moved_BK, any(state.begun for state in states))


class Mix(nn.Module, LanguageModel):
    """A weighted sum of the probabilities of its parts."""

    name: ClassVar[str] = "mix"
    Config: ClassVar[type] = MixConfig

    def __init__(self, config: MixConfig, parts: Sequence[LanguageModel], gate: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config, self.parts, self.vocab_size = config, list(parts), parts[0].vocab_size
        self.components = self.parts
        self.gate = Gate(gate)
        self.learned = nn.ModuleList(part for part in parts if isinstance(part, nn.Module))  # so that they move with it
        self.policy = ContextPolicy.everything() if config.adapt else common_policy([part.policy for part in parts])
        self.eval()  # only its weights were ever fitted, and that is over

    @classmethod
    def of(
        cls,
        parts: Sequence[tuple[str, LanguageModel]],
        gate: Mapping[str, Tensor],
        *,
        weighting: Weighting,
        adapt: bool = False,
    ) -> Self:
        """The mix of these models, each with the name of its kind."""
        made_of = [{"model": kind, "config": recorded(part.config)} for kind, part in parts]
        return cls(MixConfig(parts=made_of, weighting=weighting, adapt=adapt), [part for _, part in parts], gate)

    @property
    def device(self) -> torch.device:
        """Where its tokens must lie; parts that count stay on the CPU."""
        return next(self.parameters()).device

    @torch.no_grad()
    def score(self, tokens_BT: Tensor) -> Tensor:
        """Nats of each token under the weighted sum, B×T."""
        nats_BTK, logits_BTK = self._heard(tokens_BT)
        if not self.config.adapt:
            return -torch.logsumexp(torch.log_softmax(logits_BTK, dim=-1) - nats_BTK, dim=-1)
        nats_BT, _ = adapted(_doubles(logits_BTK), _doubles(nats_BTK), np.zeros((len(tokens_BT), len(self.parts))))
        return torch.from_numpy(nats_BT.astype(np.float32)).to(tokens_BT.device)

    def for_decoding(self, dtype: torch.dtype) -> Mix:
        """Return a view of this mix whose parts keep their caches for one engine."""
        view = copy.copy(self)
        view.parts = [part.for_decoding(dtype) for part in self.parts]
        return view

    @torch.no_grad()
    def begin(self, rows: int) -> tuple[Tensor, MixState]:
        """Distribution of the first token."""
        said = [part.begin(rows) for part in self.parts]
        return self._sum(said, np.zeros((rows, len(self.parts))), begun=False)

    @torch.no_grad()
    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, MixState]:
        """Distribution after these tokens. A mix that adapts must know what each of them cost.

        From the beginning of a text `score` tells; later on it takes one token after the other.
        """
        assert isinstance(state, MixState)
        if self.config.adapt and state.begun and tokens_BT.shape[1] > 1:
            for t in range(tokens_BT.shape[1] - 1):
                _, state = self.advance(tokens_BT[:, t : t + 1], state)
            return self.advance(tokens_BT[:, -1:], state)
        state.spend()
        moved_BK = state.moved_BK
        if self.config.adapt:
            if tokens_BT.shape[1] == 1:
                nats_BTK = -state.logp_KBV.gather(2, tokens_BT.expand(len(self.parts), -1, 1)).permute(1, 2, 0)
                logits_BTK = state.logits_BK[:, None]
            else:
                nats_BTK, logits_BTK = self._heard(tokens_BT)
            _, moved_BK = adapted(_doubles(logits_BTK), _doubles(nats_BTK), moved_BK)
        said = [
            advance(part, tokens_BT.to(device), before)
            for part, (before, device) in zip(self.parts, state.states, strict=True)
        ]
        return self._sum(said, moved_BK, begun=True)

    def _sum(self, said: list[tuple[Tensor, State]], moved_BK: Doubles, *, begun: bool) -> tuple[Tensor, MixState]:
        """What the parts say, weighed."""
        logp_KBV = torch.stack([logp_BV.to(self.device) for logp_BV, _ in said])
        features = [
            confidence_after(part, logp_BV, state).to(self.device)
            for part, (logp_BV, state) in zip(self.parts, said, strict=True)
        ]
        logits_BK = self.gate(torch.cat(features, dim=-1))
        moved = torch.from_numpy(moved_BK.astype(np.float32)).to(self.device)
        weights_KB = torch.log_softmax(logits_BK + moved, dim=-1).T
        states = [(state, logp_BV.device) for logp_BV, state in said]
        state = MixState(states, logp_KBV, logits_BK, moved_BK, begun)
        return torch.logsumexp(weights_KB[..., None] + logp_KBV, dim=0), state

    def _heard(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """What each token costs under each part, and the logits of the parts there, both B×T×K."""
        if self.config.weighting == "constant":
            nats = [part.score(self._for(part, tokens_BT)).to(tokens_BT.device) for part in self.parts]
            return torch.stack(nats, dim=-1), self.gate(tokens_BT[..., None])
        found = [part.score_with_confidence(self._for(part, tokens_BT)) for part in self.parts]
        nats_BTK = torch.stack([nats_BT.to(tokens_BT.device) for nats_BT, _ in found], dim=-1)
        features_BTS = torch.cat([features_BTS.to(tokens_BT.device) for _, features_BTS in found], dim=-1)
        return nats_BTK, self.gate(features_BTS)

    @staticmethod
    def _for(part: LanguageModel, tokens_BT: Tensor) -> Tensor:
        return tokens_BT if isinstance(part, nn.Module) else tokens_BT.cpu()

    def tensors(self) -> dict[str, Tensor]:
        """All tensors of all parts, and the weights: a mix needs nothing beside itself."""
        named = {f"gate.{name}": value.detach() for name, value in self.gate.named_parameters()}
        for k, part in enumerate(self.parts):
            named |= {f"parts.{k}.{name}": value for name, value in part.tensors().items()}
        # A part may be in it twice, as itself and inside another mix; a file holds tensors that share no memory.
        first = {value.data_ptr(): name for name, value in reversed(named.items())}
        return {name: value if first[value.data_ptr()] == name else value.clone() for name, value in named.items()}

    @classmethod
    def from_tensors(cls, config: MixConfig, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """The mix of the parts that the config names."""
        parts: list[LanguageModel] = []
        for k, about in enumerate(config.parts):
            kind = model_class(about["model"])
            settings: Any = make(kind.Config, about["config"], about["model"])
            parts.append(kind.from_tensors(settings, vocab_size, _under(f"parts.{k}.", tensors)))
        if not parts:
            raise Mistake("a mix has parts; make one of trained models", code="mix-without-parts")
        return cls(config, parts, _under("gate.", tensors))

    @property
    def parameters_count(self) -> int:
        """Of all parts, and of the weights."""
        return sum(part.parameters_count for part in self.parts) + sum(p.numel() for p in self.gate.parameters())

    @property
    def notes(self) -> list[str]:
        """What is mixed and how, and what the parts have to say."""
        names = ", ".join(about["model"] for about in self.config.parts)
        how = "constant weights" if self.config.weighting == "constant" else "weights by how sure the parts are"
        lines = [f"a mix of {names}; {how}, fitted on the validation part"]
        if self.config.adapt:
            lines.append("adaptive: its weights go on learning from the text it reads, token by token, so that the")
            lines[-1] += " number is of reading this text from its beginning"
        return lines + [type(note)(f"{part.name}: {note}") for part in self.parts for note in part.notes]


def common_policy(policies: Sequence[ContextPolicy]) -> ContextPolicy:
    """How much history a prediction sees that sees what all of these see."""
    steady = [policy.most for policy in policies if policy.stride == 1 and policy.most is not None]
    windows = {policy for policy in policies if policy.stride != 1}
    if not windows:
        return ContextPolicy.last(max(steady))
    (one, *others) = windows
    if others or one.window is None or one.stride is None or max(steady, default=0) > one.window - one.stride:
        return ContextPolicy.everything()  # what holds for each of them is no rule of this form
    return one


def adapted(logits_BTK: Doubles, nats_BTK: Doubles, moved_BK: Doubles) -> tuple[Doubles, Doubles]:
    """Nats of the tokens, B×T, under weights that learn from one token to the next; and how far the logits have moved then."""
    p_BTK = np.exp(-nats_BTK)
    total_BT = np.empty(nats_BTK.shape[:2])
    for t in range(nats_BTK.shape[1]):
        w_BK = np.exp(logits_BTK[:, t] + moved_BK)
        w_BK /= w_BK.sum(axis=1, keepdims=True)
        share_BK = w_BK * p_BTK[:, t]
        total_B = share_BK.sum(axis=1)
        total_BT[:, t] = total_B
        share_BK /= np.maximum(total_B, np.finfo(np.float64).tiny)[:, None]
        moved_BK = moved_BK + RATE * (share_BK - w_BK) * (total_B > 0)[:, None]  # the impossible teaches nothing
    with np.errstate(divide="ignore"):
        return -np.log(total_BT), moved_BK


def _doubles(x: Tensor) -> Doubles:
    return x.double().cpu().numpy()


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
