"""Pairs of sentences: tables, aligned files and names; what is wrong is named by its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmlab.config import Mistake
from lmlab.text.sentence_pairs import Pairs, read_pairs
from mistakes import mistake

TABLE = "en\tde\tfr\n" + "".join(f"one {i}\teins {i}\tun {i}\n" for i in range(20))


def table(folder: Path, text: str = TABLE, name: str = "pairs.tsv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def aligned(folder: Path, part: str = "train", lines: int = 6, **others: int) -> None:
    for language, count in {"de": lines, "en": lines, "fr": lines, **others}.items():
        (folder / f"{part}.{language}").write_text("".join(f"{language} {i}\n" for i in range(count)))


def test_a_table_is_divided_and_read_again_to_the_same(tmp_path: Path) -> None:
    pairs = read_pairs(table(tmp_path), seed=3)
    assert pairs.languages == ("en", "de", "fr")
    assert [len(part) for part in pairs.parts.values()] == [16, 2, 2]
    rows = [row for part in pairs.parts.values() for row in part.texts]
    assert sorted(rows) == sorted((f"one {i}", f"eins {i}", f"un {i}") for i in range(20))
    assert Pairs.from_spec(pairs.spec()).spec() == pairs.spec()
    assert pairs.copied(pairs.parts["test"])[1].number == 0
    table(tmp_path, "en\tde\tfr\n" + "one\teins\tun\n" * 20)
    again = read_pairs(tmp_path / "pairs.tsv")
    assert again.copied(again.parts["test"])[1].exact == 2  # as often as it is there
    table(tmp_path, TABLE.replace("eins 4", "vier"))
    with pytest.raises(Mistake, match="has changed since"):
        Pairs.from_spec(pairs.spec())


def test_columns_choose_and_order_the_languages(tmp_path: Path) -> None:
    pairs = read_pairs(table(tmp_path), columns=["fr", "en"], split=(100, 0, 0))
    assert pairs.languages == ("fr", "en")
    assert pairs.parts["train"].texts[0] == ("un 0", "one 0")


def test_aligned_files_of_a_folder_are_parts_and_english_is_translated(tmp_path: Path) -> None:
    aligned(tmp_path)
    aligned(tmp_path, "val", 2)
    aligned(tmp_path, "test_2016", 3)
    pairs = read_pairs(tmp_path)
    assert pairs.languages == ("en", "de", "fr")
    assert [len(part) for part in pairs.parts.values()] == [6, 2, 3]
    assert read_pairs(tmp_path / "train.de").languages == ("de", "en", "fr")
    aligned(tmp_path, "test_2017", 3)
    with mistake("part-of-several-files"):
        read_pairs(tmp_path)


def test_a_separator_inside_a_sentence_ends_no_line(tmp_path: Path) -> None:
    aligned(tmp_path)
    (tmp_path / "train.en").write_text("".join(f"a\u2028b\x0bc {i}\n" for i in range(6)), encoding="utf-8")
    assert len(read_pairs(tmp_path, split=(100, 0, 0)).parts["train"]) == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("en\tde\nyes\tja\nno\n", "line 3: 1 column"),
        ("en\tde\nyes\tja\nno\t \n", "line 3: the de sentence"),
        ("en\tde\nyes\tja\n\t\nno\tnein\n", "line 3: the en sentence"),
        ("en\tde\n", "has no pairs"),
        ("", "pairs-without-header"),
        ("A dog runs.\tEin Hund läuft.\nyes\tja\n", "pairs-without-header"),
        ("en\nyes\n", "pairs-without-header"),
        ("en\ten\nyes\tja\n", "columns-not-languages"),
    ],
)
def test_a_bad_table_is_one_line_that_says_where(tmp_path: Path, text: str, said: str) -> None:
    with mistake(said):
        read_pairs(table(tmp_path, text), split=(100, 0, 0))


def test_bad_files_are_one_line_that_says_where(tmp_path: Path) -> None:
    aligned(tmp_path, fr=4)
    with mistake("pairs-not-aligned", "line 5"):
        read_pairs(tmp_path)
    with pytest.raises(Mistake, match="no language 'it'"):
        read_pairs(table(tmp_path), columns=["en", "it"])
    with pytest.raises(Mistake, match="there is no file"):
        read_pairs(tmp_path / "nothing.tsv")
    with pytest.raises(Mistake, match="there is no file"):
        read_pairs(tmp_path / "nothing.en")
    alone = tmp_path / "alone"
    alone.mkdir()
    with pytest.raises(Mistake, match="has no training part"):
        read_pairs(alone)
    (alone / "train.en").write_text("yes\n")
    with pytest.raises(Mistake, match="stands alone"):
        read_pairs(alone / "train.en")
    with pytest.raises(Mistake, match="share above 0"):
        read_pairs(table(tmp_path), split=(0, 50, 50))


def test_numbers_need_nothing_and_have_as_many_pairs_as_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path))
    pairs = read_pairs("numbers:50")
    assert sum(len(part) for part in pairs.parts.values()) == 50
    assert (pairs.name, pairs.languages) == ("numbers:50", ("en", "de", "fr"))
    assert Pairs.from_spec(pairs.spec()).spec() == pairs.spec()
    with mistake("corpus-without-pairs"):
        read_pairs("sotu")
    with pytest.raises(Mistake, match="such as numbers:5000"):
        read_pairs("numbers:many")
