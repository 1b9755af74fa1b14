"""The preparation of models that are trained on a plain text: tokens, model size, initial weights and hardware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import torch

from lmlab.config import Mistake, TextFacts, make
from lmlab.hardware.choice import Hardware, choose
from lmlab.interface import LanguageModel, Learner, TextLearner
from lmlab.learn.choose_size import sized
from lmlab.learn.fit import stream_folder
from lmlab.learn.lineage import InitialWeights, initial_weights, lineage_of
from lmlab.learn.memory_needed import refuse_what_memory_cannot_hold
from lmlab.learn.next_token import VALIDATION_TOKENS, NextToken, document_windows, usual_shape
from lmlab.learn.pace import Speed
from lmlab.learn.prepared import PreparedCount, PreparedLearner
from lmlab.learn.request import TrainingRequest
from lmlab.learn.settings import TrainConfig
from lmlab.models.families.softmax import SoftmaxModel
from lmlab.text.corpus import Corpus, read
from lmlab.text.documents import NONE
from lmlab.text.fingerprint import Fingerprint, fingerprint_of
from lmlab.text.stream import TokenStream, tokenize
from lmlab.text.tokenizers import Tokenizer, tokenizer_for

COUNTED_TOKENS = "char"  # default tokenizer of counting models


@dataclass(frozen=True, kw_only=True)
class _Text:
    """A corpus with the tokens of its training part."""

    corpus: Corpus
    tokenizer: Tokenizer
    stream: TokenStream
    learned_from: Sequence[Fingerprint]


def prepare_text(request: TrainingRequest, kind_of_task: type[NextToken]) -> PreparedLearner:
    """Prepare the training of a model on windows of a plain text.

    Args:
        request: the request of the user.
        kind_of_task: the training objective on the windows.
    """
    cls: type[TextLearner] = request.model_class
    request.refuse_columns()
    config, loop, hardware = _config(request), request.loop, request.hardware()
    if kind_of_task is not NextToken:
        request.refuse_documents()
    text = _read(request, cls.usual_tokenizer, has_ends=kind_of_task is NextToken)
    loop = replace(loop, budget=loop.budget.over(text.stream.tokens))
    speed = None
    if request.is_new:
        config, speed = request.world.decided(lambda: _sized(request, kind_of_task, text, config, loop, hardware))
    weights = initial_weights(request)
    if weights is None:
        model = fresh_model(cls, config, text.tokenizer, request.seed)
    else:
        model = _with_weights(cls, config, text.tokenizer, weights)
    if speed is not None:
        hardware = replace(hardware, now=speed.threads, tokens_per_second=speed.tokens_per_second)
        loop = _with_rows(loop, model, hardware, speed.rows, text.stream)
    return PreparedLearner(
        request=request,
        data=text.corpus,
        tokenizer=text.tokenizer,
        config=config,
        training=request.training(request.budget, lineage=lineage_of(request)),
        learned_from=text.learned_from,
        model=model,
        task=_task(kind_of_task, model, text, loop, hardware),
        loop=loop,
        hardware=hardware,
        speed=speed,
    )


def prepare_count(request: TrainingRequest) -> PreparedCount:
    """Prepare a model that is fitted by counting the tokens of a plain text."""
    request.refuse_columns()
    config = request.model_config
    choose(request.device, request.precision)  # a Mistake for a missing device, although counting uses the CPU
    text = _read(request, lambda _: COUNTED_TOKENS)
    return PreparedCount(
        request=request,
        data=text.corpus,
        tokenizer=text.tokenizer,
        config=config,
        training=request.training(request.budget),
        learned_from=text.learned_from,
        model=request.model_class,
        stream=text.stream,
    )


def fresh_model(cls: type[Any], config: Any, tokenizer: Tokenizer, seed: int) -> Any:
    """Return a new model, whose random weights depend on the seed alone."""
    refuse_what_memory_cannot_hold(cls, config, tokenizer.vocab_size, tokens=0)
    torch.manual_seed(seed)
    model = cls(config, tokenizer.vocab_size)
    model.take_vocabulary(tokenizer.vocabulary)
    if isinstance(model, LanguageModel):
        model.end_id = tokenizer.end_id
    return model


def _config(request: TrainingRequest) -> Any:
    """Return the settings of the request; those it leaves open come from the run whose weights it starts from."""
    if request.begin is None:
        return request.model_config
    return make(request.model_class.Config, {**request.begin.record.model.config, **request.settings}, request.model)


def _read(request: TrainingRequest, usual_tokenizer: Callable[[int], str], *, has_ends: bool = True) -> _Text:
    """Read and tokenize the text of a request, or of the run that is resumed.

    Args:
        has_ends: whether the task predicts the ends of documents, so that the text may be divided into them.
    """
    request.refuse_taken_folder()
    if request.resumed is not None:
        corpus, tokenizer = request.resumed.corpus, request.resumed.tokenizer
        return _Text(
            corpus=corpus,
            tokenizer=tokenizer,
            stream=tokenize(corpus.train, tokenizer, stream_folder()),
            learned_from=(),
        )
    corpus = _corpus(request, has_ends)
    if not corpus.train.bytes:
        raise Mistake(
            f"{corpus.name} has no training part; give it a share above 0 in {{split}}",
            code="no-training-part",
            split=None,
        )
    with ThreadPoolExecutor(1) as beside:  # NumPy leaves a core free
        # A request without a folder prepares only, and needs no fingerprint of its training text.
        is_kept = request.out is not None and request.world.is_writer
        fingerprint = None if not is_kept else beside.submit(fingerprint_of, corpus.train)
        tokenizer = _tokenizer(request, usual_tokenizer, corpus)
        stream = tokenize(corpus.train, tokenizer, stream_folder())
    earlier = [] if request.begin is None else request.begin.learned_from
    learned_from = [] if fingerprint is None else [fingerprint.result(), *earlier]
    return _Text(corpus=corpus, tokenizer=tokenizer, stream=stream, learned_from=learned_from)


def _corpus(request: TrainingRequest, has_ends: bool) -> Corpus:
    """Return the text of a new run, divided into documents as asked, or as the run was whose weights it starts from."""
    if isinstance(request.data, Corpus):
        corpus = request.data
    elif request.begin is not None and request.documents in ("auto", request.begin.rule.mode):
        corpus = read(request.data, **request.text_division, documents=request.begin.rule)
    else:
        corpus = read(request.data, **request.text_division, documents=request.documents if has_ends else "none")
    if request.begin is not None and (corpus.rule == NONE) != (request.begin.tokenizer.end_id is None):
        learned = "no end of a document" if corpus.rule != NONE else "the end of a document"
        raise Mistake(
            f"{request.begin.folder} has learned {learned}, and goes on so; divide the text with {{documents}}",
            code="from-other-documents",
            documents=request.begin.rule.mode,
        )
    return corpus


def _tokenizer(request: TrainingRequest, usual_tokenizer: Callable[[int], str], corpus: Corpus) -> Tokenizer:
    """Return the tokenizer of the run that the weights come from, else the requested one, else the model's default."""
    if request.begin is not None:
        return request.begin.tokenizer
    asked = request.tokenizer
    if isinstance(asked, Tokenizer):
        separator = corpus.rule.separator
        return asked if separator is None else asked.with_end(separator.decode())
    spec = usual_tokenizer(corpus.train.bytes) if asked is None else asked
    return tokenizer_for(corpus, spec, at_most=asked is None)


def _sized(
    request: TrainingRequest,
    kind_of_task: type[NextToken],
    text: _Text,
    config: Any,
    loop: TrainConfig,
    hardware: Hardware,
) -> tuple[Any, Speed | None]:
    """Resolve the config for this text, budget and machine. For a budget of seconds, also return the measured speed."""
    stream, tokenizer = text.stream, text.tokenizer
    facts = TextFacts(train_tokens=stream.tokens, train_bytes=stream.bytes, vocab_size=tokenizer.vocab_size)
    # A requested length is checked against the context once the size is known.
    any_length = replace(loop, length=None)

    def timed_task(model: Learner, rows: float) -> NextToken:
        assert isinstance(model, TextLearner)
        few = _with_rows(any_length, model, hardware, rows, stream)
        return _task(kind_of_task, model, text, few, hardware, validates=False)

    return sized(
        request.model_class,
        config,
        facts,
        tokenizer.vocabulary,
        timed_task,
        loop,
        hardware,
        request.timings,
        validation_tokens=loop.validations * min(VALIDATION_TOKENS, text.corpus.valid.bytes),
        fewer_rows=loop.rows is None,
    )


def _task(
    kind_of_task: type[NextToken],
    model: TextLearner,
    text: _Text,
    loop: TrainConfig,
    hardware: Hardware,
    *,
    validates: bool = True,
) -> NextToken:
    """Create the training task on a tokenized text: training stream, validation stream and batch size."""
    held_out = text.corpus.valid
    valid = tokenize(held_out, text.tokenizer, stream_folder()) if validates and held_out.bytes else None
    # Budgets of steps and tokens must give the same result on every machine; budgets of seconds need not.
    larger = hardware.batch if loop.budget.seconds is not None else 1
    return kind_of_task.of(model, text.tokenizer, text.stream, valid, loop, larger)


def _with_rows(
    loop: TrainConfig, model: TextLearner, hardware: Hardware, share: float, stream: TokenStream
) -> TrainConfig:
    """Return the loop settings with `share` of the default rows on this hardware."""
    if share == 1:
        return loop
    rows, _ = usual_shape(model, document_windows(model, stream, loop.length))
    return replace(loop, rows=max(1, round(share * hardware.batch * rows)))


def _with_weights(cls: type[TextLearner], config: Any, tokenizer: Tokenizer, weights: InitialWeights) -> TextLearner:
    """Return a model with the weights of a run, with the calibration of its logits undone.

    Raises:
        Mistake: the settings do not fit the shapes of the weights.
    """
    source = weights.run
    try:
        model = cls.from_tensors(config, tokenizer.vocab_size, source.saved.tensors())
    except (Mistake, RuntimeError):
        raise Mistake(
            f"these {{settings}} do not fit the weights of {source.folder}; change only what leaves every weight its place",
            code="settings-change-weights",
            settings=None,
        ) from None
    if weights.calibrated is not None:
        assert isinstance(model, SoftmaxModel)
        model.multiply_logits(1 / weights.calibrated)
    if isinstance(model, LanguageModel):
        model.end_id = tokenizer.end_id
    return model
