"""What a latent-variable model is worth: at most so many bits per byte, by two bounds.

The first is the one it was trained on. The second averages the weights p(x, z) / q(z | x) of several draws before taking the
logarithm: its mean is a bound too, never above the first, and with more draws it falls towards the exact cost.
Neither is a number that a coder could reach as it stands, so neither is ranked with those of other models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmlab.config import Mistake, an
from lmlab.hardware.choice import choose_device
from lmlab.interface import ContextPolicy, LanguageModel, State
from lmlab.learn.run import Run
from lmlab.learn.run_advice import weights_warning
from lmlab.measure import Interval, paired_difference, score_part
from lmlab.measure.interval import interval
from lmlab.measure.near_copies import held_out
from lmlab.models.registry import Role, kind_of
from lmlab.models.variational import Posterior, Variational
from lmlab.records import in_json
from lmlab.results import OtherResult
from lmlab.text.corpus import read
from lmlab.text.parts import Part

DRAWS = 32  # of z for each segment
AT_ONCE = 1 << 15  # places (tokens of segments × draws) whose logits are computed together
IN_USE = 0.01  # variance of a number's mean over segments, from which it counts as used: else it says the same of all


@dataclass(frozen=True, kw_only=True)
class LatentResult(OtherResult):
    """What `lmlab eval` says of a latent-variable model. Bits per byte are at most these."""

    bytes: int
    bound: Interval  # E_q[-log p(x | z)] + KL, in bits per byte
    tightened: Interval  # by importance sampling
    gap: Interval  # bound minus tightened, paired
    draws: int
    segments: int
    kl_nats: float  # of a segment, on average
    used: int  # numbers of z whose mean differs from segment to segment
    latent: int
    blind: float  # bits per byte where z is drawn from the prior: what the text costs if z tells nothing of it

    @property
    @in_json("bits_per_byte_at_most")
    def bits_per_byte(self) -> float:
        """The tighter bound."""
        return self.tightened.estimate


class Bounded(LanguageModel):
    """A latent-variable model as something that can be scored: each token costs its share of its segment's bound."""

    name = "bound"
    policy = ContextPolicy.everything()

    def __init__(self, model: Variational, draws: int, seed: int = 0, *, tighten: bool = False) -> None:
        self.model, self.draws, self.seed, self.tighten = model, draws, seed, tighten
        self.config, self.vocab_size = model.config, model.vocab_size
        self.kl_K, self.mean_K, self.square_K = torch.zeros(3, model.config.latent, dtype=torch.float64)
        self.segments = 0

    def score(self, tokens_BT: Tensor) -> Tensor:
        """Nats of each token: what it costs given z on average, and its share of what z costs."""
        length = tokens_BT.shape[1]
        documents = torch.arange(0, tokens_BT.numel() + 1, length, device=tokens_BT.device)
        return self.score_documents(tokens_BT.flatten(), documents).view(tokens_BT.shape)

    def score_documents(self, tokens: Tensor, starts: Tensor) -> Tensor:
        """Each document from its beginning, cut into segments; the last may be shorter."""
        nats = torch.empty(len(tokens), dtype=torch.float32)
        tokens = tokens.to(self.model.writer.bias_V.device)
        for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            nats[first:end] = self._document(tokens[first:end])
        return nats

    @torch.no_grad()
    def _document(self, tokens_N: Tensor) -> Tensor:
        size = self.config.segment
        hidden_1NH = self._hidden(tokens_N[None])
        whole = len(tokens_N) // size
        found = []
        if whole:
            cut = whole * size
            found.append(
                self._segments(hidden_1NH[0, :cut].view(whole, size, -1), tokens_N[:cut].view(whole, size)).flatten()
            )
        if len(tokens_N) % size:
            rest = whole * size
            found.append(self._segments(hidden_1NH[:, rest:], tokens_N[None, rest:])[0])
        return torch.cat(found) if found else tokens_N.new_zeros(0, dtype=torch.float32)

    def _hidden(self, tokens_1N: Tensor) -> Tensor:
        """h before every token of a document, read on and on."""
        inputs_1N, memory = self.model.writer.begin_inputs(tokens_1N), self.model.writer.fresh(1)
        found = []
        for piece_1T in inputs_1N.split(AT_ONCE, dim=1):
            hidden_1TH, memory = self.model.hidden(piece_1T, memory)
            found.append(hidden_1TH)
        return torch.cat(found, dim=1)

    def _segments(self, hidden_BTH: Tensor, tokens_BT: Tensor) -> Tensor:
        """Nats of every token of segments of one length, some segments at a time."""
        rows = max(1, AT_ONCE // tokens_BT.shape[1])
        pairs = zip(hidden_BTH.split(rows), tokens_BT.split(rows), strict=True)
        return torch.cat([self._bound(hidden, tokens) for hidden, tokens in pairs])

    def _bound(self, hidden_BTH: Tensor, tokens_BT: Tensor) -> Tensor:
        q = self._posterior(hidden_BTH, tokens_BT)
        # one row after the other: what a segment draws does not depend on those behind it
        luck = np.random.default_rng([self.seed, self.segments])
        noise_BSK = luck.standard_normal((len(tokens_BT), self.draws, self.config.latent), dtype=np.float32)
        noise_SBK = torch.from_numpy(noise_BSK).transpose(0, 1).to(q.mean_BK.device)
        self.segments += len(tokens_BT)
        self.kl_K += q.kl_BK.sum(0).double().cpu()
        self.mean_K += q.mean_BK.sum(0).double().cpu()
        self.square_K += (q.mean_BK**2).sum(0).double().cpu()
        length, total_BT, log_weights = tokens_BT.shape[1], torch.zeros_like(tokens_BT, dtype=torch.float32), []
        for z_BK in q.draw(noise_SBK):
            nats_BT = self.model.nats_given(z_BK, hidden_BTH, tokens_BT)
            total_BT += nats_BT
            log_weights.append(q.log_prior_over_posterior(z_BK[None])[0] - nats_BT.sum(1))
        if not self.tighten:
            return total_BT / self.draws + q.kl_BK.sum(1, keepdim=True) / length
        mean_B1 = torch.logsumexp(torch.stack(log_weights), 0)[:, None] - math.log(self.draws)
        return (-mean_B1 / length).expand(-1, length)

    def _posterior(self, hidden_BTH: Tensor, tokens_BT: Tensor) -> Posterior:
        return self.model.posterior_of(hidden_BTH, tokens_BT)

    def begin(self, rows: int) -> tuple[Tensor, State]:
        """Not known: a bound has no next token."""
        raise NotImplementedError("a bound is of whole segments")

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """Not known: a bound has no next token."""
        raise NotImplementedError("a bound is of whole segments")

    def tensors(self) -> dict[str, Tensor]:
        """Those of the model."""
        return self.model.tensors()

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Any) -> Bounded:
        """Around the model with these weights."""
        return cls(Variational.from_tensors(config, vocab_size, tensors), DRAWS)


class Blind(Bounded):
    """The same with z from the prior, whatever the segment says."""

    def _posterior(self, hidden_BTH: Tensor, tokens_BT: Tensor) -> Posterior:
        nothing_BK = hidden_BTH.new_zeros(len(hidden_BTH), self.config.latent)
        return Posterior(nothing_BK, nothing_BK)


def model_of(run: Run, device: str) -> Variational:
    """The model of a run, which must have a latent variable, where it is wanted."""
    name = run.record.model.name
    if kind_of(name).role is not Role.LATENT_VARIABLE_MODEL:
        raise Mistake(
            f"{run.folder} holds {an(name)}, which has no latent variable; train one: lmlab train variational TEXT",
            code="run-without-latent",
        )
    model = run.saved
    assert isinstance(model, Variational)
    return model.to(choose_device(device)).eval()


def evaluate(
    run: Run,
    text: str | Path | None = None,
    *,
    part: str = "test",
    seed: int = 0,
    device: str = "auto",
    draws: int = DRAWS,
) -> LatentResult:
    """Two bounds of the bits per byte of a text, what z carries, and what the text costs without it.

    text: another text, used whole; without it a part of the run's own corpus. draws: of z for each segment.
    """
    if draws < 1:
        raise Mistake("{draws} is a whole number from 1 up", code="latent-draws-below-one", draws=None)
    model = model_of(run, device)
    if text is None:
        name, chosen = run.corpus.name, run.corpus.parts[part]
    else:
        corpus = read(text, split=(100, 0, 0))
        name, part, chosen = corpus.name, "whole", Part("whole", corpus.train.documents)
    if not chosen.bytes:
        raise Mistake(
            f"the {part} part of {name} is empty; choose another {{part}}, or name a text", code="part-empty", part=None
        )
    plain, tight = Bounded(model, draws, seed), Bounded(model, draws, seed, tighten=True)
    scored = [score_part(one, run.tokenizer, chosen) for one in (plain, tight, Blind(model, 1, seed))]
    known = held_out(run.learned_from, chosen)
    kl_K, mean_K, square_K = (sums / plain.segments for sums in (plain.kl_K, plain.mean_K, plain.square_K))
    notes = [warning] if (warning := weights_warning(run)) else []
    if known.verdict != "held out":
        notes.append(f"{known.verdict}: {known.detail}")
    return LatentResult(
        model=run.record.model.name,
        data=name,
        part=part,
        bytes=chosen.bytes,
        bound=interval(scored[0]),
        tightened=interval(scored[1]),
        gap=paired_difference(scored[0], scored[1]),
        draws=draws,
        segments=plain.segments,
        kl_nats=float(kl_K.sum()),
        used=int((square_K - mean_K**2 > IN_USE).sum()),
        latent=model.config.latent,
        blind=scored[2].bits_per_byte,
        notes=tuple(notes),
    )
