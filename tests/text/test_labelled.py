"""Tables of texts with labels: every format, and every way a table can be wrong, with the line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from lmlab.config import Mistake
from lmlab.text.labelled import Labelled, read_labelled
from mistakes import mistake

ROWS = [("good", "a fine film"), ("bad", "a dull film"), ("good", "what a fine day"), ("bad", "how dull it is")] * 5


def test_every_format_holds_the_same_examples(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in ROWS))
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(f'"{text}",{label}\n' for label, text in ROWS))
    (tmp_path / "a.jsonl").write_text(
        "".join(f'{{"id": 7, "review": "{text}", "stars": "{label}"}}\n' for label, text in ROWS)
    )
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress((tmp_path / "a.tsv").read_bytes()))
    tables = [read_labelled(tmp_path / name) for name in ("a.tsv", "a.csv", "a.jsonl", "b.tsv.gz")]
    assert tables[0].classes == ("bad", "good")
    assert {len(part) for part in tables[0].parts.values()} == {16, 2}
    for table in tables[1:]:
        assert {name: part.sha256 for name, part in table.parts.items()} == {
            name: part.sha256 for name, part in tables[0].parts.items()
        }


def test_a_folder_of_parts_is_read_as_such_and_validation_is_drawn_from_training(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("".join(f"{label}\t{text} {i}\n" for i, (label, text) in enumerate(ROWS)))
    (tmp_path / "test.tsv").write_text("good\tA  fine FILM, 0\nbad\tsomething else\n")
    table = read_labelled(tmp_path)
    assert [len(table.parts[name]) for name in ("train", "valid", "test")] == [18, 2, 2]
    whole = read_labelled(tmp_path, split=(100, 0, 0))
    is_copy, copied = whole.copied(whole.parts["test"])
    assert is_copy.tolist() == [True, False]  # but for case, marks and spaces it stands in training
    assert copied.exact == 1
    assert not set(table.parts["train"].texts) & set(table.parts["valid"].texts)


def test_labels_that_are_numbers_are_ordered_as_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"{i}\tword {i} {j}\n" for i in (10, 9, 2) for j in range(9)))
    assert read_labelled(tmp_path / "a.tsv").classes == ("2", "9", "10")


def test_a_table_that_changed_is_not_taken_for_the_one_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for label, text in ROWS))
    spec = read_labelled(path).spec()
    assert Labelled.from_spec(spec).spec() == spec
    path.write_text(path.read_text().replace("dull", "dim"))
    with pytest.raises(Mistake, match="has changed"):
        Labelled.from_spec(spec)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("good\ta film\n" * 9, "one label only"),
        ("good\ta film\nbad\t \n", "line 2: the text is empty"),
        ("good\ta film\nbad\n", "line 2: 1 column"),
        ("a\tb\tc\nd\te\tf\n", "which columns"),
        ("text\tstars\nfine film\t\n", "line 2: the label is empty"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(content)
    with pytest.raises(Mistake, match=words):
        read_labelled(tmp_path / "a.tsv")


def test_a_label_that_training_never_saw_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in ROWS))
    (tmp_path / "test.tsv").write_text("good\ta film\nsplendid\ta film\n")
    with mistake("table-label-unknown", "test.tsv, line 2"):
        read_labelled(tmp_path)


@pytest.mark.parametrize("columns", [["body", "stars"], ["stars"], ["a", "b", "c"]])
def test_columns_that_are_not_there_are_named(columns: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("review,stars\nfine,5\ndull,1\n")
    with pytest.raises(Mistake, match=r"has no column 'body'|are two"):
        read_labelled(tmp_path / "a.csv", columns=columns)


def test_broken_lines_of_json_are_said_with_their_number(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a", "label": "b"}\n{"text": \n')
    with pytest.raises(Mistake, match="line 2: not JSON"):
        read_labelled(tmp_path / "a.jsonl")
    (tmp_path / "deep.jsonl").write_text('{"text": "a", "label": "b"}\n' + "[" * 100_000 + "\n")
    with pytest.raises(Mistake, match=r"line 2: not JSON \(too deep\)"):
        read_labelled(tmp_path / "deep.jsonl")
    (tmp_path / "b.jsonl").write_text('{"text": "a", "label": "b"}\n{"text": "c"}\n')
    with pytest.raises(Mistake, match="line 2: no 'label'"):
        read_labelled(tmp_path / "b.jsonl")


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        ('"text": null, "label": 1', "text"),
        ('"text": {"a": 1}, "label": 1', "text"),
        ('"text": "a", "label": null', "label"),
        ('"text": "a", "label": NaN', "label"),
        ('"text": "a", "label": ["b"]', "label"),
    ],
)
def test_what_json_does_not_say_is_not_taken_for_a_word(value: str, missing: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a film", "label": 0, "votes": null}\n{' + value + ', "votes": [1]}\n')
    with pytest.raises(Mistake, match=f"line 2: the {missing} is empty"):
        read_labelled(tmp_path / "a.jsonl")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_a_text_may_hold_ends_of_lines_that_end_no_row(kind: str, end: str, tmp_path: Path) -> None:
    texts = [f"a film\u2028of {i}\x85and more" for i in range(40)]
    rows = {
        "tsv": ["text\tlabel", *(f"{text}\t{i % 2}" for i, text in enumerate(texts))],
        "csv": ["text,label", *(f"{text},{i % 2}" for i, text in enumerate(texts))],
        "jsonl": [f'{{"text": "{text}", "label": {i % 2}}}' for i, text in enumerate(texts)],
    }[kind]
    (tmp_path / f"a.{kind}").write_bytes("".join(row + end for row in rows).encode())
    table = read_labelled(tmp_path / f"a.{kind}")
    assert sorted(text for part in table.parts.values() for text in part.texts) == sorted(texts)
