"""Honest numbers: what a text costs under a model, how sure that is, and what was checked."""

from lmlab.measure.certificate import Certificate, Check, certify
from lmlab.measure.interval import Interval, paired_difference
from lmlab.measure.ranks import Ranking, rank
from lmlab.measure.result import Result, evaluate
from lmlab.measure.score import score_part, score_stream
from lmlab.measure.scored import Scored
from lmlab.measure.spread_sample import Spread, spread

__all__ = [
    "Certificate",
    "Check",
    "Interval",
    "Ranking",
    "Result",
    "Scored",
    "Spread",
    "certify",
    "evaluate",
    "paired_difference",
    "rank",
    "score_part",
    "score_stream",
    "spread",
]
