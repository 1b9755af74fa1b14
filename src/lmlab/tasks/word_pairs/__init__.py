"""Two words combined into one vector: pairs with labels, training, scores beside simpler ways, and what lies near a pair."""

from lmlab.tasks.word_pairs.scores import evaluate as evaluate
from lmlab.tasks.word_pairs.training import resume as resume
from lmlab.tasks.word_pairs.training import train as train
