"""The spelling model is a proper distribution over all strings, and a good one."""

from __future__ import annotations

import math
import re
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmlab.text.spelling import Spelling, _UnseenCharacters
from thinning import examples

WORDS = {"abba": 2, "ab": 1, "baab": 1, "b": 3, "\n\t": 1}
SPELLINGS = [Spelling(WORDS), Spelling(WORDS, ["a", "abb", "aa", "\n", "c"])]
END, BEGIN = "END", "BEGIN"


def naive_kneser_ney(words: dict[str, int], order: int, outcomes: list[str]):
    """Interpolated Kneser-Ney from its definition, with dictionaries: p(outcome, history)."""
    raw: dict[int, dict[tuple, dict[str, float]]] = {m: defaultdict(lambda: defaultdict(float)) for m in range(order)}
    for word, times in words.items():
        symbols = [BEGIN, *word, END]
        for i in range(1, len(symbols)):
            for m in range(min(order, i + 1)):
                raw[m][tuple(symbols[i - m : i])][symbols[i]] += times
    counts: dict[int, dict[tuple, dict[str, float]]] = {order - 1: raw[order - 1]}
    for m in range(order - 1):
        counts[m] = defaultdict(lambda: defaultdict(float))
        for context, after in raw[m].items():
            for outcome, times in after.items():
                if context[:1] == (BEGIN,):
                    counts[m][context][outcome] = times
                else:
                    longer = [c for c in raw[m + 1] if c[1:] == context and outcome in raw[m + 1][c]]
                    counts[m][context][outcome] = len(longer)
    discount = {}
    for m in range(order):
        values = [n for after in counts[m].values() for n in after.values()]
        once, twice = values.count(1), values.count(2)
        discount[m] = once / (once + 2 * twice) if once and twice else 0.75

    def p(outcome: str, history: list[str]) -> float:
        value = 1 / len(outcomes)
        for m in range(min(order, len(history) + 1)):
            after = counts[m].get(tuple(history[len(history) - m :]))
            if not after:
                break
            total = sum(after.values())
            value = (max(after.get(outcome, 0) - discount[m], 0) + discount[m] * len(after) * value) / total
        return value

    return p


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_are_those_of_the_definition(order: int) -> None:
    spelling = Spelling(WORDS, order=order)
    outcomes = [*spelling.characters, "escape", END]
    p = naive_kneser_ney(WORDS, order, outcomes)
    for word in ["", "a", "ab", "abba", "bbbb", "\n\t", "ba\tb"]:
        symbols = [*word, END]
        nats = -sum(math.log(p(s, [BEGIN, *symbols[:i]])) for i, s in enumerate(symbols))
        assert spelling.nats([word])[0] == pytest.approx(nats, rel=1e-12)


@pytest.mark.parametrize("known", [[], ["a", "ab", "abb"]])
def test_all_strings_together_have_probability_one(known: list[str]) -> None:
    """Exact enumeration over a tiny alphabet; characters never seen are alike, so one stands for all of them."""
    spelling = Spelling({"ab": 2, "b": 1}, known, order=3)
    stranger = spelling.symbols("z")[:-1]

    def ended_and_open(prefix: list[int], depth: int) -> tuple[float, float]:
        p = spelling.distribution(prefix)
        ended, still_open = p[spelling.end], 0.0
        strangers = p[spelling.first_byte : spelling.end].sum()
        for following, mass in [([0], p[0]), ([1], p[1]), (stranger, strangers)]:
            if depth == 0:
                still_open += mass
            else:
                e, o = ended_and_open(prefix + following, depth - 1)
                ended, still_open = ended + mass * e, still_open + mass * o
        return ended, still_open

    ended, still_open = ended_and_open([], 7)
    assert ended + still_open == pytest.approx(1, abs=1e-12)
    assert ended > 0.9


def test_characters_never_seen_share_exactly_the_escape() -> None:
    unseen = _UnseenCharacters("aé中🦜")
    codepoints = np.array([c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and chr(c) not in "aé中🦜"])
    assert np.exp(-unseen.nats(codepoints)).sum() == pytest.approx(1)


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(st.text(st.characters(codec="utf-8"), max_size=8) | st.text("abc\n", max_size=8), st.sampled_from(SPELLINGS))
def test_symbols_one_by_one_cost_what_the_word_costs(word: str, spelling: Spelling) -> None:
    assume(word not in spelling.known)
    symbols = spelling.symbols(word)
    assert spelling.word(symbols) == word
    nats = 0.0
    for i, symbol in enumerate(symbols):
        p = spelling.distribution(symbols[:i])
        assert p.sum() == pytest.approx(1)
        assert (p >= 0).all()
        nats -= math.log(p[symbol])
    assert spelling.nats([word])[0] == pytest.approx(nats)


def test_words_of_the_vocabulary_are_taken_out_and_their_share_goes_to_the_others() -> None:
    """The others keep their proportions: they are as likely as before, given that the word is unknown."""
    known = ["ab", "zz"]
    together = Spelling(WORDS | dict.fromkeys(known, 1) | {"ab": WORDS["ab"] + 1})
    spelling = Spelling(WORDS, known)
    others = ["abba", "b", "", "q🦜", "abab"]
    left = 1 - np.exp(-together.nats(known)).sum()
    assert spelling.nats(others) == pytest.approx(together.nats(others) + math.log(left))
    assert np.isinf(spelling.nats(known)).all()


def test_many_words_at_once_cost_what_each_costs_alone() -> None:
    spelling = Spelling(WORDS)
    words = ["abba", "", "ß", "ab", "x" * 30]
    assert spelling.nats(words) == pytest.approx([spelling.nats([w])[0] for w in words])
    assert len(spelling.nats([])) == 0


def test_without_any_example_it_is_still_a_distribution() -> None:
    spelling = Spelling({})
    assert spelling.distribution([]).sum() == pytest.approx(1)
    assert np.isfinite(spelling.nats(["anything", ""])).all()


def test_samples_follow_the_distribution() -> None:
    spelling = Spelling({"ab": 6, "ba": 2}, ["a", "bab"])
    generator = np.random.default_rng(0)
    drawn = [spelling.sample(generator) for _ in range(400)]
    for word in ("ab", "ba"):
        p = math.exp(-spelling.nats([word])[0])
        assert abs(drawn.count(word) / 400 - p) < 4 * math.sqrt(p * (1 - p) / 400)
    assert not set(drawn) & {"a", "bab"}


def test_it_spells_rare_english_words_far_better_than_letter_frequencies() -> None:
    from pydoc_data.topics import topics

    words = sorted({word for topic in topics.values() for word in re.findall(r"[a-z]{4,}", topic)})
    examples, unseen = {w: 1 for i, w in enumerate(words) if i % 5}, words[::5]
    cost = {order: Spelling(examples, order=order).nats(unseen).sum() for order in (1, 7)}
    uniform = sum(len(w) + 1 for w in unseen) * math.log(27)
    assert cost[7] < 0.75 * cost[1] < 0.75 * uniform


def test_saving_and_loading_keeps_every_probability() -> None:
    spelling = Spelling(WORDS, ["the", "abb"])
    again = Spelling.from_json(spelling.to_json(), ["abb", "the"])
    assert again.nats(["abba", "new", "🦜"]).tolist() == spelling.nats(["abba", "new", "🦜"]).tolist()
