"""Texts in other forms: gzip, zstd, a column of a parquet table, and token ids of nanoGPT and NumPy."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest
import zstandard

import lmlab as lab
from command_line import Lmlab, done, refused
from lmlab.text.tokenizers import Tokenizer, train_tokenizer
from mistakes import mistake
from some_text import TEXT


def text_of(path: Path | str) -> str:
    return "".join(text for _, text in lab.read(path, split=(100, 0, 0)).train.pieces())


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_packed_file_is_the_text_in_it(ending: str, tmp_path: Path) -> None:
    pack = gzip.compress if ending == ".gz" else zstandard.ZstdCompressor().compress
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / f"text.txt{ending}"
    path.write_bytes(pack(TEXT.encode()))
    assert text_of(path) == TEXT
    assert text_of(tmp_path / "folder") == TEXT


def test_several_frames_of_zstd_are_one_text_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path, pack = tmp_path / "text.zst", zstandard.ZstdCompressor().compress
    path.write_bytes(pack(b"one ") + pack(b"two"))
    assert text_of(path) == "one two"
    whole = pack(TEXT.encode())
    for damaged in (whole[:40], whole[:-1], whole[:40] + b"damage"):
        path.write_bytes(damaged)
        with mistake("text-zstd-damaged"):
            lab.read(path)


def test_a_parquet_table_is_read_by_its_column(tmp_path: Path, lmlab: Lmlab) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    parquet.write_table(pyarrow.table({"text": ["ä first", None, "second"], "title": ["a", "b", "c"]}), one)
    many = tmp_path / "many.parquet"
    parquet.write_table(pyarrow.table({"text": TEXT.splitlines()}), many)
    parquet.write_table(pyarrow.table({"body": ["first"], "title": ["other"], "stars": [1]}), two)
    assert text_of(one) == "ä first\n\nsecond"
    assert text_of(f"{one}:title") == "a\n\nb\n\nc"
    assert text_of(f"{two}:body") == "first"
    with mistake("parquet-which-column", "two.parquet:COLUMN"):
        lab.read(two)
    with mistake("parquet-without-column", "did you mean 'body'"):
        lab.read(f"{two}:bodi")
    assert "many" in done(lmlab("data", "show", f"{many}:text"))
    corpus = lab.read(f"{one}:title", split=(100, 0, 0))
    assert lab.text.corpus.Corpus.from_spec(corpus.spec()).train.sha256 == corpus.train.sha256


def test_token_ids_of_characters_are_read_as_nanogpt_wrote_them(tmp_path: Path) -> None:
    characters = sorted(set(TEXT))
    stoi = {c: i for i, c in enumerate(characters)}
    meta = {"vocab_size": len(characters), "itos": dict(enumerate(characters)), "stoi": stoi}
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps(meta))
    ids = np.array([stoi[c] for c in TEXT], dtype=np.uint16)
    ids.tofile(tmp_path / "train.bin")
    np.save(tmp_path / "train.npy", ids.astype(np.int64))
    assert text_of(tmp_path / "train.bin") == TEXT
    assert text_of(tmp_path / "train.npy") == TEXT


def test_token_ids_are_decoded_by_the_tokenizer_beside_them_and_documents_are_kept_apart(tmp_path: Path) -> None:
    tokenizer: Tokenizer = train_tokenizer("bpe:300", [TEXT])
    tokenizer.save(tmp_path)
    ids = tokenizer.encode(TEXT).ids.astype(np.uint16)
    ids.tofile(tmp_path / "train.bin")
    assert text_of(tmp_path / "train.bin") == TEXT
    np.array([1000], dtype=np.uint16).tofile(tmp_path / "train.bin")
    with mistake("token-ids-unknown"):
        lab.read(tmp_path / "train.bin")


def test_two_documents_of_token_ids_are_a_blank_line_apart(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Backend
    from tokenizers import models

    words = {"a": 0, "b": 1, "<|endoftext|>": 2}
    backend = Backend(models.WordLevel(words, unk_token="a"))
    backend.save(str(tmp_path / "tokenizer.json"))
    np.array([2, 0, 2, 1, 0, 2], dtype=np.uint16).tofile(tmp_path / "train.bin")
    assert text_of(tmp_path / "train.bin") == "a\n\nb a"


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return (print, ("code of a pickle was run",))


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"itos": Evil()}))
    np.zeros(4, dtype=np.uint16).tofile(tmp_path / "train.bin")
    with mistake("token-ids-meta", "builtins.print"):
        lab.read(tmp_path / "train.bin")
    assert "was run" not in capsys.readouterr().out


def test_token_ids_without_a_vocabulary_say_what_is_lacking(tmp_path: Path, lmlab: Lmlab) -> None:
    np.save(tmp_path / "train.npy", np.zeros(4, dtype=np.int64))
    refused(lmlab("train", "bag", tmp_path / "train.npy"), "token-ids-without-vocabulary")
    (tmp_path / "mine.bin").write_text("plain text in a file of that name")
    assert text_of(tmp_path / "mine.bin") == "plain text in a file of that name"


def test_a_number_is_no_token_id(tmp_path: Path) -> None:
    np.save(tmp_path / "train.npy", np.zeros(4))
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"itos": {0: "a"}}))
    with mistake("token-ids-not-whole"):
        lab.read(tmp_path / "train.npy")
