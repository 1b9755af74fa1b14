"""One model counted three ways, side by side: by formula, by a real instance, and by what PyTorch sees while it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sympy
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

from lmlab.config import Budget, Mistake, TextFacts, make, recorded
from lmlab.costs.config_file import ReadConfig, read_config
from lmlab.costs.dispatcher import Patience, TooLong, counted
from lmlab.costs.family import Cache
from lmlab.costs.symbolic import shortened, symbol, symbolic_parts, symbolic_stored, values_of, with_symbols, written
from lmlab.costs.textbook import QUERIES_KEYS_VALUES, Beside, as_dense, beside, whole_tables
from lmlab.formulas import Part, Shape, Size, Work, weights, work
from lmlab.interface import CountModel, Learner, TextLearner
from lmlab.models.registry import model_class
from lmlab.records import JsonRecord, in_json

MOST_RUN = 1 << 22  # weights up to which a model is run for its count, which takes less time than pretending
MOST_COUNTED = 2**60  # parameters: sizes of tensors have 63 bits
MOST_LAYERS = 1000  # of a model that is made: more would take minutes
MOST_KERNELS = 30_000  # that are asked for to count them, for the same reason
MOST_MADE = 1 << 26  # weights up to which one is made that cannot be counted by pretending
OPEN_TEXT, OPEN_BUDGET = 10**9, 10**7  # tokens of text and of training for which sizes are chosen that nobody set
USUAL_LENGTH, SOURCE, BYTES_16 = 1024, "S", 2  # of a sequence; what formulas call a second one; of a number in 16 bits
CONVENTION = (
    "A multiply-add is two operations. Products count: lookups, sums, norms and activations do not. Every pair of"
    " positions counts, masked or not."
)


@dataclass(frozen=True, kw_only=True)
class CountedPart:
    """One part: its weights by formula and number, and what it multiplies in a pass over the sequence."""

    name: str
    times: int
    weights: int  # in one of it
    formula: str
    latex: str
    forward: int  # operations of all of them
    backward: int
    forward_formula: str
    backward_formula: str


@dataclass(frozen=True, kw_only=True)
class Count(JsonRecord):
    """What a model costs."""

    model: str
    settings: Mapping[str, Any]
    vocab_size: int
    parts: Sequence[CountedPart]
    parameters: int  # by formula
    formula: str
    latex: str
    instance: int | None  # elements of a real instance; None: there is none to look at here
    reads: str = Learner.reads  # what operations are counted of; braces stand for its length
    length: int | None = None  # tokens of that; None: nothing is multiplied
    forward: int = 0  # operations of that, by formula
    backward: int = 0
    active: int | None = None  # parameters that a token uses, in a mixture of experts; None: it uses all
    active_formula: str | None = None
    cache_bytes_per_token: int | None = None  # of keys and values, in 16 bits, while no window is full; None: not known
    cache_bytes: int | None = None  # of the sequence of `length` tokens
    dispatched: tuple[int, int] | None = None  # the same two as PyTorch counts them; None: it was not run
    memory: Mapping[str, int] | None = None  # bytes of a training step, and of what is remembered while writing
    documents: Sequence[Beside] = ()
    notes: Sequence[str] = field(default=())

    @property
    @in_json
    def agrees(self) -> bool:
        """Whether formula, instance, parts and dispatcher say the same."""
        by_parts = sum(part.times * part.weights for part in self.parts)
        same = self.parameters == by_parts and self.instance in (None, self.parameters)
        return same and self.dispatched in (None, (self.forward, self.backward))

    @property
    @in_json
    def convention(self) -> str:
        """Which operations are counted."""
        return CONVENTION


def count_learned(
    name: str, settings: Mapping[str, Any] | None = None, *, vocab_size: int = 256, length: int | None = None
) -> Count:
    """A model that learns; sizes that are not set are those for a budget of OPEN_BUDGET tokens.

    length: tokens of the sequence whose operations are counted; by itself what the model trains on.
    """
    cls = model_class(name)
    if vocab_size < 1:
        raise Mistake(
            f"{{vocab}} is a whole number of tokens from 1 up; got {vocab_size}",
            code="count-vocab-below-one",
            vocab=None,
        )
    if length is not None and length < 1:
        raise Mistake(
            f"{{length}} is a whole number of tokens from 1 up; got {length}",
            code="count-length-below-one",
            length=None,
        )
    asked = make(cls.Config, settings or {}, name)
    facts = TextFacts(train_tokens=OPEN_TEXT, train_bytes=OPEN_TEXT, vocab_size=vocab_size)
    config = cls.resolve(asked, facts, Budget(tokens=OPEN_BUDGET))
    return count_config(cls, config, vocab_size, length)


def count_config(cls: type[Learner], config: Any, vocab_size: int, length: int | None = None) -> Count:
    """A model of a config that is whole."""
    parts = cls.parts(config, vocab_size)
    if (parameters := int(weights(parts))) > MOST_COUNTED:
        raise Mistake(
            f"{cls.name}: {parameters:.1e} parameters are more than PyTorch can count; choose smaller sizes",
            code="too-many-parameters",
        )
    if (layers := max((int(part.times) for part in parts), default=0)) > MOST_LAYERS:
        raise Mistake(
            f"{cls.name}: {layers:,} layers would take long to make and count; choose at most {MOST_LAYERS:,}",
            code="too-many-layers",
        )
    small = _made_small(cls, config, vocab_size)
    with torch.random.fork_rng(devices=[]), small:
        model = cls(config, vocab_size).train()
        elements = sum(p.numel() for p in model.parameters())
        shape = _sequence(model, length)
        numbers = cls.parts(config, vocab_size, shape)
        if not numbers:
            raise Mistake(
                f"{cls.name} does not say what it is made of: its class lacks `parts`", code="model-without-parts"
            )
    found = _counted(cls.name, config, cls.letters, vocab_size, numbers, symbolic_parts(cls, config), shape)
    counts_attention = any(said.formula == QUERIES_KEYS_VALUES for said in found.documents)
    notes = [as_dense(config.width, shape.tokens)] if counts_attention else []
    dispatched = None
    try:
        with torch.random.fork_rng(devices=[]), small:
            dispatched = _dispatched(model, shape)
        if dispatched is None and elements <= MOST_MADE:
            with torch.random.fork_rng(devices=[]):
                dispatched = _dispatched(cls(config, vocab_size).train(), shape)
    except TooLong:
        notes.append(f"Operations by formula alone: PyTorch's own count was given up after {MOST_KERNELS:,} kernels.")
    return dataclasses.replace(found, instance=elements, dispatched=dispatched, reads=cls.reads, notes=notes)


def count_file(path: Path, settings: Mapping[str, str] | None = None, *, length: int | None = None) -> Count:
    """Count a model by its config file, without making the model.

    Args:
        path: of the file.
        settings: fields that take another value.
        length: tokens of the sequence; a second sequence has as many.
    """
    read = read_config(path, settings or {})
    kind, config = read.kind, read.config
    longest = config.longest
    length = length or min(longest or USUAL_LENGTH, USUAL_LENGTH)
    if length < 1 or (longest is not None and length > longest):
        raise Mistake(
            f"{path} has positions for {longest} tokens; choose a {{length}} from 1 to that",
            code="length-beyond-positions",
            length=None,
        )
    shape = Shape(1, length, source=length)
    in_symbols = with_symbols(config, config.letters)
    symbols = config.parts(in_symbols, symbol("V"), Shape(1, symbol("T"), source=symbol(SOURCE)))
    numbers = config.parts(config, config.vocab_size, shape)
    if weights(numbers) > MOST_COUNTED:
        raise Mistake(
            f"{path}: {float(weights(numbers)):.1e} parameters are more than any model has; check its sizes",
            code="config-too-many-parameters",
        )
    found = _counted(kind, config, config.letters, config.vocab_size, numbers, symbols, shape)
    if unused := int(config.unused(config)):
        formula = sympy.expand(weights(symbols) - config.unused(in_symbols))
        found = dataclasses.replace(found, active=found.parameters - unused, active_formula=_text(formula))
    per_token = BYTES_16 * sum(cache.size(1) for cache in config.caches)
    return dataclasses.replace(
        found,
        cache_bytes_per_token=per_token,
        cache_bytes=BYTES_16 * sum(cache.size(length) for cache in config.caches),
        notes=[
            f"The parameters are those of a {config.instance}.",
            *_cache_notes(config.caches, length),
            *_notes_of(read),
        ],
    )


def _cache_notes(caches: Sequence[Cache], length: int) -> list[str]:
    """Return a line on the size of the cache; none for a model that does not generate."""
    if not caches:
        return []
    kinds = []
    for cache in caches:
        window = "" if cache.window is None else f", of the last {cache.window:,} tokens"
        kinds.append(f"{cache.layers} layers keep {cache.numbers:,} numbers a token{window}")
    size = BYTES_16 * sum(cache.size(length) for cache in caches)
    per_token = BYTES_16 * sum(cache.size(1) for cache in caches)
    return [
        f"Cache in 16 bits: {per_token:,} bytes a token, {size:,} bytes for {length:,} tokens ({'; '.join(kinds)})."
    ]


def _notes_of(read: ReadConfig) -> list[str]:
    """Return the remarks on a file, and a line with its fields that change no count."""
    ignored = f"Ignored, as no count depends on them: {', '.join(read.ignored)}."
    return [*(f"{remark}." for remark in read.remarks), *([ignored] if read.ignored else [])]


def _counted(
    name: str,
    config: Any,
    letters: Mapping[str, str],
    vocab_size: int,
    numbers: Sequence[Part],
    symbols: Sequence[Part],
    shape: Shape,
) -> Count:
    """The formulas with their values."""
    total, formula = work(numbers), written(weights(symbols))
    kept = [(part, formula) for part, formula in zip(numbers, symbols, strict=True) if part.times]
    return Count(
        model=name,
        settings=recorded(config),
        vocab_size=vocab_size,
        parts=[_part(part, formula) for part, formula in kept],
        parameters=int(weights(numbers)),
        formula=sympy.sstr(formula),
        latex=sympy.latex(formula),
        instance=None,
        length=shape.tokens,
        forward=int(total.forward),
        backward=int(total.backward),
        documents=beside(name, symbols, values_of(config, letters, vocab_size, shape)),
    )


def count_stored(model: CountModel) -> Count:
    """A fitted model that counts: what it stores, by how many different n-grams its text has."""
    distinct = list(getattr(model, "distinct", []))
    cls, config = type(model), model.config
    numbers = cls.stored(config, model.vocab_size, distinct)
    symbols = symbolic_stored(cls, config, len(distinct))
    formula = written(weights(symbols))
    notes = []
    if len(distinct) > 1:
        notes += whole_tables(model.vocab_size, len(distinct))
    return Count(
        model=cls.name,
        settings=recorded(config),
        vocab_size=model.vocab_size,
        parts=[_part(part, formula) for part, formula in zip(numbers, symbols, strict=True)],
        parameters=int(weights(numbers)),
        formula=sympy.sstr(formula),
        latex=sympy.latex(formula),
        instance=_stored_elements(model),
        notes=notes,
    )


def _stored_elements(model: CountModel) -> int:
    """Probabilities and weights among what a run would save; keys, restarts and counts of counts say where they stand."""
    beside = ("keys", "restarts", "counts_of_counts")
    return sum(t.numel() for name, t in model.tensors().items() if not name.endswith(beside))


def _made_small(cls: type[Learner], config: Any, vocab_size: int) -> AbstractContextManager[object]:
    """In which a large model takes no memory and computes nothing, though PyTorch counts all the same; small ones run."""
    return FakeTensorMode() if weights(cls.parts(config, vocab_size)) > MOST_RUN else nullcontext()


def _sequence(model: Learner, length: int | None) -> Shape:
    if length is not None and "{}" not in model.reads:
        raise Mistake(
            f"what {model.name} multiplies is of {model.reads}: leave {{length}} out",
            code="length-not-of-tokens",
            length=None,
        )
    longest = model.longest_window if isinstance(model, TextLearner) else None
    if length is not None and longest is not None and length > longest:
        raise Mistake(
            f"{model.name} reads at most {longest} tokens at once; choose a shorter {{length}}, or a longer context",
            code="length-beyond-context",
            length=None,
        )
    return Shape(1, length or model.usual_length)


def _dispatched(model: Learner, shape: Shape) -> tuple[int, int] | None:
    """What PyTorch counts in a pass over one row; None: the model asks for numbers, and its tensors have sizes alone.

    TooLong where that would take more kernels than are waited for.
    """
    batch = model.blank(shape.rows, shape.tokens)
    try:
        with Patience(MOST_KERNELS):
            found = None if batch is None else counted(lambda: model.loss(batch).total)
    except (DataDependentOutputException, DynamicOutputShapeException):
        return None
    return None if found is None else (found.forward, found.backward)


def _part(part: Part, formula: Part) -> CountedPart:
    every: Work = part.all_work
    return CountedPart(
        name=part.name,
        times=int(part.times),
        weights=int(part.weights),
        formula=_text(formula.weights),
        latex=sympy.latex(written(formula.weights)),
        forward=int(every.forward),
        backward=int(every.backward),
        forward_formula=_text(formula.all_work.forward),
        backward_formula=_text(formula.all_work.backward),
    )


def _text(expression: Size) -> str:
    """As one types it; the smaller of two sizes and the like are given a letter and explained behind it."""
    short, letters = shortened(written(expression))
    where = ", ".join(f"{letter} = {sympy.sstr(meaning)}" for letter, meaning in letters.items())
    return f"{sympy.sstr(short)}{' with ' * bool(where)}{where}"
