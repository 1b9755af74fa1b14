"""Named tables, made of small books."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmlab.text import sources, tables
from lmlab.text.labelled import Labelled, read_labelled


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tables, "FEWEST", 3)
    monkeypatch.setattr(tables, "MOST", 4)
    found = []
    for name, number in (("austen-emma", 9), ("carroll-alice", 3), ("blake-poems", 2)):
        path = tmp_path / f"{name}.txt"
        path.write_text("\n\n".join(f"{name} {i}\n" + "words " * 20 for i in range(number)) + "\n\nshort\n")
        found.append(path)
    monkeypatch.setattr(sources, "get", lambda name: found)
    return found


def test_authors_have_paragraphs_evenly_spread_and_the_rare_are_left_out(books: list[Path]) -> None:
    rows = tables.named_table("authors").read_text().splitlines()
    assert rows[0] == "text\tlabel"
    labels = [row.split("\t")[1] for row in rows[1:]]
    assert labels == ["austen"] * 4 + ["carroll"] * 3
    assert [row.split()[1] for row in rows[1:5]] == ["0", "2", "4", "6"]


def test_a_named_table_is_read_and_read_again(books: list[Path]) -> None:
    table = read_labelled("authors", split=(60, 20, 20))
    assert table.name == "authors"
    assert table.classes == ("austen", "carroll")
    assert Labelled.from_spec(table.spec()).parts["test"].sha256 == table.parts["test"].sha256


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("authors").write_text("good\ta\nbad\tb\nfine\ta\ndull\tb\n")
    assert read_labelled("authors", split=(100, 0, 0)).classes == ("a", "b")
