"""Every tokenizer gives every text back, and the library object saved for others agrees with it."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend

from lmlab.text import tokenizers as module
from lmlab.text import vocabulary
from lmlab.text.chunks import chunks
from lmlab.text.tokenizers import Tokenizer, train_tokenizer
from thinning import examples

PLAIN = (
    "the cat sat on the mat\nthe dog sat too\n\nthe <unk> cat\tand   the dog; the end of the cat\n"
    "A café in Zürich, the café of the cat.\n" * 3
)
SPACED = " the cat sat on the mat \n the dog sat \n the <unk> cat and the dog \n the end \n" * 3
SPECS = ["byte", "char", "words", "words:5", "bpe:270"]
ODD = [
    "\x00",
    "\r",
    "\r\n",
    " ",
    "\n",
    "\t",
    "\x1c",
    "\x85",
    "\xa0",
    "\u2028",
    "\u3000",
    "\ue000",
    "\U000f0000",
    "\ufeff",
    "🦜",
    "e\u0301",
]

any_text = st.text(st.characters(codec="utf-8"))
worded = st.lists(
    st.sampled_from(
        ["the", "cat", "dog", "mat", "zebra", "<unk>", "<0x41>", "<unknown word>", *ODD, "  ", "   ", " \n", "\n "]
    )
).map("".join)


@functools.cache
def tokenizer(spec: str, spaced: bool = False) -> Tokenizer:
    return train_tokenizer(spec, [SPACED if spaced else PLAIN])


def all_tokenizers() -> list[Tokenizer]:
    return [*(tokenizer(spec) for spec in SPECS), tokenizer("words", True), tokenizer("words:5", True)]


def check_round_trip(text: str) -> None:
    for each in all_tokenizers():
        ids, spellings = each.encode(text)
        assert each.decode(ids, spellings) == text, each
        sizes = each.token_bytes(ids, spellings)
        assert sizes.sum() == len(text.encode())
        assert len(sizes) == len(ids)
        assert (sizes >= 0).all()
        assert (ids == each.unknown_id).sum() == len(spellings)


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(any_text)
@example("")
@example("<0x41>")
@example("no newline at the end")
@example("\x00\r\ue000\U0010ffff")
def test_any_text_comes_back(text: str) -> None:
    check_round_trip(text)


@settings(max_examples=examples(500), deadline=None, derandomize=True)
@given(worded)
@example(" ")
@example("\n")
@example("\n ")
@example(" \n ")
@example("  the")
@example("the  ")
@example(" the cat \n the dog \n")
def test_any_mix_of_words_and_whitespace_comes_back(text: str) -> None:
    check_round_trip(text)


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(worded, st.integers(1, 9), st.integers(1, 9))
def test_pieces_and_chunks_change_neither_the_text_nor_the_tokens(text: str, size: int, piece: int) -> None:
    pieces = [text[i : i + piece] for i in range(0, len(text), piece)]
    tokenizers = all_tokenizers()  # made of whole chunks, also where no test has made them yet
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "chunks", functools.partial(chunks, size=size))
        for each in tokenizers:
            by_pieces = list(each.encode_pieces(pieces))
            at_once = each.encode(text)
            assert [i for e in by_pieces for i in e.ids] == at_once.ids.tolist()
            assert [s for e in by_pieces for s in e.spellings] == at_once.spellings
            assert each.decode(*at_once) == text


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(worded, st.integers(12, 20))
def test_chunks_no_shorter_than_the_words_leave_the_tokens_as_they_are(text: str, size: int) -> None:
    """Chunks end where words end, so only a run longer than a chunk is cut."""
    text = text.replace("\x1c", "")  # no place to cut: libraries disagree on what it is
    text = re.sub(r"(\S{6})", r"\1 ", text)
    text = re.sub(r"(\s{4})\s+", r"\1a", text)
    whole = [each.encode(text) for each in all_tokenizers()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "chunks", functools.partial(chunks, size=size))
        for each, (ids, spellings) in zip(all_tokenizers(), whole, strict=True):
            again = each.encode(text)
            assert again.ids.tolist() == ids.tolist(), each
            assert again.spellings == spellings


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(any_text)
@example("<0x41> café 🦜")
def test_the_saved_library_tokenizer_gives_the_same_ids_and_text(text: str) -> None:
    for spec in ("byte", "char", "bpe:270"):
        backend = Backend.from_str(tokenizer(spec).backend.to_str())
        ids = tokenizer(spec).encode(text).ids.tolist()
        assert backend.encode(text, add_special_tokens=False).ids == ids
        assert backend.decode(ids, skip_special_tokens=False) == text


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*PLAIN.split(), "\n", "\n", "\n\n", "   ", "\t"])), st.booleans())
def test_the_saved_word_tokenizer_agrees_on_known_words(tokens: list[str], spaced: bool) -> None:
    ours = tokenizer("words", spaced)
    if spaced:
        lines = " ".join(t for t in tokens if t in SPACED and t != "\t").split("\n")
        text = "".join(f" {' '.join(line.split())} \n" for line in lines if line.split())
    else:
        text = re.sub(r" ?([\n\t]+|   ) ?", r"\1", " ".join(tokens)).strip(" ")
    ids, spellings = ours.encode(text)
    backend = Backend.from_str(ours.backend.to_str())
    assert backend.encode(text, add_special_tokens=False).ids == ids.tolist()
    if not spellings:
        assert backend.decode(ids.tolist(), skip_special_tokens=False) == text


def test_byte_ids_are_byte_values() -> None:
    byte = tokenizer("byte")
    assert byte.vocab_size == 256
    assert byte.encode("aé\n").ids.tolist() == list("aé\n".encode())
    assert byte.unknown_id is None
    assert byte.spelling is None


def test_bpe_ids_below_256_are_byte_values_and_merges_follow() -> None:
    bpe = tokenizer("bpe:270")
    assert bpe.vocab_size == 270
    assert [bpe.encode(chr(b)).ids.tolist() for b in range(128)] == [[b] for b in range(128)]
    assert len(bpe.encode(PLAIN).ids) < len(PLAIN.encode()) * 0.6


def test_char_uses_one_token_for_a_known_character_and_bytes_for_the_others() -> None:
    char = tokenizer("char")
    assert len(char.encode("é").ids) == 1
    assert [char.piece(i) for i in char.encode("é").ids] == ["é"]
    assert [char.piece(i) for i in char.encode("🦜").ids] == ["<0xF0>", "<0x9F>", "<0xA6>", "<0x9C>"]
    assert char.vocab_size == len(set(PLAIN)) + 256


@pytest.mark.parametrize("spec", SPECS)
def test_fallback_ids_are_those_of_characters_without_a_token(spec: str) -> None:
    of = tokenizer(spec)
    fallen = [of.piece(i) for i in of.encode("the 🦜").ids if i in of.fallback_ids]
    assert fallen == (["<0xF0>", "<0x9F>", "<0xA6>", "<0x9C>"] if spec.startswith(("char", "bpe")) else [])
    assert not of.fallback_ids or of.fallback_ids[-1] < of.vocab_size


def test_a_word_has_one_id_wherever_it_stands() -> None:
    words = tokenizer("words")
    ids = words.encode("cat cat\ncat  cat\n\tcat cat").ids
    assert len({int(i) for i in ids if words.piece(i) == "cat"}) == 1
    assert [words.piece(i) for i in words.encode("the cat\nthe\n\ncat").ids] == [
        "the",
        "cat",
        "\n",
        "the",
        "\n",
        "\n",
        "cat",
    ]


def test_literal_unk_is_an_ordinary_word() -> None:
    words = tokenizer("words")
    ids, spellings = words.encode("<unk> zebra <unknown word>")
    assert words.piece(ids[0]) == "<unk>"
    assert ids.tolist()[1:] == [words.unknown_id] * 3
    assert spellings == ["zebra", "<unknown", "word>"]


def test_penn_treebank_lines_are_their_words_and_one_line_end_each() -> None:
    words = tokenizer("words", True)
    text = " the cat sat \n the dog \n"
    assert [words.piece(i) for i in words.encode(text).ids] == ["the", "cat", "sat", " \n ", "the", "dog", " \n "]
    assert words.token_bytes(*words.encode(text)).tolist() == [4, 4, 4, 3, 3, 4, 2]


def test_implied_spaces_count_with_the_word_after_them() -> None:
    words = tokenizer("words")
    ids, spellings = words.encode("the zebra\nthe  cat")
    assert words.token_bytes(ids, spellings).tolist() == [3, 6, 1, 3, 2, 3]


def test_words_seen_once_give_the_unknown_symbol_its_probability() -> None:
    words = train_tokenizer("words", ["a b a b a b rare\n" * 2 + "once\n"])
    assert {words.piece(i) for i in range(words.vocab_size)} == {"a", "b", "rare", "\n", "<unknown word>"}
    assert words.encode("a once rare").spellings == ["once"]


def test_a_closed_vocabulary_keeps_words_seen_once() -> None:
    words = train_tokenizer("words", ["a b c d e f g h\n" * 500 + "once\n"])
    assert words.encode("a once b").spellings == []
    assert words.encode("a new b").spellings == ["new"]


def test_words_n_keeps_the_most_frequent() -> None:
    words = train_tokenizer("words:2", ["a a a b b c\n"])
    assert [words.piece(i) for i in range(3)] == ["a", "b", "<unknown word>"]
    assert words.unknown_id == 2
    assert words.encode("a b c\n").spellings == ["c", "\n"]


@pytest.mark.parametrize("spec", SPECS)
def test_saving_and_loading_keeps_everything(spec: str, tmp_path) -> None:
    for spaced in (False, True):
        before = train_tokenizer(spec, [SPACED if spaced else PLAIN])
        before.save(tmp_path)
        after = Tokenizer.load(tmp_path)
        assert (after.spec, after.vocab_size, after.unknown_id) == (before.spec, before.vocab_size, before.unknown_id)
        assert after.hash == before.hash
        assert Backend.from_file(str(tmp_path / "tokenizer.json")).get_vocab_size() == before.vocab_size
        text = SPACED + PLAIN + "zebra 🦜"
        assert after.encode(text).ids.tolist() == before.encode(text).ids.tolist()
        assert after.encode(text).spellings == before.encode(text).spellings
        if before.spelling and after.spelling:
            assert after.spelling.nats(["zebra", "🦜"]).tolist() == before.spelling.nats(["zebra", "🦜"]).tolist()


def test_large_vocabularies_take_four_bytes_a_token() -> None:
    words = train_tokenizer("words", [" ".join(f"w{i}" for i in range(70_000)) + "\n"] * 2)
    ids = words.encode("w0 w69999 other").ids
    assert words.vocab_size == 70_002
    assert ids.dtype == np.uint32
    assert [words.piece(i) for i in ids] == ["w0", "w69999", "<unknown word>"]
    assert tokenizer("words").encode("the").ids.dtype == np.uint16


def test_a_sample_of_spelling_examples_favours_no_word() -> None:
    counts = {f"word{i}": 1 + i % 7 for i in range(10_000)}
    sample = vocabulary._every_kth(counts, 5_000)
    assert sum(sample.values()) == 5_000
    total = sum(counts.values())
    for often in range(1, 8):
        share = sum(n for w, n in counts.items() if n == often) / total
        taken = sum(n for w, n in sample.items() if counts[w] == often) / 5_000
        assert abs(taken - share) < 0.02


def test_merges_are_learned_from_a_thinning_sample_of_a_long_text(monkeypatch) -> None:
    monkeypatch.setattr(module, "BPE_SAMPLE_CHARS", 100)
    kept = [int(chunk) for chunk in module._thinned(f"{i:010}" for i in range(80))]
    assert kept[:10] == list(range(10))  # all of the first 100 characters
    assert [i for i in kept if 10 <= i < 20] == [10, 12, 14, 16, 18]
    assert [i for i in kept if 20 <= i < 40] == [20, 24, 28, 32, 36]
    assert kept[-1] >= 64


def test_hash_changes_with_the_vocabulary() -> None:
    assert train_tokenizer("char", ["ab"]).hash != train_tokenizer("char", ["abc"]).hash
    assert train_tokenizer("char", ["ab"]).hash == train_tokenizer("char", ["ba"]).hash


def test_documents_and_their_pieces_train_alike() -> None:
    pairs = [(0, SPACED[:50]), (0, SPACED[50:]), (1, SPACED)]
    for spec in SPECS:
        assert train_tokenizer(spec, pairs).hash == train_tokenizer(spec, [SPACED, SPACED]).hash


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("word", "did you mean 'words'"),
        ("bpe", "bpe:N"),
        ("bpe:abc", "bpe:N"),
        ("bpe:0", "bpe:N"),
        ("words:-3", "words:N"),
        ("bpe:256", "256 bytes come first"),
        ("bpe:60000", "write bpe:"),
        ("words:60000", "write words:"),
    ],
)
def test_a_bad_spec_says_in_one_line_what_would_be_right(spec: str, says: str) -> None:
    with pytest.raises(ValueError) as error:
        train_tokenizer(spec, [PLAIN])
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_the_size_a_bpe_error_offers_can_be_trained() -> None:
    with pytest.raises(ValueError) as error:
        train_tokenizer("bpe:60000", [PLAIN])
    match = re.search(r"write (bpe:\d+)", str(error.value))
    assert match
    assert train_tokenizer(match[1], [PLAIN]).spec == match[1]


def test_a_damaged_tokenizer_is_reported_in_one_line(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"tokenizer\.json is missing"):
        Tokenizer.load(tmp_path)
    tokenizer("words").save(tmp_path)
    for damaged in ("{", "{}", "[]"):
        (tmp_path / "spelling.json").write_text(damaged)
        with pytest.raises(ValueError, match="damaged"):
            Tokenizer.load(tmp_path)


def test_a_text_without_spaces_trains_and_encodes_in_bounded_pieces() -> None:
    rng = np.random.default_rng(0)
    text = "".join(rng.choice(list("abcd"), 20_000))
    bpe = train_tokenizer("bpe:400", [text])
    assert bpe.decode(*bpe.encode(text)) == text


def test_penn_treebank_has_its_published_numbers_of_tokens() -> None:
    data = os.environ.get("LMLAB_BENCH_DATA")
    if not data:
        pytest.skip("LMLAB_BENCH_DATA is not set")
    texts = {part: Path(data, "ptb", f"ptb.{part}.txt").read_text() for part in ("train", "valid", "test")}
    words = train_tokenizer("words", [texts["train"]])
    encoded = {part: words.encode(text) for part, text in texts.items()}
    assert words.vocab_size == 10_000 + 1  # the unknown symbol
    assert {part: len(e.ids) for part, e in encoded.items()} == {"train": 929_589, "valid": 73_760, "test": 82_430}
    assert all(e.spellings == [] for e in encoded.values())
    (line_end,) = (i for i in range(words.vocab_size) if "\n" in words.piece(i))
    assert words.piece(line_end) == " \n "
    assert (encoded["test"].ids == line_end).sum() == texts["test"].count("\n")
