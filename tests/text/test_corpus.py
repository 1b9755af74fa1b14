"""Reading texts, dividing them, and saying what is wrong with them in one line."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmlab.config import Note
from lmlab.text import files_and_folders, parts
from lmlab.text.corpus import Corpus, read, stem
from lmlab.text.parts import Document, Part
from mistakes import mistake
from thinning import examples

TEXT = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.\nΚαλημέρα κόσμε 🦜\n" * 20


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("LMLAB_CACHE", str(folder))
    return folder


def write(path, text: str | bytes):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def documents(folder, sizes):
    for i, size in enumerate(sizes):
        write(folder / f"{i:03}.txt", f"{i:03}" + "x" * (size - 3))
    return folder


@pytest.mark.parametrize("split", [(80, 10, 10), (90, 10, 0), (1, 1, 1), (0.7, 0.2, 0.1)])
def test_a_tail_is_cut_exactly_by_characters(tmp_path, split) -> None:
    path = write(tmp_path / "text.txt", TEXT)
    corpus = read(path, split=split, split_by="tail")
    first, second = (round(sum(split[:k]) / sum(split) * 1e9) * len(TEXT) // 10**9 for k in (1, 2))
    assert corpus.train.text() == TEXT[:first]
    assert corpus.valid.text() == TEXT[first:second]
    assert corpus.test.text() == TEXT[second:]
    assert corpus.documents == 1


def test_ninety_ten_is_the_usual_cut(tmp_path) -> None:
    corpus = read(write(tmp_path / "text.txt", TEXT), split=(90, 10, 0), split_by="tail")
    assert corpus.train.chars == int(0.9 * len(TEXT))
    assert corpus.test.documents == ()
    assert corpus.test.text() == ""


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_is_no_character_of_the_text_and_no_byte_that_is_counted(tmp_path, pack) -> None:
    plain = read(write(tmp_path / "plain.txt", TEXT))
    marked = read(write(tmp_path / "marked.txt", pack(b"\xef\xbb\xbf" + TEXT.encode())))
    for name, part in plain.parts.items():
        same = marked.parts[name]
        assert (same.text(), same.bytes, same.chars, same.sha256) == (part.text(), part.bytes, part.chars, part.sha256)
    assert Corpus.from_spec(marked.spec()).train.sha256 == plain.train.sha256
    inside = TEXT + "\ufeff" + TEXT  # as `cat` of two files leaves it: there it is a character like any other
    assert read(write(tmp_path / "two.txt", inside), split=(100, 0, 0)).train.text() == inside


def test_many_documents_stay_whole_and_meet_the_shares(tmp_path) -> None:
    sizes = [200 + 37 * (i % 11) for i in range(200)]
    corpus = read(documents(tmp_path, sizes))
    assert corpus.divided_by == "documents"
    found = [text for part in corpus.parts.values() for _, text in part.pieces()]
    assert sorted(text[:3] for text in found) == [f"{i:03}" for i in range(200)]
    assert sorted(map(len, found)) == sorted(sizes)
    for part, share in zip(corpus.parts.values(), (0.8, 0.1, 0.1), strict=True):
        assert abs(part.bytes / sum(sizes) - share) < 0.02


def test_the_seed_chooses_the_documents(tmp_path) -> None:
    folder = documents(tmp_path, [500] * 130)
    assert read(folder).test.text() == read(folder).test.text()
    assert read(folder, seed=1).test.text() != read(folder).test.text()


def test_a_few_large_documents_are_laid_end_to_end_and_cut(tmp_path) -> None:
    corpus = read(documents(tmp_path, [500, 300, 400]), split_by="tail")
    assert [part.bytes for part in corpus.parts.values()] == [960, 120, 120]
    assert corpus.train.text() + corpus.valid.text() + corpus.test.text() == "".join(
        (tmp_path / f"{i:03}.txt").read_text() for i in range(3)
    )


def test_named_parts_are_taken_whole(tmp_path) -> None:
    a, b, c = (
        write(tmp_path / name, text) for name, text in [("a.txt", "train"), ("b.txt", "valid"), ("c.txt", "tést")]
    )
    corpus = read(a, valid=b, test=c)
    assert [part.text() for part in corpus.parts.values()] == ["train", "valid", "tést"]
    assert read(a, test=c).valid.text() == ""


def test_a_folder_is_its_text_files_plain_or_packed(tmp_path) -> None:
    write(tmp_path / "b" / "two.md", "second text\n")
    write(tmp_path / "a.txt", "first text\n")
    write(tmp_path / "c.txt.gz", gzip.compress(b"third text\n"))
    for other in [".hidden.txt", ".git/x.txt", "picture.png", "empty.txt"]:
        write(tmp_path / other, "" if other == "empty.txt" else "not this")
    write(tmp_path / "binary.bin", "not \0 this")
    with pytest.warns(Note, match=r"picture\.png was not read"):
        corpus = read(tmp_path, valid=tmp_path / "a.txt")
    assert corpus.train.text() == "first text\nsecond text\nthird text\n"
    assert corpus.documents == 3


def test_several_paths_are_one_text(tmp_path) -> None:
    a, b = write(tmp_path / "a.txt", "one\n" * 50), write(tmp_path / "b.txt", "two\n" * 50)
    corpus = read([a, b], split_by="tail")
    assert (corpus.train.text() + corpus.valid.text() + corpus.test.text()) == "one\n" * 50 + "two\n" * 50
    assert corpus.name == "a+1"


def test_a_packed_file_is_called_as_it_would_be_unpacked(tmp_path) -> None:
    path = write(tmp_path / "story.txt.gz", gzip.compress(TEXT.encode()))
    assert (read(path).name, stem(path)) == ("story", "story")


def test_gzip_is_recognised_by_content(tmp_path) -> None:
    corpus = read(write(tmp_path / "text", gzip.compress(TEXT.encode())), split_by="tail")
    assert corpus.train.text() == TEXT[: len(TEXT) * 8 // 10]


def test_standard_input_can_be_read_again_later(monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    corpus = read("-", split_by="tail")
    again = Corpus.from_spec(json.loads(json.dumps(corpus.spec())))
    assert again.train.text() == corpus.train.text() == TEXT[: len(TEXT) * 8 // 10]
    assert (corpus.name, again.name) == ("stdin", "stdin")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a matter of Unix")
def test_a_pipe_is_kept_too(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(TEXT, encoding="utf-8"))
    writer.start()
    corpus = read(tmp_path / "pipe", split_by="tail")
    writer.join()
    assert corpus.train.text() == TEXT[: len(TEXT) * 8 // 10]
    (tmp_path / "pipe").unlink()
    again = Corpus.from_spec(json.loads(json.dumps(corpus.spec())))
    assert again.train.text() == corpus.train.text()
    assert (corpus.name, again.name) == ("pipe", "pipe")


def test_a_spec_reads_the_same_corpus_again_and_notices_changes(tmp_path) -> None:
    path = write(tmp_path / "text.txt", TEXT)
    spec = json.loads(json.dumps(read(path, split=(60, 20, 20)).spec()))
    again = Corpus.from_spec(spec)
    assert again.valid.text() == read(path, split=(60, 20, 20)).valid.text()
    write(path, TEXT[:-2] + "!\n")
    with pytest.raises(ValueError, match=r"text\.txt has changed"):
        Corpus.from_spec(spec)
    path.unlink()
    with pytest.raises(ValueError, match="is gone; put it back"):
        Corpus.from_spec(spec)


def test_a_spec_notices_a_new_document(tmp_path) -> None:
    spec = read(documents(tmp_path, [500] * 40), split_by="documents").spec()
    write(tmp_path / "new.txt", "n" * 500)
    with pytest.raises(ValueError, match="not what it was"):
        Corpus.from_spec(spec)


def test_hashes_and_counts_are_those_of_the_file(tmp_path) -> None:
    path = write(tmp_path / "text.txt", TEXT)
    part = read(path, valid=path).train
    assert part.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
    assert (part.bytes, part.chars, part.words) == (len(TEXT.encode()), len(TEXT), len(TEXT.split()))


@settings(
    max_examples=examples(60),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(st.sampled_from("a é中🦜\n\t\u3000"), min_size=1, max_size=60), st.integers(4, 9), st.data())
def test_block_size_changes_nothing(tmp_path, text: str, block: int, data) -> None:
    path = write(tmp_path / "text.txt", text)
    document = Document(path, 0, len(text.encode()))
    cut = data.draw(st.integers(0, len(text)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "BLOCK_BYTES", block)
        part = Part("train", [document])
        assert part.text() == text
        assert (part.chars, part.words) == (len(text), len(text.split()))
        left, right = document.split_at(cut)
        assert ("".join(left.pieces()), "".join(right.pieces())) == (text[:cut], text[cut:])
        patch.setattr(files_and_folders, "BLOCK_BYTES", block)
        assert files_and_folders.checked(path) == document


def test_a_line_longer_than_a_block_is_read_in_pieces(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(parts, "BLOCK_BYTES", 1000)
    text = "中文" * 5000
    pieces = [piece for _, piece in read(write(tmp_path / "t.txt", text), split=(1, 0, 0)).train.pieces()]
    assert "".join(pieces) == text
    assert max(len(piece.encode()) for piece in pieces) <= 1003


@pytest.mark.parametrize("block", [7, 1 << 22])
def test_a_bad_byte_is_reported_with_its_offset_and_the_cure(tmp_path, monkeypatch, block: int) -> None:
    monkeypatch.setattr(files_and_folders, "BLOCK_BYTES", block)
    good = "größer ".encode() * 10
    with pytest.raises(ValueError) as error:
        read(write(tmp_path / "latin.txt", good + "Größe".encode("latin-1") + good))
    assert f"byte 0xF6 at offset {len(good) + 2}" in str(error.value)
    assert "latin.txt" in str(error.value)
    assert "iconv -f" in str(error.value)


BAD = {
    "empty.txt": (b"", "is empty"),
    "mark.txt": (b"\xef\xbb\xbf", "is empty"),
    "one.txt": (b"a", "too few to split"),
    "short.txt": (b"abc", "too few to split"),
    "zeros.txt": (bytes(1000), "binary"),
    "program.txt": (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8, "binary"),
    "picture.txt": (b"\x89PNG\r\n\x1a\n" + bytes(range(1, 256)) * 8, "binary"),
    "utf16.txt": ("some text ü".encode("utf-16"), "UTF-16"),
    "archive.txt": (b"PK\x03\x04\x14\x00\xff\xfe" + b"abc" * 50, "zip archive"),
    "cut.txt": (
        "größer".encode()[:3],
        "byte 0xC3 at offset 2 begins a character that has no end. If the file was cut short: head -c 2 FILE",
    ),
    "cut.gz": (
        gzip.compress("größer".encode()[:3]),
        "If the file was cut short: zcat FILE | head -c 2 > NEW. If it is",
    ),
    "damaged.gz": (gzip.compress(TEXT.encode())[:-20], "damaged gzip"),
    "latin.txt": ("Größe".encode("latin-1"), "at offset 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_one_clear_line(tmp_path, name: str) -> None:
    content, says = BAD[name]
    with pytest.raises(ValueError) as error:
        read(write(tmp_path / name, content))
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert name.partition(".")[0] in str(error.value)


def test_missing_texts_are_reported(tmp_path) -> None:
    with mistake("text-not-found"):
        read(tmp_path / "nothing.txt")
    with pytest.raises(ValueError, match="did you mean 'austen'"):
        read("austin")
    with pytest.raises(ValueError, match="no text was given"):
        read([])
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="there is no text in"):
        read(tmp_path / "folder")


def test_a_folder_that_cannot_be_looked_into_is_not_passed_over(tmp_path, monkeypatch) -> None:
    for name in ("open", "locked"):
        (tmp_path / "folder" / name).mkdir(parents=True)
        (tmp_path / "folder" / name / "a.txt").write_text("some text\n" * 9)
    scan = os.scandir

    def locked(path: str = ".") -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "locked":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", locked)
    for text in (tmp_path / "folder", str(tmp_path / "folder" / "**" / "*.txt"), tmp_path / "folder" / "locked"):
        with mistake("folder-not-readable"):
            read(text)
    for pattern in ("*/*.txt", "op*/**/*.txt"):  # which do not ask for what is in there
        assert read(str(tmp_path / "folder" / pattern)).train.bytes


@pytest.mark.parametrize("split", [(80, 10), (0, 50, 50), (80, -10, 30), ("a", "b", "c"), (0, 0, 0)])
def test_a_bad_split_says_what_would_be_right(tmp_path, split) -> None:
    with pytest.raises(ValueError, match="80,10,10"):
        read(write(tmp_path / "text.txt", TEXT), split=split)


def test_a_damaged_archive_leaves_nothing_in_the_cache(tmp_path, cache) -> None:
    with pytest.raises(ValueError, match="damaged"):
        read(write(tmp_path / "x.gz", gzip.compress(os.urandom(100_000))[:50_000]))
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_tinyshakespeare_has_the_usual_parts() -> None:
    data = os.environ.get("LMLAB_BENCH_DATA")
    if not data:
        pytest.skip("LMLAB_BENCH_DATA is not set")
    corpus = read(f"{data}/tinyshakespeare/input.txt", split=(90, 10, 0), split_by="tail")
    assert (corpus.train.chars, corpus.valid.chars) == (1_003_854, 111_540)


def test_a_part_that_is_a_file_of_its_own_is_called_so(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text(f"{name} line\n" * 30)
    a, b, c = (tmp_path / f"{name}.txt" for name in "abc")
    assert read(a, test=b).called("test") == "a (b.txt)"
    assert read(a, test=[b, c]).called("test") == "a (b.txt and 1 more)"
    assert read(a, test=b).called("train") == read(a).called("test") == "a"
