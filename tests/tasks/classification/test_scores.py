"""Scores of classifiers against scikit-learn's definitions written out, and intervals that cover."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmlab.measure.row_intervals import over_rows
from lmlab.results import Figure
from lmlab.tasks.classification.scores import (
    BagOfWords,
    _counts,
    _f1_of_counts,
    accuracy,
    bits,
    calibration,
    calibration_error,
    gain,
    macro_f1,
    majority,
    of_share,
    scores,
)

P_BK = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.5, 0.4, 0.1], [0.2, 0.2, 0.6]])
LABELS_B = np.array([0, 1, 1, 2])


def test_accuracy_bits_and_f1_by_hand() -> None:
    assert accuracy(P_BK, LABELS_B) == 0.75
    assert bits(P_BK, LABELS_B).value == pytest.approx(-np.log2([0.7, 0.6, 0.4, 0.6]).mean())
    # class 0: precision 1/2, recall 1; class 1: 1, 1/2; class 2: 1, 1
    assert macro_f1(P_BK, LABELS_B) == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)


def test_a_class_that_is_neither_there_nor_predicted_counts_nothing() -> None:
    assert macro_f1(np.array([[0.9, 0.1, 0.0]]), np.array([0])) == 1.0


def test_who_is_always_right_has_no_worse_f1_where_a_draw_misses_rare_classes() -> None:
    labels_B = np.arange(80) // 2  # two examples of each class
    found = scores(np.eye(40)[labels_B], labels_B).macro_f1
    assert (found.value, found.low, found.high) == (1.0, of_share(80, 80).low, 1.0)


def test_thirty_right_or_wrong_answers_are_no_proof_for_f1_either() -> None:
    labels_B = np.arange(30) % 2
    always, never = scores(np.eye(2)[labels_B], labels_B), scores(np.eye(2)[1 - labels_B], labels_B)
    assert (always.macro_f1.low, always.macro_f1.high) == (always.accuracy.low, 1.0)
    assert (never.macro_f1.low, never.macro_f1.high) == (0.0, never.accuracy.high)
    assert always.accuracy.low < 0.9
    assert never.accuracy.high > 0.1


def test_two_classifiers_that_agree_on_thirty_examples_may_differ_on_others() -> None:
    right_B = np.arange(30) > 3
    found = gain(right_B, right_B)
    assert found.value == 0.0
    assert found.low == -found.high
    assert 0.03 < found.high < 0.12


@pytest.mark.parametrize("disagree", [0.02, 0.1, 0.3])
def test_the_interval_of_a_gain_covers_as_often_as_it_says(disagree: float) -> None:
    random, truth, covered = np.random.default_rng(3), disagree / 2, 0
    for _ in range(1000):
        which_B = random.random(60)
        ours_B, theirs_B = which_B > 0.25 * disagree, (which_B > disagree) | (which_B < 0.25 * disagree)
        found = gain(ours_B, theirs_B)
        covered += found.low <= truth <= found.high
    assert covered >= 935


def test_a_gain_is_never_beyond_what_shares_can_be() -> None:
    found = gain(np.ones(3, dtype=bool), np.zeros(3, dtype=bool))
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low > -1


def test_who_is_right_as_often_as_sure_is_calibrated() -> None:
    random = np.random.default_rng(0)
    sure_B = random.uniform(0.5, 1, 40_000)
    p_BK = np.stack([sure_B, 1 - sure_B], 1)
    honest = (random.random(40_000) > sure_B).astype(int)
    assert calibration_error(p_BK, honest) < 0.01
    assert calibration_error(p_BK, np.zeros(40_000, int)) == pytest.approx(0.25, abs=0.01)  # always right


@pytest.mark.parametrize("examples", [1, 12, 40, 400])
def test_the_interval_of_the_calibration_error_holds_its_own_number(examples: int) -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        sure_B = random.uniform(0.5, 1, examples)
        labels_B = (random.random(examples) > sure_B).astype(int)
        found = calibration(np.stack([sure_B, 1 - sure_B], 1), labels_B, seed)
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.value == calibration_error(np.stack([sure_B, 1 - sure_B], 1), labels_B)


@pytest.mark.slow
@pytest.mark.parametrize("over", [0.0, 0.15])
def test_the_interval_of_the_calibration_error_covers_the_true_one(over: float) -> None:
    """bench/bench_calibration.py looks at more kinds of classifier."""
    random, covered = np.random.default_rng(3), []
    for seed in range(60):
        sure_B = random.uniform(0.5, 1, 100)
        labels_B = (random.random(100) > sure_B - over).astype(int)
        found = calibration(np.stack([sure_B, 1 - sure_B], 1), labels_B, seed)
        covered.append(found.low <= over <= found.high)
    assert np.mean(covered) >= 0.87  # 60 trials of 95%


def test_forty_right_answers_do_not_show_that_who_is_sure_may_be() -> None:
    found = calibration(np.tile([0.999, 0.001], (40, 1)), np.zeros(40, int))
    # who is right so often is so 40 times in 1 of 40
    assert found.high == pytest.approx(0.999 - 0.025 ** (1 / 40), abs=0.005)


def test_examples_of_equal_sureness_are_judged_together_whatever_their_order() -> None:
    labels_B = np.array([0] * 50 + [1] * 50)
    assert calibration_error(np.full((100, 2), 0.5), labels_B) == pytest.approx(0.0)


def test_wilsons_interval_is_the_published_one_and_knows_that_no_mistakes_are_no_proof() -> None:
    found = of_share(40, 40)
    assert found.high == 1.0
    assert found.low == pytest.approx(0.9124, abs=1e-4)
    assert of_share(15, 20).low == pytest.approx(0.5313, abs=1e-4)
    assert of_share(15, 20).high == pytest.approx(0.8881, abs=1e-4)


def test_accuracy_intervals_cover_as_often_as_they_say() -> None:
    random = np.random.default_rng(1)
    covered = [of_share(int((random.random(200) < 0.93).sum()), 200) for _ in range(2000)]
    share = np.mean([figure.low <= 0.93 <= figure.high for figure in covered])
    assert 0.92 <= share <= 0.98


def test_intervals_of_f1_and_bits_cover() -> None:
    random = np.random.default_rng(2)
    truth = scores(*_drawn(random, 200_000))
    covered = []
    for _ in range(400):
        p_BK, labels_B = _drawn(random, 60)
        f1 = over_rows(_f1_of_counts, _counts(p_BK, labels_B), least=0.0, most=1.0)
        covered.append((_holds(f1, truth.macro_f1.value), _holds(bits(p_BK, labels_B), truth.bits.value)))
    for share in np.mean(covered, axis=0).tolist():
        assert 0.92 <= share <= 0.98


def _holds(figure: Figure, truth: float) -> bool:
    return figure.low <= truth <= figure.high


def _drawn(random: np.random.Generator, examples: int) -> tuple[np.ndarray, np.ndarray]:
    labels_B = random.integers(0, 2, examples)
    said_B = np.where(random.random(examples) < 0.8, labels_B, 1 - labels_B)
    return np.eye(2)[said_B] * 0.8 + 0.1, labels_B


def test_naive_bayes_is_bayes_rule_with_one_added() -> None:
    ids_N, starts_B, labels_B = np.array([0, 0, 1, 1, 2]), np.array([0, 3, 5]), np.array([0, 1])
    bag = BagOfWords.fit(ids_N, starts_B, labels_B, vocab_size=3, labels=2)
    # words of label 0: 0 0 1; of label 1: 1 2
    like0 = (2 / 4) * (3 / 6) * (1 / 6)  # a text "0 2" under label 0
    like1 = (2 / 4) * (1 / 5) * (2 / 5)
    p_BK = bag.probabilities(np.array([0, 2]), np.array([0, 2]))
    assert p_BK[0].tolist() == pytest.approx([like0 / (like0 + like1), like1 / (like0 + like1)])


def test_the_majority_says_the_shares_of_training_with_one_added() -> None:
    assert majority(np.array([0, 0, 1]), 2, 2).tolist() == [[pytest.approx(3 / 5), pytest.approx(2 / 5)]] * 2
    assert math.isclose(bits(majority(np.array([0, 1]), 2, 1), np.array([0])).value, 1.0)


def test_a_class_that_training_had_not_costs_the_majority_a_number_of_bits_that_means_something() -> None:
    assert bits(majority(np.zeros(30, dtype=int), 2, 1), np.array([1])).value == pytest.approx(5.0)  # 1 in 32
