from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from lmlab.config import Mistake
from lmlab.measure.near_copies import held_out, how_much, long_strings, strings_in
from lmlab.text.corpus import read
from lmlab.text.fingerprint import Fingerprint, Sample, _plain
from lmlab.text.parts import Document, Part
from lmlab.text.sources import CorpusUnavailable

COMMON = "wind rain stone river garden window night morning letter answer question paper silver copper winter summer"
WORDS = COMMON.split()


def sentences(count: int, seed: int) -> str:
    """English enough to share words and short phrases, and nothing longer."""
    random = np.random.default_rng(seed)
    return "\n".join(
        "The " + " ".join(WORDS[i] for i in random.integers(len(WORDS), size=random.integers(5, 14))) + "."
        for _ in range(count)
    )


def part(folder: Path, text: str | bytes, name: str) -> Part:
    content = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(content)
    return Part(name, [Document(folder / name, 0, len(content))])


def near_copy(text: str, one_in: int = 45, seed: int = 0) -> str:
    """The text with one letter in so many changed."""
    random = np.random.default_rng(seed)
    letters = list(text)
    for i in np.flatnonzero(random.random(len(letters)) < 1 / one_in):
        if letters[i].isalpha():
            letters[i] = "abcdefghijklmnopqrstuvwxyz"[random.integers(26)]
    return "".join(letters)


def verdict(train: Part, text: Part, *, at_hand: bool = False) -> str:
    return held_out([Fingerprint.of(train)], text, {train.sha256: train}.get if at_hand else None).verdict


def test_case_and_the_kind_and_width_of_whitespace_do_not_count() -> None:
    letters = np.frombuffer(b"aAzZ  \t\n\v\f\r\x1c\x85\xc3\x89.", dtype=np.uint8)
    for seed in range(50):
        text = np.random.default_rng(seed).choice(letters, size=seed).tobytes()
        assert _plain(text) == re.sub(rb"\s+", b" ", text.lower())


@pytest.mark.parametrize("size", [30_000, 300_000])
def test_copies_are_told_from_text_of_the_same_kind(size: int, tmp_path: Path) -> None:
    text = sentences(size // 50, seed=1)
    train = part(tmp_path, text, "train")
    middle = text[len(text) // 2 :][: max(4_000, size // 20)]
    copies = {
        "all": text,
        "a part": middle,
        "one letter in 45": near_copy(text),
        "part, one letter in 45": near_copy(middle),
        "other lines": " ".join(middle.split()),
        "capitals": middle.upper(),
        "half of it new": middle + sentences(len(middle) // 50, seed=5),
    }
    found = {name: verdict(train, part(tmp_path, copy, "copy")) for name, copy in copies.items()}
    assert set(found.values()) == {"not held out"}, found
    assert verdict(train, part(tmp_path, sentences(size // 250, seed=2), "new")) == "held out"


def test_a_text_that_repeats_itself_accuses_nobody(tmp_path: Path) -> None:
    line = "the cat sat on the mat and the dog sat on the log and all of them were glad of it\n"
    assert verdict(part(tmp_path, line * 300, "train"), part(tmp_path, line * 30, "test")) == "unknown"


def test_why_nothing_can_be_told_is_said_as_it_is(tmp_path: Path) -> None:
    """A text with hardly any pieces in the sample is not one that nobody knows."""
    line = part(tmp_path, "0123456789abcdefghijklmnopqrstuvwxyz", "line")
    few = Fingerprint(pieces=Sample.empty(), words=Sample.empty())
    assert "too few different pieces" in held_out([few], line).detail
    assert "no fingerprint" in held_out([Fingerprint.unknown()], line).detail
    assert "no fingerprint" in held_out([], line).detail


def test_formulas_that_every_part_has_accuse_nobody(tmp_path: Path) -> None:
    def log(seed: int) -> str:
        random = np.random.default_rng(seed)
        return "".join(f"INFO request {n} was answered by the server\n" for n in random.integers(10**9, size=2000))

    train = part(tmp_path, log(1), "train")
    assert Fingerprint.of(train).pieces.usual > 0.2
    fresh = part(tmp_path, log(2), "test")
    assert verdict(train, fresh, at_hand=True) == "held out"
    assert verdict(train, fresh) == "unknown"  # more than half of its pieces occur there: why, only the bytes can tell
    assert verdict(train, part(tmp_path, log(1)[20_000:40_000], "copy")) == "not held out"


def test_a_text_of_unlike_regions_accuses_nobody(tmp_path: Path) -> None:
    """Some of its tenths are boilerplate and others are not, so that one more tenth may be either."""
    log = "".join(f"INFO request {n} was answered by the server in time\n" for n in range(10**8, 10**8 + 1200))
    more = "".join(f"INFO request {n} was answered by the server in time\n" for n in range(10**9, 10**9 + 700))
    text = "".join(log[n * 7000 : (n + 1) * 7000] if n % 2 else sentences(150, seed=n) for n in range(8))
    train = part(tmp_path, text, "train")
    assert Fingerprint.of(train).pieces.spread > 0.05
    assert verdict(train, part(tmp_path, more[:6000] + sentences(60, seed=9), "test")) == "held out"
    assert verdict(train, part(tmp_path, near_copy(text), "copy")) == "not held out"


def test_how_much_of_it_is_said(tmp_path: Path) -> None:
    train = part(tmp_path, sentences(2000, seed=1), "train")
    half = sentences(2000, seed=1)[:40_000] + sentences(4000, seed=2)[:40_000]
    assert how_much(held_out([Fingerprint.of(train)], train).copied) == "this text"
    found = held_out([Fingerprint.of(train)], part(tmp_path, half, "half"))
    assert found.copied == pytest.approx(0.5, abs=0.15)
    assert how_much(found.copied) == f"at least {found.copied:.0%} of this text, exactly or nearly"


def test_what_is_too_short_is_unknown(tmp_path: Path) -> None:
    train = part(tmp_path, sentences(20_000, seed=1), "train")
    assert verdict(train, part(tmp_path, sentences(1, seed=1), "test")) == "unknown"
    assert held_out([], train).verdict == "unknown"


def test_the_worst_of_several_texts_counts(tmp_path: Path) -> None:
    first, second = part(tmp_path, sentences(2000, 1), "first"), part(tmp_path, sentences(2000, 2), "second")
    prints = [Fingerprint.of(first), Fingerprint.of(second)]
    assert held_out(prints, first).verdict == held_out(prints, second).verdict == "not held out"
    assert held_out(prints, part(tmp_path, sentences(500, 3), "third")).verdict == "held out"


def test_a_fingerprint_is_small_and_comes_back_from_its_file(tmp_path: Path) -> None:
    train = part(tmp_path, sentences(60_000, 1), "train")
    content = Fingerprint.of(train).to_bytes()
    assert len(content) < 0.04 * train.bytes
    again = Fingerprint.from_bytes(content)
    assert again.to_bytes() == content
    assert again.look_for(train) == Fingerprint.of(train).look_for(train)
    for damaged in (content[:50], b"", content[:-3], b"\x08\0\0\0\0\0\0\0notjson!"):
        with pytest.raises(Mistake, match="damaged"):
            Fingerprint.from_bytes(damaged)


def test_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = part(tmp_path, sentences(3000, 1), "train")
    whole = Fingerprint.of(train)
    monkeypatch.setattr("lmlab.text.parts.BLOCK_BYTES", 1000)
    again = Fingerprint.of(train)
    assert np.array_equal(again.pieces.hashes, whole.pieces.hashes)
    assert np.array_equal(again.words.hashes, whole.words.hashes)


@pytest.mark.slow
def test_real_held_out_texts_are_not_accused_and_copies_are(bench_data: Path, tmp_path: Path) -> None:
    plays = (bench_data / "tinyshakespeare" / "input.txt").read_bytes()
    reviews = [
        gzip.decompress((bench_data / "imdb" / f"{name}.tsv.gz").read_bytes())[:3_000_000] for name in ("train", "test")
    ]
    pairs = {
        "plays": (plays[:1_000_000], plays[1_000_000:]),
        "news": tuple((bench_data / "ptb" / f"ptb.{name}.txt").read_bytes() for name in ("train", "test")),
        "captions": tuple((bench_data / "multi30k" / name).read_bytes() for name in ("train.de", "val.de")),
        "reviews": (reviews[0], reviews[1][:300_000]),
    }
    for name, (train, test) in pairs.items():
        known = part(tmp_path, train, "train")
        assert verdict(known, part(tmp_path, test, "test")) == "held out", name
        copied = train[len(train) // 2 :][: len(test)].decode(errors="ignore")
        assert verdict(known, part(tmp_path, copied, "copy")) == "not held out", name
        assert verdict(known, part(tmp_path, near_copy(copied), "copy")) == "not held out", name
    try:
        addresses = read("sotu")
    except CorpusUnavailable as why:
        pytest.skip(str(why))
    assert verdict(addresses.train, addresses.test) == "held out"


def test_some_lines_that_are_copied_are_told_of_though_the_text_counts_as_held_out(tmp_path: Path) -> None:
    text = sentences(4000, seed=11)
    lines = sentences(2000, seed=12).split("\n")
    train = part(tmp_path, text + "\n" + "\n".join(lines[:160]), "train")
    found = held_out([Fingerprint.of(train)], part(tmp_path, "\n".join(lines), "test"))
    assert found.verdict == "held out"
    assert re.search(r"about \d+% of it may be copied from there", found.detail)
    clean = held_out([Fingerprint.of(part(tmp_path, text, "clean"))], part(tmp_path, "\n".join(lines), "test"))
    assert "copied" not in clean.detail
    assert found.is_worth_telling


def test_a_text_that_shares_no_more_than_is_usual_is_no_reason_to_warn(tmp_path: Path) -> None:
    """A log: what its lines share with the training text is what the training text shares with itself."""
    random = np.random.default_rng(3)
    words = ["".join(chr(97 + i) for i in random.integers(26, size=9)) for _ in range(60)]
    lines = [
        f"server {words[a]} accepted {words[b]} from {words[c]}" for a, b, c in random.integers(60, size=(6000, 3))
    ]
    train = part(tmp_path, "\n".join(lines[:5000]), "train")
    found = held_out(
        [Fingerprint.of(train)], part(tmp_path, "\n".join(lines[5000:]), "test"), {train.sha256: train}.get
    )
    assert found.verdict == "held out"
    assert found.shared >= 0.2
    assert not found.is_worth_telling


def test_a_text_of_which_most_stands_in_training_is_not_held_out_though_that_is_usual_there(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    once = ["".join(chr(97 + i) for i in random.integers(26, size=2000)) for _ in range(60)]
    some_twice = [once[i % 30 if i < 45 else i % 15] for i in random.permutation(60)]
    for documents, is_copied in ((once, False), (some_twice, True)):
        train = part(tmp_path, "\n".join(documents[:50]), "train")
        held = part(tmp_path, "\n".join(documents[50:]), "test")
        found = held_out([Fingerprint.of(train)], held, {train.sha256: train}.get)
        assert found.verdict == ("not held out" if is_copied else "held out")
        assert ("in pieces of 50 bytes" in found.detail) == is_copied


def test_of_several_texts_the_one_that_holds_most_of_it_is_told_of(tmp_path: Path) -> None:
    text = sentences(2000, seed=1)
    whole = part(tmp_path, text, "whole")
    half = part(tmp_path, text[: len(text) // 2] + sentences(1000, seed=2), "half")
    prints = [Fingerprint.of(half), Fingerprint.of(whole)]
    assert how_much(held_out(prints[:1], whole).copied).startswith("at least ")
    assert how_much(held_out(prints, whole).copied) == "this text"


def shuffled(text: str, words: int, seed: int = 0) -> str:
    """The text cut into pieces of so many words, in another order."""
    parts = text.split()
    pieces = [parts[i : i + words] for i in range(0, len(parts), words)]
    np.random.default_rng(seed).shuffle(pieces)  # type: ignore[arg-type]
    return "\n".join(" ".join(piece) for piece in pieces)


WAYS = {
    "backwards": lambda text: text[::-1],
    "words in reverse order": lambda text: " ".join(text.split()[::-1]),
    "every word backwards": lambda text: " ".join(word[::-1] for word in text.split()),
    "lines in reverse order": lambda text: "\n".join(text.split("\n")[::-1]),
    "capitals": str.upper,
    "no punctuation": lambda text: re.sub(r"[^\w\s]", "", text),
    "pieces of four words, shuffled": lambda text: shuffled(text, 4),
    "pieces of six words, shuffled": lambda text: shuffled(text, 6),
}


def spoken(count: int, seed: int) -> str:
    """Sentences of many words, of which common ones come often."""
    random = np.random.default_rng(seed)
    words = np.array([f"{a}{b}" for a in WORDS for b in ("", "s", "ed", "ing", "er", "ly", "less", "ful")])
    often = 1.0 / np.arange(2, len(words) + 2)
    of = random.choice(len(words), size=count * 12, p=often / often.sum())
    return "".join(" ".join(words[of[i : i + 12]]) + ",.\n"[i % 2 :] for i in range(0, len(of), 12))


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_in_another_order_is_seen(way: str, tmp_path: Path) -> None:
    text, others = spoken(1500, seed=1), spoken(8000, seed=2)
    held = part(tmp_path, text, "test")
    assert verdict(part(tmp_path, others, "train"), held) == "held out"
    assert verdict(part(tmp_path, others + WAYS[way](text), "copied"), held) == "not held out"


def test_training_text_and_test_text_twice_is_no_held_out_test_text(tmp_path: Path) -> None:
    text, others = spoken(300, seed=1), spoken(3000, seed=2)
    held = part(tmp_path, text, "test")
    for way in (str, WAYS["backwards"]):
        train = part(tmp_path, 2 * (others + way(text)), "train")
        assert verdict(train, held) == "unknown"
        assert verdict(train, held, at_hand=True) == "not held out"
    twice = part(tmp_path, 2 * (others + shuffled(text, 4)), "train")
    assert verdict(twice, held, at_hand=True) == "unknown"  # of a text that repeats itself only exact copies are found


def test_what_is_too_short_for_the_sample_is_compared_byte_for_byte(tmp_path: Path) -> None:
    train = part(tmp_path, spoken(8000, seed=1), "train")
    copy, fresh = spoken(8000, seed=1)[:600], spoken(10, seed=2)[:600]
    for text, expected in ((copy, "not held out"), (fresh, "held out"), (fresh[:100], "unknown")):
        held = part(tmp_path, text, "test")
        assert verdict(train, held) == "unknown"
        assert verdict(train, held, at_hand=True) == expected


@pytest.mark.parametrize("size", [16, 24, 40, 49, 50, 90])
def test_copies_count_as_held_out_in_documents_of_no_length(size: int, tmp_path: Path) -> None:
    content = spoken(1, seed=1)[: size - 1].encode() + b"\n"
    (tmp_path / "copies").write_bytes(content * 400)
    copies = [Document(tmp_path / "copies", at * size, (at + 1) * size) for at in range(400)]
    train, test = Part("train", copies[:360]), Part("test", copies[360:])
    assert verdict(train, test, at_hand=True) != "held out"
    whole = Part("test", [Document(tmp_path / "copies", 0, 40 * size)])
    assert verdict(train, whole, at_hand=True) != "held out", "one document, made of those that were trained on"


def test_a_text_in_the_settings_of_a_model_is_not_held_out(tmp_path: Path) -> None:
    train, text = part(tmp_path, spoken(3000, seed=1), "train"), spoken(500, seed=2)
    held, prints = part(tmp_path, text, "test"), [Fingerprint.of(train)]
    for settings in ({"hint": text}, {"a": [{"b": text[:800]}]}, {text[:900]: 1}):
        found = held_out(prints, held, settings=[*strings_in(settings)])
        assert found.verdict == "not held out"
        assert "in the settings" in found.detail
    assert (
        held_out(prints, held, settings=long_strings(json.dumps({"vocab": {text[:900]: 3}}))).verdict == "not held out"
    )
    harmless = [
        *strings_in({"smoothing": "kneser-ney", "order": 3, "rule": "-" * 80, "note": "a note of more than 24 bytes"})
    ]
    assert held_out(prints, held, settings=harmless).verdict == "held out"
