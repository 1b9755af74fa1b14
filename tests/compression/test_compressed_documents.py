"""Compressing a text of many documents: it comes back byte for byte, at the cost that scoring its documents claims."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmlab
from lmlab.text.documents import DocumentRule, split_text
from some_documents import invented_names, list_of_names


@pytest.mark.parametrize("kind", ["ngram", "gpt"])
@pytest.mark.parametrize("streams", [1, 3])
def test_documents_come_back_and_cost_what_their_scores_claim(kind: str, streams: int, tmp_path: Path) -> None:
    settings = {"layers": 1, "width": 16, "heads": 1, "context": 16} if kind == "gpt" else None
    run = lmlab.train(
        kind, list_of_names(tmp_path), documents="lines", out=tmp_path / "run", budget="3steps", settings=settings
    )
    text = tmp_path / "text.txt"
    for content in ("\n".join(invented_names(40)[::2]), "\n\nbara\n", "\n", "ba"):
        text.write_text(content)
        found = lmlab.compress(text, model=run, out=tmp_path / "x.lm", streams=streams, check=True, force=True)
        lmlab.decompress(tmp_path / "x.lm", model=run, out=tmp_path / "back.txt", force=True)
        assert (tmp_path / "back.txt").read_text() == content
        lines = content.split("\n")
        claimed = sum(text.bits for text in lmlab.score(run, lines[:-1])) if len(lines) > 1 else 0.0
        claimed += lmlab.score(run, lines[-1], end=False).bits if lines[-1] else 0.0
        assert found.claimed_bits == pytest.approx(claimed, rel=1e-4)
        if streams == 1:
            header = 8 * (30 + 60)  # what must match, and who made it
            assert found.claimed_bits - 8 <= 8 * found.compressed_bytes <= found.claimed_bits + header


@pytest.mark.parametrize(
    ("mode", "separator", "text", "documents"),
    [
        ("lines", "\n", "a\n\nb", ["a\n", "\n", "b"]),
        ("lines", "\r\n", "a\r\nb\nc\r\n", ["a\r\n", "b\nc\r\n"]),
        ("blank", "\n\n", "a\nb\n\n\nc\n\nd\n", ["a\nb\n\n\n", "c\n\n", "d\n"]),
        ("blank", "\r\n\r\n", "a\r\n\r\n\r\nb\r\n\r\nc", ["a\r\n\r\n\r\n", "b\r\n\r\n", "c"]),
    ],
)
def test_a_text_is_cut_as_a_file_is_divided(
    mode: str, separator: str, text: str, documents: list[str], tmp_path: Path
) -> None:
    from lmlab.text.corpus import read

    assert split_text(text, DocumentRule(mode, separator.encode())) == documents
    (tmp_path / "text").write_bytes(text.encode())
    corpus = read(tmp_path / "text", documents=DocumentRule(mode, separator.encode()), split=(100, 0, 0))
    divided = ["".join(document.pieces()) for document in corpus.train.documents]
    assert [each.removesuffix(separator) for each in divided] == [
        each.removesuffix(separator) for each in documents
    ] or (
        mode == "blank" and divided[:-1] == documents[:-1]  # the last separator is completed from what is there of it
    )
