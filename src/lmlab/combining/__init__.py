"""Two words combined into one vector: pairs with labels, training, scores beside simpler ways, and what lies near a pair."""

from lmlab.combining.training import resume as resume
from lmlab.combining.training import train as train
from lmlab.combining.using import evaluate as evaluate
