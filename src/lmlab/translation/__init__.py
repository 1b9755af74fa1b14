"""One text in several languages: training a translator, measuring it, and translating."""

from lmlab.translation.evaluating import evaluate as evaluate
from lmlab.translation.training import resume as resume
from lmlab.translation.training import train as train
