"""Two words combined into one vector: pairs with labels, training, scores beside simpler ways, and what lies near a pair."""

from lmlab.combining.scores import evaluate as evaluate
from lmlab.combining.training import resume as resume
from lmlab.combining.training import train as train
