"""Pieces of a part: how much of a test text is measured, and how much of a training text compressors are shown."""

from __future__ import annotations

from lmlab.text.parts import Document, Part


def first_bytes(part: Part, limit: int) -> Part:
    """The beginning of a part, at most about `limit` bytes, cut between characters."""
    documents: list[Document] = []
    left = limit
    for document in part.documents:
        if left <= 0:
            break
        if document.size > left:
            share = left / document.size
            document, _ = document.split_at(max(1, int(document.characters() * share)))
        documents.append(document)
        left -= document.size
    return Part(part.name, documents)


def last_bytes(part: Part, limit: int = 8 << 20) -> bytes:
    """The last bytes of a part, about `limit` of them."""
    blocks: list[bytes] = []
    for document in reversed(part.documents):
        blocks.append(b"".join(document.blocks())[-limit:])
        limit -= len(blocks[-1])
        if limit <= 0:
            break
    return b"".join(reversed(blocks))
