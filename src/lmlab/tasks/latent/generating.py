"""Writing from a place of the latent space: one segment, token by token, with z held fast."""

from __future__ import annotations

import torch
from torch import Tensor

from lmlab.models.variational import Posterior, Variational


@torch.no_grad()
def written(
    model: Variational,
    z_BK: Tensor,
    *,
    tokens: int,
    temperature: float = 1.0,
    luck: torch.Generator | None = None,
) -> Tensor:
    """B×T ids, each row the beginning of a text with its z. Without luck the likeliest token is taken every time."""
    device = model.writer.bias_V.device
    z_BK, rows = z_BK.to(device), len(z_BK)
    last_B1 = torch.full((rows, 1), model.vocab_size, device=device)
    memory, ids = model.writer.fresh(rows), []
    for _ in range(tokens):
        logp_BV, memory = model.next_token(last_B1, memory, z_BK)
        if luck is None:
            last_B1 = logp_BV.argmax(-1, keepdim=True)
        else:
            p_BV = (logp_BV / temperature).softmax(-1).cpu()
            last_B1 = torch.multinomial(p_BV, 1, generator=luck).to(device)
        ids.append(last_B1)
    return torch.cat(ids, dim=1).cpu()


@torch.no_grad()
def read(model: Variational, tokens_1T: Tensor) -> Posterior:
    """q(z | x) of a segment that begins a text."""
    tokens_1T = tokens_1T.to(model.writer.bias_V.device)
    hidden_1TH, _ = model.hidden(model.writer.begin_inputs(tokens_1T), model.writer.fresh(1))
    return model.posterior_of(hidden_1TH, tokens_1T)
