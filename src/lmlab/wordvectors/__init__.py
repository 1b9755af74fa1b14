"""Vectors for words from which words stand near which: training them, measuring them, and looking at them."""

from lmlab.wordvectors.scores import evaluate as evaluate
from lmlab.wordvectors.training import resume as resume
from lmlab.wordvectors.training import train as train
