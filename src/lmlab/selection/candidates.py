"""Which candidates a search begins with: kinds that win on texts of this size in this time, and tokenizers for this text."""

from __future__ import annotations

from collections.abc import Sequence

from lmlab.comparison.folder import entry_name
from lmlab.comparison.time_shares import AROUND_S
from lmlab.models.registry import Way, kind_of
from lmlab.selection.records import Candidate, Selection
from lmlab.selection.rungs import budgets_in_all, starts_in_all
from lmlab.text.corpus import Corpus

COUNTED = ("ngram",)
LEARNED = ("gru", "gpt", "lstm")  # in the order in which short budgets take them
COUNT_BYTE_S = 3e-6  # rough seconds to count a training byte with one tokenizer
COUNTING = 0.25  # share of the budget that counting may take, beyond the first tokenizer
BPE_SIZES = ((300_000, 512), (3_000_000, 1024), (30_000_000, 2048))  # training bytes up to which so many ids are best
MOST_BPE = 4096
WORDS_FROM = 100_000  # training bytes below which too few words occur twice
RESERVE, LEAST_RESERVE_S, MOST_RESERVE_S = 0.16, 3.0, 120.0  # share of the budget for choosing and measuring
# Candidates that learn, by the seconds of training in all; the rungs at which half of them are stopped.
FIELDS = ((15.0, 1), (45.0, 2), (300.0, 4))
MOST_LEARNED = 8
RUNGS = {1: (1.0,), 2: (0.2, 1.0), 4: (0.1, 0.3, 1.0), 8: (0.05, 0.15, 0.35, 1.0)}
LONGEST_WORD = 12  # bytes of a word on average, above which a text has no spaces between words
LEAST_TRAIN_S = 0.5


def tokenizers_for(corpus: Corpus, budget_s: float) -> list[str]:
    """Return the tokenizers that are tried by counting, the most promising first, as many as there is time for."""
    train = corpus.train
    size = next((size for most, size in BPE_SIZES if train.bytes <= most), MOST_BPE)
    found, affordable = [f"bpe:{size}", "char"], int(COUNTING * budget_s / (COUNT_BYTE_S * max(1, train.bytes)))
    # Words are read to count them, which takes as long as the first step of counting.
    if affordable > len(found) and train.bytes >= WORDS_FROM and train.words * LONGEST_WORD > train.bytes:
        found.append("words")
    return found[: max(1, affordable)]


def counted(models: Sequence[str], tokenizers: Sequence[str]) -> list[Candidate]:
    """Return the candidates that count."""
    kinds = [model for model in models if kind_of(model).way is Way.COUNTS]
    return [_candidate(model, spec) for spec in tokenizers for model in kinds]


def selection(
    models: Sequence[str], tokenizers: Sequence[str], *, left_s: float, budget_s: float, counts: Sequence[Candidate]
) -> Selection:
    """Return the plan of the search: who learns, for how long, and when the field is halved.

    Args:
        models: the kinds of models, those that learn in the order in which short budgets take them.
        tokenizers: the best tokenizer first, by the validation of the models that count.
        left_s: seconds left of the budget.
        budget_s: the whole budget.
        counts: the candidates that count, which are finished.
    """
    reserve_s = min(MOST_RESERVE_S, max(LEAST_RESERVE_S, RESERVE * budget_s))
    training_s = left_s - reserve_s
    wanted = next((number for most_s, number in FIELDS if training_s < most_s), MOST_LEARNED)
    learned = _field([model for model in models if kind_of(model).way is Way.LEARNS], tokenizers, wanted)
    number = max((size for size in RUNGS if size <= len(learned)), default=0)
    learned = learned[:number]
    if not learned:
        return Selection(candidates=tuple(counts), rungs=(1.0,), train_s=0.0, reserve_s=reserve_s)
    rungs = RUNGS[number]
    around_s = AROUND_S * starts_in_all(rungs, number)
    train_s = max(LEAST_TRAIN_S, (training_s - around_s) / budgets_in_all(rungs, number))
    return Selection(candidates=(*counts, *learned), rungs=rungs, train_s=train_s, reserve_s=reserve_s)


def _field(models: Sequence[str], tokenizers: Sequence[str], wanted: int) -> list[Candidate]:
    """Return the candidates that learn: every kind with the best tokenizer, then with the next one, then other sizes."""
    first, *others = tokenizers
    pairs = [(model, first) for model in models] + [(model, spec) for spec in others[:1] for model in models]
    found = [_candidate(model, spec) for model, spec in pairs]
    if wanted > len(found):
        found += [_candidate(c.model, c.tokenizer, width) for c in found[: len(models)] for width in (1.5, 0.7)]
    return found[:wanted]


def _candidate(model: str, tokenizer: str, width: float = 1.0) -> Candidate:
    usual = entry_name(model, tokenizer, 0)
    name = usual if width == 1 else f"{usual}-{'wider' if width > 1 else 'narrower'}"
    counts = kind_of(model).way is Way.COUNTS
    return Candidate(
        name=name, model=model, tokenizer=tokenizer, counts=counts, width=width, like="" if width == 1 else usual
    )
