"""Labels for texts: training a classifier, measuring it, and looking at its mistakes."""

from lmlab.classification.training import resume as resume
from lmlab.classification.training import train as train
from lmlab.classification.using import evaluate as evaluate
