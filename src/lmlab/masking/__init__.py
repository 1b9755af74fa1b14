"""Filling blanks: training an encoder on masked tokens, measuring it, and filling what is left open in a text."""

from lmlab.masking.scores import evaluate as evaluate
