"""One text in several languages: training a translator, measuring it, and translating."""

from lmlab.tasks.translation.evaluating import evaluate as evaluate
from lmlab.tasks.translation.training import resume as resume
from lmlab.tasks.translation.training import train as train
