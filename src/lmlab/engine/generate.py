"""`generate`, `generate_many` and `stream`: prompts in, their continuations out, by any method, for any model."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

from lmlab.config import Mistake, make
from lmlab.engine.engine import MAX_ROWS, Engine
from lmlab.engine.options import Options
from lmlab.engine.precision import PRECISIONS
from lmlab.engine.reader import Reader
from lmlab.engine.request import Request
from lmlab.engine.search import beam, beam_in_each_row, exhaustive

if TYPE_CHECKING:
    from lmlab.engine.continuation import Continuation
    from lmlab.engine.result import Generated
    from lmlab.interface import LanguageModel
    from lmlab.text.tokenizers import Tokenizer

SAMPLES_AT_ONCE = 1024  # of one prompt, which is read once for all of them
SEARCHES = {"beam": beam, "exhaustive": exhaustive}


def generate(
    model: LanguageModel, tokenizer: Tokenizer, prompt: str = "", *, precision: str = PRECISIONS[0], **settings: Any
) -> list[Generated]:
    """Continuations of a prompt: `samples` of them, or the `n_best`, best first. The settings are those of `Options`.

    An unknown word of a `words` tokenizer is written out: when sampling, with a spelling drawn from the tokenizer's
    spelling model; otherwise with the likeliest spelling. Its cost is part of the nats.
    """
    options = make(Options, settings, "generate")
    rows = min(options.samples, SAMPLES_AT_ONCE)
    return continued(Engine(model, tokenizer, max_rows=rows, precision=precision), [prompt], options)[0]


def generate_many(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    *,
    max_rows: int = MAX_ROWS,
    precision: str = PRECISIONS[0],
    **settings: Any,
) -> list[list[Generated]]:
    """What `generate` finds for each of these prompts, at most `max_rows` texts side by side."""
    options = make(Options, settings, "generate")
    return continued(Engine(model, tokenizer, max_rows=max_rows, precision=precision), prompts, options)


def continued(engine: Engine, prompts: Sequence[str], options: Options) -> list[list[Generated]]:
    """Return the continuations of each prompt by an engine, which may have been used before."""
    if options.method in SEARCHES:
        return [_searched(Reader(engine.model, engine.tokenizer, prompt), options) for prompt in prompts]
    requests = [Request.of(prompt, options, sample) for prompt in prompts for sample in range(options.samples)]
    found = engine.run(requests)
    return [found[first : first + options.samples] for first in range(0, len(found), options.samples)]


def _searched(reader: Reader, options: Options) -> list[Generated]:
    ranked = deque(SEARCHES[options.method](reader, options), maxlen=1).pop()
    return [continuation.result(continuation.score(options.length_penalty)) for continuation in ranked]


def search_each(
    model: LanguageModel, tokenizer: Tokenizer, most: Sequence[int], **settings: Any
) -> list[list[Generated]]:
    """The `n_best` of a beam in each row of a model that begins otherwise in each, such as a translator with a source a row.

    most: tokens of each row. The settings are those of `Options` for a beam; one of width 1 is greedy decoding.
    """
    options = make(Options, {**settings, "method": "beam"}, "generate")
    found = beam_in_each_row(Reader(model, tokenizer, "", len(most)), options, most)
    return [[c.result(c.score(options.length_penalty)) for c in ranked] for ranked in found]


def stream(
    model: LanguageModel, tokenizer: Tokenizer, prompt: str = "", *, precision: str = PRECISIONS[0], **settings: Any
) -> Stream:
    """One continuation of a prompt, as pieces of text that are yielded as soon as they are certain.

    The settings are those of `Options` (samples and n_best are 1). Incomplete characters and possible beginnings of stop
    strings are held back. In a beam, what all open continuations begin with is certain.
    """
    options = make(Options, settings, "generate")
    return Stream(Engine(model, tokenizer, max_rows=1, precision=precision, lookahead=1), prompt, options)


@final
class Stream(Iterator[str]):
    """Iterate for the pieces of text; `result` is the whole. The engine serves this text alone while it lasts."""

    def __init__(self, engine: Engine, prompt: str, options: Options) -> None:
        if options.samples > 1 or options.n_best > 1:
            message = "a stream is one text; for several set {samples} or {n_best} in generate, not stream"
            raise Mistake(message, code="stream-of-several", samples=None, n_best=None)
        if options.method in SEARCHES:
            self._pieces = _stream_search(Reader(engine.model, engine.tokenizer, prompt), options)
        else:
            self._pieces = _stream(engine, engine.submit(Request.of(prompt, options)))
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

    def close(self) -> None:
        """End the text here; the engine is free for another one."""
        self._pieces.close()

    @property
    def result(self) -> Generated:
        """The continuation as `generate` returns it; works off what has not been iterated over yet."""
        for _ in self:
            pass
        assert self._result is not None, "a finished stream has a result"
        return self._result


def _stream(engine: Engine, request: Request) -> Generator[str, None, Generated]:
    """Yields pieces of text, some of them empty; returns the continuation."""
    try:
        while engine.busy:
            for event in engine.step():
                if event.request is request:
                    yield event.text
    finally:
        if request.finish is None:  # nobody wants the rest
            engine.cancel(request)
    return request.result()


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
