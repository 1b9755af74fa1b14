"""Latent variables: the bound that is learned, those that are reported, and texts from places of the latent space."""

from lmlab.tasks.latent.measuring import evaluate as evaluate
