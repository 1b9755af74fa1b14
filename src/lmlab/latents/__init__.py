"""Latent variables: the bound that is learned, those that are reported, and texts from places of the latent space."""

from lmlab.latents.measuring import evaluate as evaluate
