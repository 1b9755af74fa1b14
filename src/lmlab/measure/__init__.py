"""Honest numbers: what a text costs under a model, how sure that is, and what was checked."""

from lmlab.measure.certificate import Certificate, Check, certify
from lmlab.measure.context import ContextPolicy
from lmlab.measure.interval import Interval, paired_difference
from lmlab.measure.ranks import Ranking, rank
from lmlab.measure.result import Result, evaluate
from lmlab.measure.score import Scored, score_part, score_stream

__all__ = [
    "Certificate",
    "Check",
    "ContextPolicy",
    "Interval",
    "Ranking",
    "Result",
    "Scored",
    "certify",
    "evaluate",
    "paired_difference",
    "rank",
    "score_part",
    "score_stream",
]
