"""Vectors for words from which words stand near which: training them, measuring them, and looking at them."""

from lmlab.tasks.word_vectors.scores import evaluate as evaluate
from lmlab.tasks.word_vectors.training import resume as resume
from lmlab.tasks.word_vectors.training import train as train
