"""Tables fit every width: fewer columns, never a cut one; on any console."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from lmlab_derive.shared.console import say
from lmlab_derive.shared.plain import plain, print_what_can_be_printed
from lmlab_derive.shared.table import Column, print_list, print_table

COLUMNS = [
    Column("rank"),
    Column("model", left=True),
    Column("bits/byte"),
    Column("95% interval", expendable=1),
    Column("seconds", expendable=2),
    Column("memory", expendable=3),
]
ROWS = [
    ["1–2 ab", Text("rnn-attention bpe:1024", style="bold"), "2.7382", "2.614–2.862", "23.2", "521 MB"],
    ["", "xz", "2.7664"],
]


def printed(width: int, columns: list[Column] = COLUMNS, encoding: str = "utf-8") -> str:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding=encoding, errors="strict", newline="\n")
    print_table(Console(file=stream, width=width), columns, ROWS, elsewhere="the report has them")
    stream.flush()
    return buffer.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [45, 60, 80, 100, 120, 160])
def test_no_cell_is_cut_or_broken_at_any_width(width: int, encoding: str) -> None:
    out = printed(width, encoding=encoding)
    table = out.partition("Too narrow")[0]
    assert all(len(line) <= width for line in table.splitlines())
    assert "…" not in out
    assert len(table.splitlines()) == 2 + len(ROWS)
    shown = [column.title for column in COLUMNS if column.title in table]
    missing = [column.title for column in COLUMNS if column.title not in table]
    assert shown[:3] == ["rank", "model", "bits/byte"]
    assert missing == [column.title for column in COLUMNS[len(shown) :]]
    assert all(title in out for title in missing)
    assert ("Too narrow" in out) == bool(missing)
    dash = "-" if encoding == "ascii" else "–"
    assert f"1{dash}2 ab  rnn-attention bpe:1024" in table


def test_what_must_be_shown_and_does_not_fit_is_folded_whole() -> None:
    out = printed(30)
    assert "…" not in out
    # between words, where that is enough
    assert {"rnn-attention", "bpe:1024", "2.7382", "1–2", "ab"} <= set(out.split())
    assert all(len(line) <= 20 for line in printed(20).partition("Too narrow")[0].splitlines())  # else within them


def test_titles_are_folded_before_a_column_is_left_out() -> None:
    columns = [*COLUMNS[:2], Column("bits per byte"), *COLUMNS[3:]]
    out = printed(70, columns)
    assert "Too narrow" not in out
    assert "bits per" in out.splitlines()[0]
    assert out.splitlines()[1].split()[-3:] == ["interval", "seconds", "memory"]


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # the second is what Python chooses in the C locale
def test_printing_never_fails_for_a_character(errors: str, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(buffer, encoding="ascii", errors=errors, newline="\n"))
    print_what_can_be_printed()
    print("2.614–2.862 日 \udcff", flush=True)
    assert buffer.getvalue() == b"2.614-2.862 ? ?\n"


def test_characters_that_a_console_does_not_know_get_their_likeness() -> None:
    assert plain("1–2 ± 0.1 → ✓ 日") == "1-2 +/- 0.1 -> v ?"


def test_a_text_cannot_command_the_terminal_from_a_table_or_a_sentence() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80)
    print_table(console, [Column("text", left=True)], [["a\x1b[31mred"]])
    say(console, "filled with \x1b[2J")
    assert "\x1b" not in stream.getvalue()
    assert "a\\x1b[31mred" in stream.getvalue()
    assert "filled with \\x1b[2J" in stream.getvalue()


def test_a_long_word_of_a_list_is_folded_and_never_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_list({"markov": "a chain; options: markov:order=2,alphabet=4,length=1000000,seed=0"})
    out = capsys.readouterr().out
    assert "…" not in out
    assert "markov:order=2,alphabet=4,length=1000000,seed=0" in "".join(out.split())
    assert max(map(len, out.splitlines())) <= 40


def test_a_sentence_that_is_set_in_stays_set_in_where_it_is_broken() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=20, force_terminal=True, color_system=None, soft_wrap=True)
    say(console, "    one two three four five six")
    assert [line.rstrip() for line in stream.getvalue().splitlines()] == ["    one two three", "    four five six"]


def test_an_interval_is_stacked_below_its_number_before_it_is_broken() -> None:
    stream = io.StringIO()
    columns = [Column("", left=True), Column("objective"), Column("explained")]
    print_table(Console(file=stream, width=41), columns, [["frequencies alone", "0.03 [0.01, 0.04]", "0.8 [0.7, 0.9]"]])
    lines = [line.split() for line in stream.getvalue().splitlines()[2:]]
    assert lines == [["frequencies", "0.03", "0.8", "[0.7,", "0.9]"], ["alone", "[0.01,", "0.04]"]]
