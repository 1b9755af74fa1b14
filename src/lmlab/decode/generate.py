"""`generate`, `generate_many` and `stream`: prompts in, their continuations out, by any method, for any model."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lmlab.config import Mistake, make
from lmlab.decode.beam_and_exhaustive import beam, beam_in_each_row, exhaustive
from lmlab.decode.greedy_and_sampling import Draw, Greedy, Text, follow
from lmlab.decode.options import Options
from lmlab.decode.reader import Reader

if TYPE_CHECKING:
    from lmlab.decode.continuation import Continuation
    from lmlab.decode.result import Generated
    from lmlab.interface import LanguageModel
    from lmlab.text.tokenizers import Tokenizer

PLACES = 64  # texts that are written side by side where there are many: few enough for memory, enough to fill a GPU
SAMPLES_AT_ONCE = 1024  # of one prompt, which is read once for all of them
LAG, STOPPING_LAG = 16, 2  # steps that a GPU may be ahead of the text
SEARCHES = {"beam": beam, "exhaustive": exhaustive}


def generate(model: LanguageModel, tokenizer: Tokenizer, prompt: str = "", **settings: Any) -> list[Generated]:
    """Continuations of a prompt: `samples` of them, or the `n_best`, best first. The settings are those of `Options`.

    An unknown word of a `words` tokenizer is written out: when sampling, with a spelling drawn from the tokenizer's
    spelling model; otherwise with the likeliest spelling. Its cost is part of the nats.
    """
    options = make(Options, settings, "generate")
    reader = Reader(model, tokenizer, prompt)
    if options.method in SEARCHES:
        ranked = deque(SEARCHES[options.method](reader, options), maxlen=1).pop()
        return [continuation.result(continuation.score(options.length_penalty)) for continuation in ranked]
    texts = _texts(reader, options)
    for _ in _following(model, texts, options, min(len(texts), SAMPLES_AT_ONCE)):
        pass
    return [text.continuation.result() for text in texts]


def generate_many(
    model: LanguageModel, tokenizer: Tokenizer, prompts: Sequence[str], *, places: int = PLACES, **settings: Any
) -> list[list[Generated]]:
    """What `generate` finds for each of these prompts, at most `places` texts side by side."""
    options = make(Options, settings, "generate")
    if options.method in SEARCHES:
        return [generate(model, tokenizer, prompt, **settings) for prompt in prompts]
    texts = [text for prompt in prompts for text in _texts(Reader(model, tokenizer, prompt), options)]
    for _ in _following(model, texts, options, places):
        pass
    found = iter([text.continuation.result() for text in texts])
    return [[next(found) for _ in range(options.samples)] for _ in prompts]


def search_each(
    model: LanguageModel, tokenizer: Tokenizer, most: Sequence[int], **settings: Any
) -> list[list[Generated]]:
    """The `n_best` of a beam in each row of a model that begins otherwise in each, such as a translator with a source a row.

    most: tokens of each row. The settings are those of `Options` for a beam; one of width 1 is greedy decoding.
    """
    options = make(Options, {**settings, "method": "beam"}, "generate")
    found = beam_in_each_row(Reader(model, tokenizer, "", len(most)), options, most)
    return [[c.result(c.score(options.length_penalty)) for c in ranked] for ranked in found]


def stream(model: LanguageModel, tokenizer: Tokenizer, prompt: str = "", **settings: Any) -> Stream:
    """One continuation of a prompt, as pieces of text that are yielded as soon as they are certain.

    The settings are those of `Options` (samples and n_best are 1). Incomplete characters and possible beginnings of stop
    strings are held back. In a beam, what all open continuations begin with is certain.
    """
    options = make(Options, settings, "generate")
    if options.samples > 1 or options.n_best > 1:
        message = "a stream is one text; for several set {samples} or {n_best} in generate, not stream"
        raise Mistake(message, code="stream-of-several", samples=None, n_best=None)
    return Stream(Reader(model, tokenizer, prompt), options)


@final
class Stream(Iterator[str]):
    """Iterate for the pieces of text; `result` is the whole."""

    def __init__(self, reader: Reader, options: Options) -> None:
        self._pieces = _stream(reader, options)
        self._result: Generated | None = None

    def __next__(self) -> str:
        while True:
            try:
                piece = next(self._pieces)
            except StopIteration as end:
                self._result = end.value if self._result is None else self._result
                raise StopIteration from None
            if piece:
                return piece

    @property
    def result(self) -> Generated:
        """The continuation as `generate` returns it; works off what has not been iterated over yet."""
        for _ in self:
            pass
        assert self._result is not None, "a finished stream has a result"
        return self._result


def _stream(reader: Reader, options: Options) -> Generator[str, None, Generated]:
    """Yields pieces of text, some of them empty; returns the continuation."""
    if options.method in SEARCHES:
        return (yield from _stream_search(reader, options))
    (text,) = _texts(reader, options)
    for _, piece in _following(reader.model, [text], options, lag=1):
        yield piece
    return text.continuation.result()


def _stream_search(reader: Reader, options: Options) -> Generator[str, None, Generated]:
    """What all contenders begin with will be in the result, whichever it is."""
    certain = reader.empty(options.stop)
    contenders: list[Continuation] = []
    for contenders in SEARCHES[options.method](reader, options):
        for ids in zip(*(c.ids[len(certain.ids) :] for c in contenders), strict=False):
            if len(set(ids)) > 1 or certain.finish is not None:
                break
            yield certain.add(ids[0], 0.0, reader.spelled(ids[0]))
    result = contenders[0].result(contenders[0].score(options.length_penalty))
    yield certain.end()
    return result


def _texts(reader: Reader, options: Options) -> list[Text]:
    """The texts to be written after one prompt."""
    return [
        Text(number, reader, reader.empty(options.stop), np.random.default_rng([options.seed, number]))
        for number in range(options.samples)
    ]


def _following(
    model: LanguageModel, texts: list[Text], options: Options, places: int | None = None, lag: int = LAG
) -> Iterator[tuple[int, str]]:
    """lag: steps that a GPU may be ahead of the text; where a text can stop, few of its tokens should be for nothing."""
    chooser = Draw(options) if options.draws else Greedy()
    lag = lag if model.end_id is None and not options.stop else min(lag, STOPPING_LAG)
    return follow(model, texts, chooser, options.max_tokens, places or len(texts), lag)
