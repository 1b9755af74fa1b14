"""Texts of many documents: bounds, separators, parts by hash, and what is guessed."""

from __future__ import annotations

import gzip
import itertools
import json
import warnings

import pytest

from lmlab.config import Note
from lmlab.text.corpus import Corpus, read
from lmlab.text.documents import NONE, DocumentRule
from mistakes import mistake

WHOLE = (100, 0, 0)


def names(count: int) -> list[str]:
    """Different words of different lengths."""
    letters = itertools.product("bdfklmnprst", "aeiou", "mnrst", "aeiou")
    numbered = zip(range(count), letters, strict=False)
    return ["".join(each)[: 2 + n % 3] + "abcdefghij"[n % 10] * (n % 4) for n, each in numbered]


def texts(corpus: Corpus, part: str = "train") -> list[str]:
    """The documents of a part, without their separators."""
    found: dict[int, str] = {}
    for index, piece in corpus.parts[part].document_texts():
        found[index] = found.get(index, "") + piece
    return [found.get(index, "") for index in range(len(corpus.parts[part].documents))]


@pytest.mark.parametrize(
    ("content", "mode", "documents", "separator"),
    [
        ("ann\nbo\n\ncy\n", "lines", ["ann", "bo", "", "cy"], b"\n"),
        ("ann\r\nbo\r\n", "lines", ["ann", "bo"], b"\r\n"),
        ("ann\r\nbo\n", "lines", ["ann\r", "bo"], b"\n"),
        ("a\nb\n\nc\n\n\n\nd\n\n", "blank", ["a\nb", "c\n\n", "d"], b"\n\n"),
        ("a\r\nb\r\n\r\nc\r\n\r\n", "blank", ["a\r\nb", "c"], b"\r\n\r\n"),
        ("\u00e9\u4e2d\n\U0001f600\n", "lines", ["\u00e9\u4e2d", "\U0001f600"], b"\n"),
    ],
)
def test_documents_are_the_bytes_of_the_file(tmp_path, content, mode, documents, separator):
    (tmp_path / "text").write_bytes(content.encode())
    corpus = read(tmp_path / "text", documents=mode, split=WHOLE)
    assert texts(corpus) == documents
    assert corpus.rule == DocumentRule(mode, separator)
    assert corpus.train.text() == content
    assert corpus.train.bytes == len(content.encode())
    assert corpus.documents == len(documents)


@pytest.mark.parametrize(
    ("content", "mode", "added"),
    [
        ("ann\nbo", "lines", "\n"),
        ("a\n\nb\n", "blank", "\n"),
        ("a\n\nb", "blank", "\n\n"),
        ("a\r\nb\r\n\r\nc\r\n", "blank", "\r\n"),
    ],
)
def test_a_last_document_without_a_separator_gets_one(tmp_path, content, mode, added):
    (tmp_path / "text").write_bytes(content.encode())
    corpus = read(tmp_path / "text", documents=mode, split=WHOLE)
    assert corpus.train.text() == content + added
    assert (tmp_path / "text").read_bytes() == content.encode()


def test_fields_of_json_are_documents_that_end_with_one_line_break(tmp_path):
    lines = [{"text": "a\nb", "n": 1}, {"text": "\u00e9"}, {"text": ""}]
    with gzip.open(tmp_path / "x.jsonl.gz", "wt") as file:
        file.write("\n\n".join(map(json.dumps, lines)))
    corpus = read(tmp_path / "x.jsonl.gz", documents="jsonl:text", split=WHOLE)
    assert texts(corpus) == ["a\nb", "\u00e9", ""]
    assert corpus.train.bytes == len("a\nb\n\u00e9\n\n".encode())
    nested = tmp_path / "nested.jsonl"
    nested.write_text(json.dumps({"message": {"content": "hi"}}))
    assert texts(read(nested, documents="jsonl:message.content", split=WHOLE)) == ["hi"]


def test_files_are_documents_and_their_last_line_break_is_the_end(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.txt").write_text("three")
    corpus = read(tmp_path, documents="files", split=WHOLE)
    assert texts(corpus) == ["one\ntwo", "three"]
    with mistake("documents-of-one-file"):
        read(tmp_path / "a.txt", documents="files")


def test_equal_documents_lie_in_one_part_and_others_do_not_move_them(tmp_path):
    words = names(1000)
    (tmp_path / "twice").write_text("\n".join([*words, *reversed(words)]) + "\n")
    corpus = read(tmp_path / "twice", documents="lines")
    parts = {name: set(texts(corpus, name)) for name in ("train", "valid", "test")}
    assert not any(parts[a] & parts[b] for a, b in itertools.combinations(parts, 2))
    assert sum(len(part.documents) for part in corpus.parts.values()) == 2000
    for name, share in (("train", 0.8), ("valid", 0.1), ("test", 0.1)):
        assert abs(len(parts[name]) / len(set(words)) - share) < 0.05
    (tmp_path / "fewer").write_text("\n".join(words[:300]))
    fewer = read(tmp_path / "fewer", documents="lines")
    assert all(set(texts(fewer, name)) <= parts[name] for name in parts)
    assert set(texts(read(tmp_path / "twice", documents="lines", seed=1), "test")) != parts["test"]


def test_a_corpus_of_documents_is_read_again_from_its_record(tmp_path):
    (tmp_path / "names.txt").write_text("\n".join(names(200)))
    corpus = read(tmp_path / "names.txt", documents="lines")
    again = Corpus.from_spec(json.loads(json.dumps(corpus.spec())))
    assert again.rule == corpus.rule
    assert [part.sha256 for part in again.parts.values()] == [part.sha256 for part in corpus.parts.values()]
    assert "documents" not in read("x\ny\n" * 2000).spec()


def guessed(path) -> DocumentRule:
    """The rule that `auto` finds, and that it is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        corpus = read(path, documents="auto", split=WHOLE)
    assert bool([w for w in said if w.category is Note]) == (corpus.rule != NONE)
    return corpus.rule


def test_lists_and_lines_of_json_are_guessed_and_other_texts_are_not(tmp_path):
    def file(content: str):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.txt"
        path.write_text(content)
        return path

    many = names(500)
    assert guessed(file("\n".join(many))).mode == "lines"
    assert guessed(file("\n".join(json.dumps({"text": word}) for word in many))).mode == "jsonl:text"
    assert guessed(file("\n".join(json.dumps({"body": word, "n": 1}) for word in many))).mode == "jsonl:body"
    assert guessed(file("\n".join(json.dumps({"a": word, "b": word}) for word in many))) == NONE
    assert guessed(file("\n".join(f"{a} {a}" for a in many))) == NONE  # lines of words
    assert guessed(file("\n".join(many[:20] * 25))) == NONE  # one word a line, again and again
    assert guessed(file("\n".join("acgt" * 15 for _ in range(500)))) == NONE  # a sequence in lines of one length
    assert guessed(file("\n".join(map(str, range(10**6, 10**6 + 500))))) == NONE  # numbers
    assert guessed(file("\n\n".join(many))) == NONE


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"documents": "sentences"}, "documents-unknown"),
        ({"documents": "jsonl"}, "documents-without-field"),
        ({"documents": "lines", "split_by": "tail"}, "split-by-beside-documents"),
        ({"documents": "jsonl:text"}, "documents-not-json"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(tmp_path, arguments, code):
    (tmp_path / "text").write_text("plain\nwords\n" * 50)
    with mistake(code):
        read(tmp_path / "text", **arguments)


def test_a_missing_field_names_the_line_and_the_fields_there_are(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"body": "x"}\n{"body": "y", "text": 3}\n')
    with mistake("documents-field-missing", "line 1 of x", "body"):
        read(tmp_path / "x.jsonl", documents="jsonl:text")


def test_too_few_documents_for_a_part_are_refused(tmp_path):
    (tmp_path / "text").write_text("a\nb\n")
    with mistake("text-too-short", "2 documents"):
        read(tmp_path / "text", documents="lines")


def test_a_text_divided_otherwise_than_a_model_learned_is_refused(tmp_path):
    (tmp_path / "text").write_text("a\nb\n")
    with mistake("documents-otherwise-divided"):
        read(tmp_path / "text", documents=DocumentRule("lines", b"\r\n"), split=WHOLE)
