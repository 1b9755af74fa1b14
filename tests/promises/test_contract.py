"""The contract suite over every registered model, every variant of its settings, and every kind of tokenizer."""

from __future__ import annotations

import pytest
from cases import Case, build, cases

from lmlab.interface import LanguageModel, NeuralLanguageModel
from lmlab.models.registry import model_class, names
from lmlab.promises import subjects
from lmlab.promises.checks import check_long_texts_are_scored_like_short_ones
from lmlab.promises.learning import check_a_repeating_text_is_learned
from lmlab.promises.suite import promises
from thinning import thinned

CASES = cases()
SOON = [  # tokens that differ most: characters, unknown words; in bytes the plain settings alone
    case for case in CASES if case.tokenizer == "words" or (case.tokenizer == "byte" and not case.variant)
]


@pytest.mark.parametrize("case", thinned(CASES, SOON), ids=str)
def test_every_model_keeps_every_promise(case: Case) -> None:
    for promise in promises(build(case), subjects.tokenizer(case.tokenizer), tiny=case.tiny):
        try:
            promise.check()
        except Exception as error:
            raise AssertionError(f"{case}: {promise.name}: {error}") from error


# A random recurrent net may be chaotic, and then a rounding error grows with the text; the plain ones are not.
@pytest.mark.parametrize("case", [c for c in CASES if c.tiny and not c.variant], ids=str)
def test_long_texts_are_scored_like_short_ones(case: Case) -> None:
    check_long_texts_are_scored_like_short_ones(build(case))


# Where the states that are attended over are the sums themselves they grow without bound: see rnn_attention.py.
@pytest.mark.parametrize("case", [c for c in CASES if c.tiny and c.settings.get("attend_to") != "combined"], ids=str)
def test_a_repeating_text_is_learned(case: Case) -> None:
    model = build(case)
    if isinstance(model, NeuralLanguageModel):
        check_a_repeating_text_is_learned(model)


@pytest.mark.parametrize("name", names())
def test_a_class_has_the_name_it_is_registered_under(name: str) -> None:
    cls = model_class(name)
    assert cls.name == name
    assert issubclass(cls, LanguageModel)
