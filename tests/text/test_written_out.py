"""Numbers, dates and times in three languages, as people write them."""

from __future__ import annotations

import datetime

import pytest

from lmlab.text import written_out as written


@pytest.mark.parametrize(
    ("n", "en", "de", "fr"),
    [
        (0, "zero", "null", "zéro"),
        (1, "one", "eins", "un"),
        (21, "twenty-one", "einundzwanzig", "vingt et un"),
        (71, "seventy-one", "einundsiebzig", "soixante et onze"),
        (80, "eighty", "achtzig", "quatre-vingts"),
        (81, "eighty-one", "einundachtzig", "quatre-vingt-un"),
        (99, "ninety-nine", "neunundneunzig", "quatre-vingt-dix-neuf"),
        (101, "one hundred and one", "einhunderteins", "cent un"),
        (200, "two hundred", "zweihundert", "deux cents"),
        (1001, "one thousand and one", "eintausendeins", "mille un"),
        (80_000, "eighty thousand", "achtzigtausend", "quatre-vingt mille"),
        (200_080, "two hundred thousand and eighty", "zweihunderttausendachtzig", "deux cent mille quatre-vingts"),
        (21_342, "twenty-one thousand three hundred and forty-two", "einundzwanzigtausenddreihundertzweiundvierzig",
         "vingt et un mille trois cent quarante-deux"),
    ],
)  # fmt: skip
def test_numbers(n: int, en: str, de: str, fr: str) -> None:
    assert written.number(n) == (en, de, fr)


def test_no_two_numbers_are_written_alike() -> None:
    for language in (written.english, written.german, written.french):
        assert len({language(n) for n in range(0, 10**6, 97)}) == len(range(0, 10**6, 97))


def test_dates() -> None:
    assert written.date(datetime.date(1984, 5, 3), weekday=True) == (
        "Thursday the third of May nineteen eighty-four",
        "Donnerstag, der dritte Mai neunzehnhundertvierundachtzig",
        "le jeudi trois mai mille neuf cent quatre-vingt-quatre",
    )
    assert written.date(datetime.date(2005, 8, 1), weekday=False) == (
        "the first of August two thousand and five",
        "der erste August zweitausendfünf",
        "le premier août deux mille cinq",
    )
    assert written.date(datetime.date(1907, 3, 31), weekday=False)[:2] == (
        "the thirty-first of March nineteen oh seven",
        "der einunddreißigste März neunzehnhundertsieben",
    )


@pytest.mark.parametrize(
    ("hour", "minute", "said"),
    [
        (7, 0, ("seven o'clock in the morning", "sieben Uhr morgens", "sept heures du matin")),
        (1, 30, ("half past one in the morning", "halb zwei morgens", "une heure et demie du matin")),
        (7, 35, ("twenty-five to eight in the morning", "fünf nach halb acht morgens",
                 "huit heures moins vingt-cinq du matin")),
        (7, 45, ("a quarter to eight in the morning", "Viertel vor acht morgens", "huit heures moins le quart du matin")),
        (3, 21, ("twenty-one minutes past three in the morning", "einundzwanzig Minuten nach drei morgens",
                 "trois heures vingt et une du matin")),
    ],
)  # fmt: skip
def test_times(hour: int, minute: int, said: written.Sentence) -> None:
    assert written.time(hour, minute, 0) == said


def test_sentences_differ_and_the_same_seed_brings_the_same() -> None:
    found = written.sentences(300, 1)
    assert len({row[0] for row in found}) == 300
    assert found == written.sentences(300, 1)
    assert found != written.sentences(300, 2)
    assert not any("\t" in text or "-  " in text for row in found for text in row)
