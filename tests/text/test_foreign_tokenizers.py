"""A tokenizer.json of others is used as it is: the same tokens as transformers', and lossless or said not to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend
from transformers import PreTrainedTokenizerFast

import lmlab
from lmlab.engine.certain_text import writer_after
from lmlab.text.tokenizers import FOREIGN, Tokenizer, train_tokenizer
from mistakes import mistake
from some_text import some_lines
from thinning import examples

TEXT = (
    "The cat sat on the mat, and it didn't move. In 1984 there were 12345 cats!\n\n  Two spaces; a\ttab.\n"
    "Ça va? Zürich — naïve café. 猫が好き。 🦜🦜 don't CAN'T we'll\r\nThe end of the cat.\n"
) * 4
GPT_2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA_3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN_2 = LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")
ALPHABET = pre_tokenizers.ByteLevel.alphabet()
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level(pattern: str | None) -> Backend:
    """Byte-level BPE, cut by a pattern; None: by that of the library, which is GPT-2's."""
    backend = Backend(models.BPE())
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    backend.pre_tokenizer = to_bytes
    if pattern is not None:
        backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), to_bytes])
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    special = ["<|endoftext|>"]
    backend.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=ALPHABET, show_progress=False),
    )
    return backend


def sentencepiece(*, prepend: bool) -> Backend:
    """BPE with spaces as ▁ and bytes for unknown characters, as in Llama 2 (with a space in front) and Gemma (without)."""
    learner = Backend(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Metaspace()
    learner.train_from_iterator([TEXT[:150]], trainers.BpeTrainer(vocab_size=120, show_progress=False))
    learned = json.loads(learner.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>", *BYTES]
    vocab = {token: id for id, token in enumerate([*tokens, *learned["vocab"]])}
    backend = Backend(
        models.BPE(
            vocab, [tuple(merge) for merge in learned["merges"]], unk_token="<unk>", byte_fallback=True, fuse_unk=True
        )
    )
    spaces: list[Any] = [normalizers.Replace(" ", "▁")]
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), *spaces] if prepend else spaces)
    steps: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prepend else steps)
    backend.add_special_tokens(["<s>", "</s>"])
    backend.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return backend


def unigram() -> Backend:
    """Unigram with metaspaces and without byte fallback, as in T5 and ALBERT."""
    special = ["<pad>", "</s>", "<unk>"]
    backend = Backend(models.Unigram())
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.train_from_iterator(
        [TEXT], trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False)
    )
    return backend


def wordpiece() -> Backend:
    """WordPiece in lower case, as in BERT."""
    backend = Backend(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    backend.train_from_iterator(
        [TEXT], trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    )
    return backend


LOSSLESS: dict[str, Callable[[], Backend]] = {
    "gpt2": lambda: byte_level(None),
    "gpt2 by its pattern": lambda: byte_level(GPT_2),
    "llama3": lambda: byte_level(LLAMA_3),
    "qwen2": lambda: byte_level(QWEN_2),
    "llama2": lambda: sentencepiece(prepend=True),
    "gemma": lambda: sentencepiece(prepend=False),
}
LOSSY: dict[str, Callable[[], Backend]] = {"t5": unigram, "bert": wordpiece}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Tokenizer, Any]]:
    """Of every kind: our tokenizer and transformers' own, from one file."""
    found = {}
    for name, make in {**LOSSLESS, **LOSSY}.items():
        folder = tmp_path_factory.mktemp("foreign")
        PreTrainedTokenizerFast(tokenizer_object=make()).save_pretrained(folder)
        found[name] = Tokenizer.load(folder), PreTrainedTokenizerFast.from_pretrained(folder)
    return found


any_text = st.text(st.characters(codec="utf-8")) | st.lists(
    st.sampled_from(
        [*TEXT.split()[:30], " ", "  ", "\n", "\r\n", "\t", "▁", "<0x41>", "<s>", "<|endoftext|>", "🦜", "\u3000"]
    )
).map("".join)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(any_text)
@example("")
@example(" the")
@example(TEXT)
def test_ids_are_those_of_transformers(made: dict[str, tuple[Tokenizer, Any]], text: str) -> None:
    for name, (ours, theirs) in made.items():
        assert ours.encode(text).ids.tolist() == theirs.encode(
            text, add_special_tokens=False, split_special_tokens=True
        ), name


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(any_text)
@example(" the")
@example("the cat")
@example("🦜")
@example(TEXT)
def test_bytes_of_tokens_are_those_of_the_text_where_it_comes_back(
    made: dict[str, tuple[Tokenizer, Any]], text: str
) -> None:
    for name in LOSSLESS:
        ours = made[name][0]
        ids = ours.encode(text).ids
        if ours.decode(ids) != text:  # a literal ▁ stands for a space there, and a space follows special tokens
            assert name in ("llama2", "gemma")
            assert "▁" in text or "<s>" in text
            continue
        assert int(ours.token_bytes(ids).sum()) == len(text.encode()), name
        writer = writer_after(ours, [], [])
        assert "".join(writer.write(int(id), None) for id in ids) + writer.end() == text, name


def test_pieces_of_a_document_are_encoded_as_one(made: dict[str, tuple[Tokenizer, Any]]) -> None:
    for name, (ours, theirs) in made.items():
        pieces = [TEXT[start : start + 7] for start in range(0, len(TEXT), 7)]
        ids = np.concatenate([encoded.ids for encoded in ours.encode_pieces(pieces)])
        assert ids.tolist() == theirs.encode(TEXT, add_special_tokens=False), name


def test_many_short_texts_are_encoded_each_by_itself(made: dict[str, tuple[Tokenizer, Any]]) -> None:
    texts = ["the cat", "", " sat", "猫"]
    for name, (ours, theirs) in made.items():
        encoded, lengths = ours.encode_each(texts)
        expected = [theirs.encode(text, add_special_tokens=False) for text in texts]
        assert [ids.tolist() for ids in np.split(encoded.ids, np.cumsum(lengths)[:-1])] == expected, name


def test_what_is_saved_is_the_same_tokenizer(made: dict[str, tuple[Tokenizer, Any]], tmp_path: Path) -> None:
    for name, (ours, _) in made.items():
        ours.save(tmp_path)
        again = Tokenizer.load(tmp_path)
        assert (again.spec, again.hash, again.vocab_size) == (FOREIGN, ours.hash, ours.vocab_size), name
        assert again.encode(TEXT).ids.tolist() == ours.encode(TEXT).ids.tolist()


def test_truncation_padding_and_dropout_of_a_file_change_nothing(tmp_path: Path) -> None:
    backend = byte_level(GPT_2)
    backend.save(str(tmp_path / "tokenizer.json"))
    plain = Tokenizer.load(tmp_path).encode(TEXT).ids.tolist()
    backend.enable_truncation(4)
    backend.enable_padding(length=1000)
    backend.model.dropout = 0.9
    backend.save(str(tmp_path / "tokenizer.json"))
    assert Tokenizer.load(tmp_path).encode(TEXT).ids.tolist() == plain


def test_added_tokens_and_gaps_between_ids_are_ids_of_the_vocabulary(tmp_path: Path) -> None:
    backend = byte_level(GPT_2)
    backend.add_tokens(["<|im_start|>"])
    description = json.loads(backend.to_str())
    description["added_tokens"][-1]["id"] = 450
    (tmp_path / "tokenizer.json").write_text(json.dumps(description))
    ours = Tokenizer.load(tmp_path)
    last = ours.encode("the<|im_start|>").ids[-1]
    assert last == ours.vocab_size - 1
    assert ours.piece(int(last)) == "<|im_start|>"
    assert ours.decode([int(last)]) == "<|im_start|>"


@pytest.mark.parametrize("spec", ["byte", "char", "words", "words:5", "bpe:270"])
def test_files_of_the_lab_are_marked_and_those_without_a_mark_are_known_by_their_shape(
    spec: str, tmp_path: Path
) -> None:
    ours = train_tokenizer(spec, [TEXT])
    ours.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    marked = json.loads(path.read_text())
    assert marked["model"]["lmlab"] == spec
    assert Backend.from_str(path.read_text()).to_str() == ours.backend.to_str()
    path.write_text(ours.backend.to_str(pretty=True))  # as version 0.1 wrote it
    assert "lmlab" not in json.loads(path.read_text())["model"]
    again = Tokenizer.load(tmp_path)
    assert (again.spec, again.hash) == (spec, ours.hash)


def with_other_pattern(description: dict[str, Any]) -> None:
    description["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": GPT_2}


def with_lower_case(description: dict[str, Any]) -> None:
    description["normalizer"] = {"type": "Lowercase"}


def with_two_ids_swapped(description: dict[str, Any]) -> None:
    vocab = description["model"]["vocab"]
    first, second = list(vocab)[-2:]
    vocab[first], vocab[second] = vocab[second], vocab[first]


def with_an_added_token(description: dict[str, Any]) -> None:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    description["added_tokens"] = [{"id": 270, "content": "<|x|>", **flags}]


@pytest.mark.parametrize("change", [with_other_pattern, with_lower_case, with_two_ids_swapped, with_an_added_token])
def test_a_merging_tokenizer_that_differs_from_ours_in_one_thing_is_foreign(
    change: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    """The planted bug: to take it for ours, and to cut text by our pattern."""
    ours = train_tokenizer("bpe:270", [TEXT])
    description = json.loads(ours.backend.to_str())
    change(description)
    (tmp_path / "tokenizer.json").write_text(json.dumps(description))
    found, theirs = Tokenizer.load(tmp_path), Backend.from_str(json.dumps(description))
    assert found.spec == FOREIGN
    assert found.encode(TEXT).ids.tolist() == theirs.encode(TEXT, add_special_tokens=False).ids
    description["model"]["lmlab"] = "bpe:270"
    (tmp_path / "tokenizer.json").write_text(json.dumps(description))
    with mistake("tokenizer-not-as-marked"):
        Tokenizer.load(tmp_path)


@pytest.fixture(scope="module")
def ligatures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text that both lossy tokenizers change: NFKC writes ﬁ in two letters, and lower case is lower case."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(some_lines(150).replace("mat", "ﬁn"))
    return path


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(some_lines(150))
    return path


@pytest.mark.parametrize("name", ["llama3", "llama2"])
def test_a_model_of_foreign_tokens_is_certified(
    name: str, made: dict[str, tuple[Tokenizer, Any]], text_file: Path, tmp_path: Path
) -> None:
    tokenizer = made[name][0]
    run = lmlab.train("bag", text_file, out=tmp_path / "run", tokenizer=tokenizer)
    result: Any = lmlab.evaluate(lmlab.load(run.folder), device="cpu")
    assert result.certified
    assert result.model["tokenizer"] == FOREIGN
    (tmp_path / "short.txt").write_text(some_lines(5, seed=1))
    lmlab.compress(tmp_path / "short.txt", model=run, out=tmp_path / "small.lm")
    lmlab.decompress(tmp_path / "small.lm", model=run, out=tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "short.txt").read_bytes()
    assert "Tokenizer.load(RUN)" in (run.folder / "recipe.toml").read_text()


@pytest.mark.parametrize("name", sorted(LOSSY))
def test_a_tokenizer_that_loses_something_gets_no_certificate(
    name: str, made: dict[str, tuple[Tokenizer, Any]], ligatures: Path, tmp_path: Path
) -> None:
    run = lmlab.train("bag", ligatures, out=tmp_path / "run", tokenizer=made[name][0])
    result: Any = lmlab.evaluate(run, device="cpu")
    assert not result.certified
    assert "lossless" in result.certificate.failures
    with mistake("tokenizer-not-lossless"):
        lmlab.score(run, ["The  ﬁn"], device="cpu")
    with mistake("tokenizer-not-lossless"):
        lmlab.compress(ligatures, model=run, out=tmp_path / "small.lm")


def test_a_run_whose_tokenizer_is_another_is_damaged(
    made: dict[str, tuple[Tokenizer, Any]], text_file: Path, tmp_path: Path
) -> None:
    run = lmlab.train("bag", text_file, out=tmp_path / "run", tokenizer="bpe:300")
    made["gpt2"][0].save(run.folder)
    with mistake("tokenizer-of-another-run"):
        lmlab.evaluate(run.folder)
