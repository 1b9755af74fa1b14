"""Pieces of pages: everything is escaped, rows that are short are filled."""

from __future__ import annotations

from lmlab_derive.shared import html
from lmlab_derive.shared.html import Row


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
