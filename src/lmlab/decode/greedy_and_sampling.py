"""Greedy decoding and sampling: every text follows its own path, one token after the other, many of them side by side.

Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import torch

from lmlab.decode.batch_rows import Table
from lmlab.decode.continuation import Spelled
from lmlab.decode.sampling import draw, kept
from lmlab.decode.sampling_on_device import draw_rows

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.decode.continuation import Continuation
    from lmlab.decode.options import Options
    from lmlab.decode.reader import Reader
    from lmlab.interface import LanguageModel


@final
@dataclass(eq=False)
class Text:
    """A text to be written: after which prompt, what there is of it, and its own random stream."""

    number: int
    reader: Reader
    continuation: Continuation
    luck: np.random.Generator
    chosen: int = 0  # tokens, of which the last may not be looked at yet


class Chooser(ABC):
    """A way to choose the next tokens."""

    @abstractmethod
    def choose(self, logp_BV: Tensor, texts: Sequence[Text | None]) -> Tensor:
        """A token for each row, on the device of logp and without waiting for it; None: whatever, it is not used."""

    @abstractmethod
    def spelled(self, id: int, text: Text) -> Spelled | None:
        """How this token is spelled if it is the unknown symbol."""


@final
class Greedy(Chooser):
    """The likeliest token (the lowest id of several). An unknown word counts with its likeliest spelling, and its price."""

    def choose(self, logp_BV: Tensor, texts: Sequence[Text | None]) -> Tensor:
        """Choose the likeliest."""
        reader = next(text.reader for text in texts if text is not None)
        charged_BV = logp_BV if reader.likeliest is None else reader.charged(logp_BV)
        if charged_BV.device.type == "cpu":  # asking NumPy takes less time
            return torch.from_numpy(charged_BV.numpy().argmax(axis=-1))
        return charged_BV.argmax(-1)

    def spelled(self, id: int, text: Text) -> Spelled | None:
        """With the likeliest spelling."""
        return text.reader.spelled(id)


@final
class Draw(Chooser):
    """A token drawn as the options say, and for an unknown word a spelling drawn from the spelling model as it is.

    Each text has a random stream of its own, from the seed and its number: others cannot change what it draws. (A
    model's probabilities may differ in their last bits between batches of different size; only a number drawn within
    that distance of a boundary could notice.)
    """

    def __init__(self, options: Options) -> None:
        self._options = options

    def choose(self, logp_BV: Tensor, texts: Sequence[Text | None]) -> Tensor:
        """On a GPU for all rows at once, else for one after the other."""
        if logp_BV.is_cuda:
            luck = torch.tensor([0.0 if text is None else text.luck.random() for text in texts], dtype=torch.float64)
            return draw_rows(logp_BV, self._options, luck.pin_memory().to(logp_BV.device, non_blocking=True))
        rows = zip(logp_BV.cpu().numpy(), texts, strict=True)
        ids = [0 if text is None else draw(kept(logp_V, self._options), text.luck) for logp_V, text in rows]
        return torch.tensor(ids, device=logp_BV.device)

    def spelled(self, id: int, text: Text) -> Spelled | None:
        """With a spelling drawn for it."""
        tokenizer = text.reader.tokenizer
        if id != tokenizer.unknown_id:
            return None
        assert tokenizer.spelling is not None, "a tokenizer with unknown words spells them"
        word = tokenizer.spelling.sample(text.luck)
        return Spelled(word, float(tokenizer.spelling.nats([word])[0]))


def follow(
    model: LanguageModel, texts: Sequence[Text], chooser: Chooser, max_tokens: int, places: int, lag: int
) -> Iterator[tuple[int, str]]:
    """Extend the texts until all are finished, so many of them side by side; yields (number, text that is now certain).

    On a GPU the next `lag` steps are asked for before the tokens of the last ones are looked at, so that it never waits for
    text to be put together; not with unknown words, whose spellings are drawn from the same random streams as the tokens.
    What a text that is stopped would have had after its end is thrown away.
    """
    # Prompts of like length come together, and are read together.
    waiting = deque(sorted(texts, key=lambda text: len(text.reader.prompt_ids)))
    table: Table[Text] = Table(model, places, lambda text: text.reader.prompt_ids)
    steps, sent = list[_Step](), list[_Sent]()
    while table.seat(waiting):
        logp_BV, choosing = table.logp_BV, table.choosing()
        ids_B = table.with_prompts(chooser.choose(logp_BV, choosing) if any(choosing) else None)
        steps.append(_Step(choosing, ids_B, logp_BV))
        for place, text in enumerate(choosing):
            if text is not None:
                text.chosen += 1
                if text.chosen == max_tokens:
                    table.leave(place)
        ahead = logp_BV.is_cuda and not texts[0].reader.has_unknown
        if ahead and table.busy:
            table.advance(ids_B)
        if ahead and table.busy and len(steps) < lag:
            continue
        sent.append(_Sent(steps))
        steps = []
        while len(sent) > (ahead and table.busy):
            for text, piece in sent.pop(0).added(chooser, max_tokens):
                yield text.number, piece
                if text.continuation.finish not in (None, "length"):
                    table.dismiss(text)
        kept_B = table.thin(seldom=ahead, waiting=bool(waiting))
        if not ahead and table.busy:
            table.advance(ids_B if kept_B is None else ids_B[kept_B])


class _Step(NamedTuple):
    """Whose tokens were chosen, and which, of what distributions."""

    texts: list[Text | None]
    ids_B: Tensor
    logp_BV: Tensor

    @property
    def logp_B(self) -> Tensor:
        """log p of the chosen tokens."""
        return self.logp_BV.gather(1, self.ids_B[:, None])[:, 0]


@final
class _Sent:
    """Tokens of some steps, T×B, on their way here, and whose they are."""

    def __init__(self, steps: list[_Step]) -> None:
        self._texts = [step.texts for step in steps]
        self._arrived: torch.cuda.Event | None = None
        self._here: list[Tensor] | list[list[list[Any]]]
        if steps[0].ids_B.device.type == "cpu":  # there is one step; asking NumPy takes less time
            ids, logp_BV = steps[0].ids_B.tolist(), steps[0].logp_BV.numpy()
            self._here = [[ids], [[float(logp_BV[row, id]) for row, id in enumerate(ids)]]]
            return
        found = torch.stack([s.ids_B for s in steps]), torch.stack([s.logp_B for s in steps])
        self._here = [t.to("cpu", non_blocking=t.is_cuda) for t in found]
        if found[0].is_cuda:
            self._arrived = torch.cuda.Event()
            self._arrived.record()

    def added(self, chooser: Chooser, max_tokens: int) -> Iterator[tuple[Text, str]]:
        """Add the tokens to their texts; each text with what is now certain of it."""
        if self._arrived is not None:
            self._arrived.synchronize()
        if len(self._texts) == 1:
            for text, id, logp in zip(self._texts[0], *(_listed(t[0]) for t in self._here), strict=True):
                if text is not None and text.continuation.finish is None:
                    yield text, text.continuation.add(id, -logp, chooser.spelled(id, text))
                    if len(text.continuation.ids) == max_tokens:
                        yield text, text.continuation.end()
            return
        tokens: dict[Text, tuple[list[int], list[float]]] = {}
        for texts, ids, logps in zip(self._texts, *(map(_listed, self._here)), strict=True):
            for text, id, logp in zip(texts, ids, logps, strict=True):
                if text is not None:
                    mine = tokens.get(text)
                    if mine is None:
                        mine = tokens[text] = ([], [])
                    mine[0].append(id)
                    mine[1].append(-logp)
        for text, (ids, nats) in tokens.items():
            continuation = text.continuation
            spelled = partial(chooser.spelled, text=text) if text.reader.has_unknown else None
            yield text, continuation.extend(ids, nats, spelled)
            if len(continuation.ids) == max_tokens:
                yield text, continuation.end()


def _listed(values: Tensor | list[Any]) -> list[Any]:
    return values if isinstance(values, list) else values.tolist()
