"""Filling blanks: training an encoder on masked tokens, measuring it, and filling what is left open in a text."""

from lmlab.tasks.masked.scores import evaluate as evaluate
