"""The overlap search finds exactly what a slow search finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmlab.text import parts, shared_substrings
from lmlab.text.corpus import read
from lmlab.text.parts import Document, Part
from lmlab.text.shared_substrings import find_overlap
from thinning import examples


def part(folder, name: str, texts: list[str]) -> Part:
    documents = []
    for i, text in enumerate(texts):
        path = folder / f"{name}{i}.txt"
        path.write_bytes(text.encode())
        documents.append(Document(path, 0, len(text.encode())))
    return Part(name, documents)


def naive(train: list[str], held_out: list[str], window: int) -> tuple[int, int]:
    """(bytes of the held-out documents in shared substrings, length of the longest one)."""
    haystack = [text.encode() for text in train]
    shared = longest = 0
    for text in (t.encode() for t in held_out):
        covered = [False] * len(text)
        for i in range(len(text)):
            for j in range(i + window, len(text) + 1):
                if not any(text[i:j] in other for other in haystack):
                    break
                covered[i:j] = [True] * (j - i)
                longest = max(longest, j - i)
        shared += sum(covered)
    return shared, longest


letters = st.lists(st.text("ab", max_size=40), min_size=1, max_size=4)


@settings(
    max_examples=examples(200),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(letters, letters, st.integers(2, 6), st.sampled_from([5, 16, 1 << 20]))
def test_it_finds_what_a_slow_search_finds(tmp_path, train, held_out, window: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "BLOCK_BYTES", block)
        report = find_overlap(part(tmp_path, "train", train), part(tmp_path, "test", held_out), window)
    assert (report.shared_bytes, report.longest_bytes) == naive(train, held_out, window)
    assert any(report.example in text for text in train)
    assert len(report.example) == report.longest_bytes
    assert report.searched_bytes == sum(map(len, held_out))


def test_a_planted_copy_is_found_in_a_long_text(tmp_path) -> None:
    rng = np.random.default_rng(0)
    train, test = ("".join(rng.choice(list("abcdefgh \n"), n)) for n in (300_000, 30_000))
    planted = train[123_456:124_680]
    test = test[:10_000] + planted + test[10_000:]
    report = find_overlap(part(tmp_path, "train", [train]), part(tmp_path, "test", [test]))
    assert planted in test
    assert report.longest_bytes - len(planted) in range(4)
    assert report.shared_bytes == report.longest_bytes
    assert report.example[5:] in planted
    assert "% of the test part also stands in the training part, in pieces of 50 bytes or more" in str(report)


def test_nothing_in_common_is_said_plainly(tmp_path) -> None:
    report = find_overlap(part(tmp_path, "train", ["a" * 200]), part(tmp_path, "test", ["b" * 200]))
    assert (report.shared_bytes, report.longest_bytes, report.share) == (0, 0, 0)
    assert str(report) == "the test part shares no 50 bytes in a row with the training part"


def test_only_the_beginning_of_an_enormous_part_is_searched(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(shared_substrings, "MOST_BYTES", 100)
    text = "".join(np.random.default_rng(1).choice(list("abcdef"), 400))
    report = find_overlap(part(tmp_path, "train", [text]), part(tmp_path, "test", ["-" * 60, text[:200]]))
    assert report.searched_bytes == 100
    assert report.shared_bytes == 0  # 40 bytes of the second document are below the window


def test_a_corpus_reports_on_both_held_out_parts(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "cache"))
    line = "All work and no play makes a dull test of every language model.\n"
    (tmp_path / "text.txt").write_text(line * 100)
    report = read(tmp_path / "text.txt").overlap()
    assert set(report) == {"valid", "test"}
    assert report["test"].share == 1
    assert set(read(tmp_path / "text.txt", split=(90, 10, 0)).overlap()) == {"valid"}
