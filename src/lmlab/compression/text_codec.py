"""A text to bytes and back, by arithmetic coding on `begin` and `advance` alone, so for every model there is.

Both directions make the same calls: `begin`, then `advance` by one token, for all streams side by side, on one thread.
The decoder must find exactly the encoder's probabilities. Models that count look theirs up in tables that the run keeps, and
from there on all arithmetic is the same everywhere (`portable`), so their files open on every machine. What networks compute
is the same only where the arithmetic is: the same lmlab, torch, kind of processor and device. The file says which those were.
Where they differ, decompression notices (the text's hash does not match), says what would open it, and gives nothing back.

Where a model predicts the ends of documents, the text is coded as documents: after each end both sides `begin` again.

Shapes: B streams side by side, V vocabulary.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, final

import numpy as np
import torch
from torch import Tensor

from lmlab.compression.arithmetic_coder import Decoder, Encoder, OutOfStep, Table
from lmlab.compression.file_format import VERSION, Header, fingerprint, pack, stream_bounds, text_check, unpack
from lmlab.compression.portable_exp import exponential
from lmlab.config import Mistake, an
from lmlab.hardware.c_kernels import no_c_kernels
from lmlab.hardware.openmp import set_threads, threads_as_before
from lmlab.measure.score import device_of, evaluating, nats_of_tokens
from lmlab.text.codings import Encoded
from lmlab.version import __version__

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.text.spelling import Spelling
    from lmlab.text.tokenizers import Tokenizer

Progress = Callable[[int, int], None]  # (tokens done, tokens in all)

SPELLING_TABLES = 1 << 14  # beginnings of words whose tables are kept


def compress(
    model: LanguageModel,
    tokenizer: Tokenizer,
    text: str,
    *,
    streams: int = 1,
    documents: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> bytes:
    """The text in as many bytes as `model` says, and about twenty more that tell what must match.

    streams: cut the tokens into so many pieces that are coded side by side, each from `begin`. That is faster for neural
        models, and costs what the model would have known from before each cut.
    documents: the text cut into documents, each with its separator; None: it is one document.
    """
    if streams < 1:
        raise Mistake(f"{{streams}} is a whole number from 1 up; got {streams}", code="streams-below-one", streams=None)
    original = _utf8(text)
    encoded, lengths = _encoded(tokenizer, text, documents)
    ids, spellings = encoded
    if tokenizer.end_id is None:
        tokenizer.require_lossless([text], encoded, lengths)
    assert tokenizer.decode(ids, spellings) == text, "tokenizers are lossless"
    bounds = stream_bounds(len(ids), min(streams, max(len(ids), 1)))
    spelled = bounds
    if tokenizer.unknown_id is not None:
        unknown_before = np.concatenate([[0], np.cumsum(ids == tokenizer.unknown_id)])
        spelled = unknown_before[bounds].tolist()
    speller = Speller.of(tokenizer)
    senders = [
        Sender(ids[a:b].tolist(), spellings[c:d], speller)
        for (a, b), (c, d) in zip(pairwise(bounds), pairwise(spelled), strict=True)
    ]
    _walk_each(model, tokenizer.end_id, np.diff(bounds).tolist(), senders, progress)
    header = Header(
        fingerprint=fingerprint(model, tokenizer),
        text_check=text_check(original),
        text_bytes=len(original),
        tokens=len(ids),
        maker="" if model.portable else maker(model),
    )
    return pack(header, [sender.encoder.finish() for sender in senders])


def decompress(model: LanguageModel, tokenizer: Tokenizer, data: bytes, *, progress: Progress | None = None) -> str:
    """The text that `compress` made `data` from; Mistake, in one line, for anything else."""
    header, streams = unpack(data)
    own = fingerprint(model, tokenizer)
    if header.fingerprint != own:
        raise Mistake(
            f"this was compressed with another model (fingerprint {header.fingerprint.hex()}, and this {model.name} has"
            f" {own.hex()}); give the run it was compressed with",
            code="compressed-by-another-model",
        )
    bounds = stream_bounds(header.tokens, len(streams))
    speller = Speller.of(tokenizer)
    receivers = [Receiver(Decoder(stream), speller, header.text_bytes) for stream in streams]
    try:
        _walk_each(model, tokenizer.end_id, np.diff(bounds).tolist(), receivers, progress, header.version)
        for receiver in receivers:
            receiver.decoder.finish()
    except OutOfStep:
        raise _different_arithmetic(model, header) from None
    ids = [id for receiver in receivers for id in receiver.ids]
    text = tokenizer.decode(ids, [word for receiver in receivers for word in receiver.spellings])
    returned = text.encode()
    if len(returned) != header.text_bytes or text_check(returned) != header.text_check:
        raise _different_arithmetic(model, header)
    return text


def compressed_bits(model: LanguageModel, tokenizer: Tokenizer, text: str, *, streams: int = 1) -> int:
    """Bits of the whole compressed file, header and checksums included."""
    return 8 * len(compress(model, tokenizer, text, streams=streams))


def claimed_bits(
    model: LanguageModel, tokenizer: Tokenizer, text: str, documents: Sequence[str] | None = None
) -> float:
    """Bits that the model's `score` gives the text, the spelling of unknown words included.

    Infinite where the model holds a token of the text impossible.

    Args:
        documents: the text cut into documents, each with its separator; None: it is one document.
    """
    _utf8(text)
    (ids, spellings), lengths = _encoded(tokenizer, text, documents)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    nats = float(nats_of_tokens(model, ids, starts).sum(dtype=np.float64)) if len(ids) else 0.0
    if tokenizer.spelling is not None:
        nats += float(tokenizer.spelling.nats(spellings).sum())
    return nats / math.log(2.0)


def _encoded(tokenizer: Tokenizer, text: str, documents: Sequence[str] | None) -> tuple[Encoded, np.ndarray]:
    """The tokens of a text, and how many each document has. Ends are among them where the tokenizer has them."""
    separator = tokenizer.separator
    if separator is None:
        encoded = tokenizer.encode(text)
        return encoded, np.array([len(encoded.ids)])
    pieces = [text] if documents is None else documents
    assert "".join(pieces) == text, "the documents of a text are all of it"
    ended = [piece for piece in pieces if piece.endswith(separator)]
    encoded, lengths = tokenizer.encode_documents([piece[: len(piece) - len(separator)] for piece in ended])
    if len(ended) == len(pieces) or not text:
        return encoded, lengths
    assert pieces[: len(ended)] == ended, "only the last document may lack a separator"
    last = tokenizer.encode(pieces[-1])
    ids = np.concatenate([encoded.ids, last.ids])
    return Encoded(ids, [*encoded.spellings, *last.spellings]), np.append(lengths, len(last.ids))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Mistake(
            f"character {error.start} of the text is half of a surrogate pair, which UTF-8 cannot hold;"
            " read the text as UTF-8",
            code="surrogate-in-text",
        ) from None


def maker(model: LanguageModel) -> str:
    """What the last bits of a model's probabilities depend on here: versions of lmlab and torch, device, processor."""
    device = device_of(model)
    kind = torch.backends.cpu.get_cpu_capability()
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} {kind}"
    return f"{__version__} {torch.__version__} {device.type} {where}"


def in_words(maker: str) -> str:
    """A maker for people."""
    if not maker[:1].isdigit():
        return maker
    lab, torch_version, machine = maker.split(" ", 2)
    return f"lmlab {lab}, torch {torch_version} on {machine}"


def _different_arithmetic(model: LanguageModel, header: Header) -> Mistake:
    """The file is whole and the model is the one: what is left is the machine."""
    but = "the file is whole and the model is right, but its probabilities come out differently here than where the file was"
    if not header.maker:
        return Mistake(
            f"{but} made, which those of {an(model.name)} should not do anywhere; make the file again",
            code="compressed-numbers-differ",
        )
    made, here = in_words(header.maker), in_words(maker(model))
    return Mistake(
        f"{but} made: by {made}. It opens where these are the same; here: {here}", code="compressed-elsewhere"
    )


class Stream(Protocol):
    """One stream in either direction."""

    def take(self, table: Table) -> int:
        """Code the next token by this table, and the spelling of an unknown word; returns the token."""


def _walk_each(
    model: LanguageModel,
    end_id: int | None,
    lengths_B: Sequence[int],
    streams: Sequence[Stream],
    progress: Progress | None,
    version: int = VERSION,
) -> None:
    """Take all streams through the model: side by side, or, where their documents end at different steps, one by one."""
    if end_id is None:
        _walk(model, lengths_B, streams, progress, version)
        return
    done = 0
    for length, stream in zip(lengths_B, streams, strict=True):
        before = done
        watch = None if progress is None else lambda here, _, before=before: progress(before + here, sum(lengths_B))
        _walk(model, [length], [stream], watch, version, end_id)
        done += length


def _walk(
    model: LanguageModel,
    lengths_B: Sequence[int],
    streams: Sequence[Stream],
    progress: Progress | None,
    version: int = VERSION,
    end_id: int | None = None,
) -> None:
    """Take all streams through the model, side by side. Every call of the model in either direction is made here.

    end_id: of the token after which a stream begins again, where there is one; there is one stream then.
    """
    steps, done = max(lengths_B), 0
    if not steps:
        return
    device = device_of(model)
    with evaluating(model), torch.no_grad(), one_thread():
        logp_BV, state = model.begin(len(streams))
        for step in range(steps):
            cumulative_BV = cumulative(logp_BV, version)
            tokens_B = [
                stream.take(Table(cumulative_V)) if step < length else 0  # a stream that is over repeats anything
                for stream, length, cumulative_V in zip(streams, lengths_B, cumulative_BV, strict=True)
            ]
            if step + 1 < steps and tokens_B == [end_id]:
                logp_BV, state = model.begin(1)
            elif step + 1 < steps:
                logp_BV, state = model.advance(torch.tensor(tokens_B, device=device)[:, None], state)
            if progress:
                done += sum(step < length for length in lengths_B)
                progress(done, sum(lengths_B))


def cumulative(logp_BV: Tensor, version: int = VERSION) -> np.ndarray:
    """Running sums of the probabilities, in float64, one after the other: the order is part of the format.

    Given the same logarithms they are the same on every machine. Format 1 left the exponential to the machine.
    """
    logp_BV_64 = logp_BV.cpu().numpy().astype(np.float64)
    return np.cumsum(np.exp(logp_BV_64) if version == 1 else exponential(logp_BV_64), axis=1)


@final
class Sender:
    """Writes the tokens of one stream."""

    def __init__(self, ids: list[int], spellings: Sequence[str], speller: Speller | None) -> None:
        self.encoder = Encoder()
        self._ids, self._spellings, self._speller = iter(ids), iter(spellings), speller

    def take(self, table: Table) -> int:
        """Send the next token."""
        id = next(self._ids)
        self.encoder.encode(table, id)
        if self._speller is not None and id == self._speller.unknown_id:
            symbols = tuple(self._speller.spelling.symbols(next(self._spellings)))
            for i, symbol in enumerate(symbols):
                self.encoder.encode(self._speller.table(symbols[:i]), symbol)
        return id


@final
class Receiver:
    """Reads the tokens of one stream."""

    def __init__(self, decoder: Decoder, speller: Speller | None, text_bytes: int) -> None:
        self.decoder = decoder
        self.ids: list[int] = []
        self.spellings: list[str] = []
        self._speller, self._text_bytes = speller, text_bytes

    def take(self, table: Table) -> int:
        """Receive the next token."""
        id = self.decoder.decode(table)
        self.ids.append(id)
        if self._speller is not None and id == self._speller.unknown_id:
            self.spellings.append(self._word(self._speller))
        return id

    def _word(self, speller: Speller) -> str:
        symbols: tuple[int, ...] = ()
        while not symbols or symbols[-1] != speller.spelling.end:
            # Out of step, a word might never end, or be none.
            if len(symbols) > self._text_bytes:
                raise OutOfStep("a word is longer than the text")
            symbol = self.decoder.decode(speller.table(symbols))
            if not speller.makes_sense(symbols, symbol):
                raise OutOfStep("bytes that are no character")
            symbols += (symbol,)
        return speller.spelling.word(symbols)


@final
class Speller:
    """The tables for spelling unknown words, each made once while it is in use."""

    def __init__(self, spelling: Spelling, unknown_id: int) -> None:
        self.spelling, self.unknown_id = spelling, unknown_id
        self._made = lru_cache(maxsize=SPELLING_TABLES)(self._make)

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Speller | None:
        """For tokenizers with an unknown symbol."""
        if tokenizer.spelling is None or tokenizer.unknown_id is None:
            return None
        return cls(tokenizer.spelling, tokenizer.unknown_id)

    def table(self, prefix: tuple[int, ...]) -> Table:
        """The shares of what may follow these symbols of a word."""
        return self._made(prefix)[1]

    def makes_sense(self, prefix: tuple[int, ...], symbol: int) -> bool:
        """False for a byte that no character has there. Any other symbol may be sent, however unlikely."""
        is_byte = self.spelling.first_byte <= symbol < self.spelling.end
        return not is_byte or bool(self._made(prefix)[0][symbol] > 0.0)

    def _make(self, prefix: tuple[int, ...]) -> tuple[np.ndarray, Table]:
        p = self.spelling.distribution(prefix)
        return p, Table(np.cumsum(p))


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums may come out differently when more threads share them, and a token at a time gives them little to share.

    So may what another machine's compiler makes of the same kernel.
    """
    threads = torch.get_num_threads()
    set_threads(1)
    try:
        with no_c_kernels():
            yield
    finally:
        threads_as_before(threads)
