"""Vectors for words from which words stand near which: training them, measuring them, and looking at them."""

from lmlab.wordvectors.training import resume as resume
from lmlab.wordvectors.training import train as train
from lmlab.wordvectors.using import evaluate as evaluate
