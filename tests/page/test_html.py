"""Pieces of pages: everything is escaped, rows that are short are filled, numbers read the same everywhere."""

from __future__ import annotations

import math

import pytest

from lmlab.page import html, numbers
from lmlab.page.html import Row


def test_control_characters_are_shown_as_pictures() -> None:
    assert html.escape("a\x00b\r\n") == "a␀b␍\n"


def test_titles_and_labels_cannot_break_out() -> None:
    page = html.document("<a> & b", "<p>body</p>", skip_to=("x", "<y>"))
    assert "<title>&lt;a&gt; &amp; b</title>" in page
    assert "Skip to &lt;y&gt;" in page


def test_the_last_cell_of_a_short_row_spans_the_columns_that_are_left() -> None:
    table = html.table(["a", "b", "c"], [Row(["1", "2", "3"]), Row(["1", "all of it"], "failed")], label="A table")
    assert (
        '<tr class="failed"><th scope="row" class="words">1</th><td class="words" colspan="2">all of it</td></tr>'
        in table
    )
    assert table.count("colspan") == 1
    assert 'role="region"' in table


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (3.14159, "3.1"),
        (99.96, "100.0"),
        (1234.4, "1,234"),
        (12_345.0, "12.3k"),
        (3.2e12, "3.2T"),
        (1e30, "1.0e+30"),
    ],
)
def test_large_numbers_stay_short(value: float | None, shown: str) -> None:
    assert numbers.short(value) == shown


def test_what_is_infinite_is_said_to_be_so() -> None:
    assert numbers.bits(None) == numbers.bits(math.inf) == "infinite"
    assert numbers.bits(1.23456) == "1.2346"
    assert numbers.interval(None) == numbers.plus_minus(math.nan) == ""
