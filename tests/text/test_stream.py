"""Token streams: what is on disk is what the tokenizer says, once, and in little memory."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from lmlab.hardware.memory import resident_bytes
from lmlab.text import stream as module
from lmlab.text.corpus import read
from lmlab.text.stream import TokenStream, tokenize
from lmlab.text.tokenizers import train_tokenizer
from thinning import thinned

LINES = [
    "the cat sat on the mat\n",
    "the dog, the cat and a rare zebra\n",
    "  indented line\n",
    "\n",
    "größer 🦜 the\n",
]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    (tmp_path / "docs").mkdir()
    for i in range(40):
        text = "".join(rng.choice(LINES, 20)) + f"last line {i} without its end"
        (tmp_path / "docs" / f"{i}.txt").write_text(text, encoding="utf-8")
    return read(tmp_path / "docs")


@pytest.mark.parametrize("spec", ["byte", "char", "words", "words:6", "bpe:280"])
def test_a_stream_holds_every_document_without_loss(corpus, tmp_path, spec: str) -> None:
    tokenizer = train_tokenizer(spec, corpus.train.pieces())
    for part in corpus.parts.values():
        stream = tokenize(part, tokenizer, tmp_path / "tokens")
        assert stream.documents == len(part.documents)
        texts = ["".join(document.pieces()) for document in part.documents]
        for i, text in enumerate(texts):
            ids, spellings = tokenizer.encode(text)
            assert stream.document(i).tolist() == ids.tolist()
            spelled = stream.spellings[slice(*stream.spelling_bounds(i))]
            assert list(spelled) == spellings
            assert tokenizer.decode(stream.document(i), spelled) == text
        assert (stream.bytes, stream.chars, stream.words) == (part.bytes, part.chars, part.words)
        assert stream.tokens == len(stream.ids) == stream.starts[-1]
        assert list(stream.spellings) == [s for text in texts for s in tokenizer.encode(text).spellings]


def test_stored_spellings_behave_like_a_list(corpus, tmp_path) -> None:
    tokenizer = train_tokenizer("words:3", corpus.train.pieces())
    stored = tokenize(corpus.test, tokenizer, tmp_path / "tokens").spellings
    as_list = list(stored)
    assert len(as_list) == len(stored) > 50
    assert stored[3:9] == as_list[3:9]
    assert (stored[0], stored[-1], stored[7:3], stored[10_000:]) == (as_list[0], as_list[-1], [], [])
    with pytest.raises(IndexError):
        stored[len(stored)]


def test_streams_are_used_again_until_text_or_tokenizer_change(corpus, tmp_path, monkeypatch) -> None:
    char, byte = (train_tokenizer(spec, corpus.train.pieces()) for spec in ("char", "byte"))
    tokenize(corpus.test, char, tmp_path / "tokens")
    written = []
    original = module._write
    monkeypatch.setattr(module, "_write", lambda *args: (written.append(args), original(*args)))
    tokenize(corpus.test, char, tmp_path / "tokens")
    assert written == []
    tokenize(corpus.test, byte, tmp_path / "tokens")
    tokenize(corpus.valid, char, tmp_path / "tokens")
    assert len(written) == 2


def test_the_same_bytes_divided_into_other_documents_are_another_stream(tmp_path) -> None:
    tokenizer = train_tokenizer("byte", [])
    for folder, documents in (("a", ["one ", "and two"]), ("b", ["one and ", "two"])):
        (tmp_path / folder).mkdir()
        for i, text in enumerate(documents):
            (tmp_path / folder / f"{i}.txt").write_text(text)
    first, second = (read(tmp_path / folder, split=(100, 0, 0)).train for folder in ("a", "b"))
    assert first.sha256 == second.sha256
    assert [tokenize(part, tokenizer, tmp_path / "tokens").starts.tolist() for part in (first, second)] == [
        [0, 4, 11],
        [0, 8, 11],
    ]


def test_a_stop_while_writing_leaves_nothing_that_would_be_believed(corpus, tmp_path) -> None:
    tokenizer = train_tokenizer("char", corpus.train.pieces())

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tokenize(corpus.train, tokenizer, tmp_path / "tokens", progress=stop)
    assert [path for path in (tmp_path / "tokens").rglob("*") if path.is_file()] == []
    assert tokenize(corpus.train, tokenizer, tmp_path / "tokens").bytes == corpus.train.bytes


@pytest.mark.parametrize(
    ("name", "kept"), [("ids.bin", -2), ("ids.bin", -1), ("ids.bin", None), ("stream.json", -2), ("stream.json", 0)]
)
def test_damaged_token_files_are_noticed(corpus, tmp_path, name: str, kept: int | None) -> None:
    """Cut to a whole number of ids, inside one, or gone."""
    tokenizer = train_tokenizer("char", corpus.train.pieces())
    tokenize(corpus.test, tokenizer, tmp_path / "tokens")
    (file,) = (tmp_path / "tokens").rglob(name)
    content = file.read_bytes()
    file.unlink()
    if kept is not None:
        file.write_bytes(content[:kept])
    with pytest.raises(ValueError, match="damaged; delete that folder"):
        tokenize(corpus.test, tokenizer, tmp_path / "tokens")


def test_progress_ends_with_all_bytes(corpus, tmp_path) -> None:
    seen: list[tuple[int, int]] = []
    tokenizer = train_tokenizer("byte", [])
    tokenize(corpus.train, tokenizer, tmp_path / "tokens", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (corpus.train.bytes, corpus.train.bytes)
    assert seen == sorted(seen)


def test_an_empty_part_is_an_empty_stream(corpus, tmp_path) -> None:
    whole = read(tmp_path / "docs", split=(1, 0, 0))
    stream = tokenize(whole.test, train_tokenizer("byte", []), tmp_path / "tokens")
    assert (stream.tokens, stream.documents, stream.bytes, list(stream.spellings)) == (0, 0, 0, [])


def test_a_stream_can_be_made_by_hand() -> None:
    stream = TokenStream(
        ids=np.array([1, 2], np.uint16), starts=np.array([0, 2]), bytes=2, chars=2, words=1, spellings=["x"]
    )
    assert (stream.tokens, stream.documents) == (2, 1)
    assert stream.spelling_bounds(0) == (0, 1)


def peak_growth_mb(tmp_path, spec: str, megabytes: int) -> tuple[float, float]:
    """(megabytes of text, megabytes by which memory grew) for reading, training the tokenizer and tokenising."""
    program = textwrap.dedent(f"""
        import resource, sys
        import numpy as np
        from lmlab.text.corpus import read
        from lmlab.text.stream import tokenize
        from lmlab.text.tokenizers import train_tokenizer
        rng = np.random.default_rng(0)
        words = ["".join(rng.choice(list("etaoinshrdlu"), n)) for n in rng.integers(1, 9, 5000)]
        with open("big.txt", "w") as file:
            drawn = rng.zipf(1.3, 200_000) % 5000
            lines = [" ".join(words[i] for i in drawn[k : k + 12]) for k in range(0, 200_000, 12)]
            for i in range({megabytes}):
                file.write("\\n".join(lines[i % 100 :]) + f"\\n word{{i}}\\n")
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        before = peak()
        corpus = read("big.txt")
        tokenizer = train_tokenizer({spec!r}, corpus.train.pieces())
        stream = tokenize(corpus.train, tokenizer, "tokens")
        print(corpus.train.bytes / 1e6, peak() - before, stream.tokens)
    """)
    environment = {**os.environ, "LMLAB_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    size, growth, _ = map(float, done.stdout.split())
    return size, growth


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is asked of Unix")
@pytest.mark.parametrize("spec", thinned(["char", "words"], ["words"]))
def test_memory_does_not_grow_with_the_text(tmp_path, spec: str) -> None:
    small, growth_of_small = peak_growth_mb(tmp_path, spec, 3)
    large, growth_of_large = peak_growth_mb(tmp_path, spec, 15)
    assert large - small > 9
    assert growth_of_large - growth_of_small < 5


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is asked of Unix")
@pytest.mark.parametrize("spec", ["char", "words", "words:1000", "bpe:4000"])
def test_a_gigabyte_needs_less_than_two_gigabytes_of_memory(tmp_path, spec: str) -> None:
    megabytes, growth = peak_growth_mb(tmp_path, spec, 1100)
    assert megabytes > 800
    assert growth < 1000


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="this system has no such advice")
def test_tokens_that_were_put_away_take_no_memory_and_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("to be or not to be " * 400_000)
    stream = tokenize(read(path, split=(100, 0, 0)).train, train_tokenizer("byte", []), tmp_path / "streams")
    total = int(stream.ids.sum(dtype=np.int64))  # every page has been read
    before = resident_bytes()
    stream.put_away()
    assert before - resident_bytes() > 0.9 * stream.ids.nbytes
    assert int(stream.ids.sum(dtype=np.int64)) == total
