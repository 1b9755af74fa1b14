"""Labels for texts: training a classifier, measuring it, and looking at its mistakes."""

from lmlab.tasks.classification.training import resume as resume
from lmlab.tasks.classification.training import train as train
from lmlab.tasks.classification.using import evaluate as evaluate
