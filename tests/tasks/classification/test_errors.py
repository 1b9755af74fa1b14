"""Explanations of mistakes are true of the model: removing what they name moves the score as they say."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np
import pytest

import lmlab
from lmlab.config import Mistake
from lmlab.learn.run import Run
from lmlab.models.dan import DAN
from lmlab.tasks.classification.data import words_of
from lmlab.tasks.classification.misclassified import Explanation, explain, probabilities
from lmlab.tasks.classification.page import mistakes_page
from lmlab.tasks.classification.scores import log_odds

TEXT = "great great film and a dull dull dull plot, never fine"


def _parts(run: Run) -> tuple[DAN, tuple[str, ...]]:
    model = run.saved
    assert isinstance(model, DAN)
    return model.eval(), tuple(run.record.inputs.corpus["classes"])


@pytest.mark.parametrize("right", [0, 1])
def test_every_contribution_is_what_removing_the_word_changes(classifier: Run, right: int) -> None:
    model, classes = _parts(classifier)
    found = explain(model, classifier.tokenizer, classes, TEXT, right)
    predicted = classes.index(found.predicted)
    other = right if right != predicted else 1 - predicted
    ids = classifier.tokenizer.encode(words_of(TEXT)).ids
    whole = probabilities(model, [ids])[0]
    for one in found.contributions:
        without = ids[[classifier.tokenizer.piece(int(i)).strip() != one.word for i in ids]]
        p_K = probabilities(model, [without])[0]
        change = log_odds(whole[predicted], whole[other]) - log_odds(p_K[predicted], p_K[other])
        assert one.nats == pytest.approx(change, abs=1e-5)
        assert one.times == len(ids) - len(without)


def test_without_the_words_that_tipped_it_the_model_says_what_the_explanation_says(classifier: Run) -> None:
    model, classes = _parts(classifier)
    found = explain(model, classifier.tokenizer, classes, TEXT, 1)
    assert found.tipped_by
    kept = [word for word in TEXT.replace(",", " ,").split() if word not in found.tipped_by]
    label = lmlab.classify(classifier, " ".join(kept))[0]
    assert label.label == found.then != found.predicted
    fewer = [word for word in TEXT.replace(",", " ,").split() if word not in found.tipped_by[:-1]]
    assert lmlab.classify(classifier, " ".join(fewer))[0].label == found.predicted


def test_negations_are_named_and_nothing_is_said_of_order(classifier: Run) -> None:
    model, classes = _parts(classifier)
    found = explain(model, classifier.tokenizer, classes, TEXT, 1)
    assert "never" in found.negations
    said = " ".join(found.sentences)
    assert "cannot see what they negate" in said
    for word in ("before", "after", "order", "follow", "next to"):
        assert word not in said.lower()


def test_mistakes_are_the_surest_ones_and_really_mistakes(classifier: Run, tmp_path: Path) -> None:
    found = lmlab.mistakes(classifier, number=3, part="train", html=tmp_path / "page.html")
    result = lmlab.evaluate(classifier, part="train")
    wrong = result.examples - int(np.trace(np.array(result.confusion)))  # type: ignore[union-attr]
    assert len(found) == min(3, wrong)
    assert all(one.right != one.predicted for one in found)
    assert [one.p_predicted for one in found] == sorted((one.p_predicted for one in found), reverse=True)
    page = (tmp_path / "page.html").read_text()
    assert page.count("<h3") >= len(found)


def test_eval_sets_two_simple_models_beside_it_and_says_what_leaks_change(classifier: Run, table: Path) -> None:
    result = lmlab.evaluate(classifier)
    assert result.majority.accuracy.value == pytest.approx(0.5, abs=0.2)  # type: ignore[union-attr]
    assert result.scores.accuracy.low <= result.scores.accuracy.value <= result.scores.accuracy.high  # type: ignore[union-attr]
    assert result.bag_of_words.accuracy.value > 0.5  # type: ignore[union-attr]
    whole = lmlab.evaluate(classifier, table)  # most of it was trained on
    assert whole.copied.exact >= 240  # type: ignore[union-attr]
    assert whole.failures == ("held_out",)  # type: ignore[union-attr]
    assert whole.accuracy_without_copies is not None  # type: ignore[union-attr]
    assert result.failures == ()  # type: ignore[union-attr]
    assert whole.to_json()["part"] == "whole"


@pytest.mark.parametrize("number", [0, -1])
def test_fewer_mistakes_than_one_are_not_asked_for(classifier: Run, number: int) -> None:
    with pytest.raises(Mistake, match="1 or more"):
        lmlab.mistakes(classifier, number=number)


def test_the_page_shows_words_as_they_are_written() -> None:
    one = Explanation(
        example=3,
        text="I don't <like> it",
        right="bad",
        predicted="good",
        p_right=0.2,
        p_predicted=0.8,
        contributions=(),
        tipped_by=("don't",),
        then="bad",
        negations=(),
        near_neutral=False,
        words=4,
        unknown_words=0,
    )
    shown = html.unescape(mistakes_page("reviews", [one]))
    assert "Without “don't” it would say bad." in shown
    assert "I don't <like> it" in shown
