"""Text is written once, when it is certain, and is in the end what the tokenizer decodes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.engine.certain_text import Stopper, writer_after
from lmlab.text.tokenizers import Tokenizer, train_tokenizer
from thinning import examples, thinned

TEXT = "Ünder the ⇒ tree <0xE2> a café 🌳 stands\nand a second line: the the tree tree\n" * 3
SPACED = " the cat sat on the mat \n the dog sat on the log \n" * 4
TOKENIZERS = {
    "byte": train_tokenizer("byte", [TEXT]),
    "char": train_tokenizer("char", [TEXT]),
    "bpe": train_tokenizer("bpe:290", [TEXT]),
    "words": train_tokenizer("words:8", [TEXT]),
    "spaced": train_tokenizer("words:8", [SPACED]),
}


def written(tokenizer: Tokenizer, prompt: str, ids: list[int], spellings: list[str]) -> list[str]:
    writer = writer_after(tokenizer, *tokenizer.encode(prompt))
    words = iter(spellings)
    pieces = [writer.write(id, next(words) if id == tokenizer.unknown_id else None) for id in ids]
    return [*pieces, writer.end()]


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("prompt", thinned(["", "the", "the ", "a café\n", " x"], ["", "the "]))
@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_what_is_written_is_what_the_tokenizer_decodes(kind: str, prompt: str, data: st.DataObject) -> None:
    """Also for tokens that no encoder would put together, such as half characters."""
    tokenizer = TOKENIZERS[kind]
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=12))
    spellings = data.draw(st.lists(st.sampled_from(["", "zebra", " ", "\n "]), min_size=12, max_size=12))
    spellings = spellings[: ids.count(tokenizer.unknown_id) if tokenizer.unknown_id is not None else 0]
    before = tokenizer.encode(prompt)
    whole = tokenizer.decode([*before.ids.tolist(), *ids], [*before.spellings, *spellings])
    assert prompt + "".join(written(tokenizer, prompt, ids, spellings)) == whole


def test_half_a_character_is_held_back_until_it_is_whole() -> None:
    tokenizer = TOKENIZERS["byte"]
    assert written(tokenizer, "", list("a🌳é".encode()), []) == ["a", "", "", "", "🌳", "", "é", ""]
    assert written(tokenizer, "", [0xF0, 0x9F, 0x41], []) == ["", "", "\ufffdA", ""]
    assert written(tokenizer, "", [0xF0, 0x9F], []) == ["", "", "\ufffd"]


@pytest.mark.parametrize("kind", ["byte", "char", "bpe"])
def test_a_text_that_looks_like_the_name_of_a_byte_is_not_taken_for_one(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    for text in ("<0xE2>", "⇒", "0xE2"):
        assert "".join(written(tokenizer, "", tokenizer.encode(text).ids.tolist(), [])) == text


def test_words_are_parted_by_the_spaces_that_go_without_saying() -> None:
    tokenizer = TOKENIZERS["words"]
    ids = tokenizer.encode("tree the").ids.tolist()
    assert written(tokenizer, "a", ids, []) == [" tree", " the", ""]
    assert written(tokenizer, "a\n", ids, []) == ["tree", " the", ""]
    assert written(tokenizer, "", ids, []) == ["tree", " the", ""]
    assert written(tokenizer, "", [tokenizer.unknown_id, *ids], ["zebra"]) == ["zebra", " tree", " the", ""]


def test_the_space_after_a_line_is_written_when_a_line_follows() -> None:
    tokenizer = TOKENIZERS["spaced"]
    ids = tokenizer.encode(" the \n the").ids.tolist()
    assert [tokenizer.piece(id) for id in ids] == ["the", " \n ", "the"]
    assert written(tokenizer, "", ids, []) == [" the", " \n", " the", ""]


def first_stop(text: str, stops: list[str]) -> str:
    """The text before the stop string that is complete first, by trying every end."""
    for end in range(len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(map(len, found))]
    return text


@given(
    text=st.text("ab\n", max_size=14),
    stops=st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3),
    cuts=st.lists(st.integers(0, 14), max_size=6),
)
@settings(max_examples=examples(400), deadline=None)
def test_stop_strings_cut_the_text_however_it_arrives_and_never_show(
    text: str, stops: list[str], cuts: list[int]
) -> None:
    stopper, shown = Stopper(stops), ""
    bounds = sorted({0, len(text), *(c for c in cuts if c < len(text))})
    for start, end in itertools.pairwise(bounds):
        shown += stopper.feed(text[start:end])
        assert first_stop(text, stops).startswith(shown), "something was shown that the stop string takes back"
        if stopper.stopped:
            break
    if not stopper.stopped:
        shown += stopper.end()
    assert shown == first_stop(text, stops)
    assert stopper.stopped == any(stop in text for stop in stops)


def test_only_what_may_begin_a_stop_string_is_held_back() -> None:
    stopper = Stopper(["\n\n", "END"])
    assert [stopper.feed(piece) for piece in ("a", "\n", "b", "E", "N", "e", "\n")] == [
        "a",
        "",
        "\nb",
        "",
        "",
        "ENe",
        "",
    ]
    assert stopper.feed("\nmore") == ""
    assert stopper.stopped


def test_a_copy_of_a_writer_goes_on_by_itself() -> None:
    for tokenizer, ids, other in (
        (TOKENIZERS["byte"], list("é".encode()), list(b"a")),
        (TOKENIZERS["words"], TOKENIZERS["words"].encode("tree the").ids.tolist(), [0]),
    ):
        writer = writer_after(tokenizer, [], [])
        first = writer.write(ids[0], None)
        copy = writer.copy()
        copy.write(other[0], None)
        assert first + writer.write(ids[1], None) == tokenizer.decode(ids)
