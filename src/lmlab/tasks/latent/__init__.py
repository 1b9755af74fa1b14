"""Latent variables: the bound that is learned, those that are reported, and texts from places of the latent space."""

from __future__ import annotations

from lmlab.models.registry import Kind, Role
from lmlab.tasks import TaskPackage

TASK = TaskPackage(__name__, reads_plain_text=True)
KINDS = (
    Kind(
        name="variational",
        where="lmlab.models.variational:Variational",
        about="a gru with a latent variable behind every segment, trained on a bound",
        role=Role.LATENT_VARIABLE_MODEL,
        task=TASK,
        use="latent RUN",
    ),
)
