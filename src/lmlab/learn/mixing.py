"""The creation of a mixture model from trained runs.

The new run stores copies of all weights, not references. It can therefore be moved, and the hash in its record covers
everything that determines its predictions. The record names the source runs.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lmlab.config import Mistake, Stopped, recorded
from lmlab.interface import LanguageModel
from lmlab.learn.fit import stream_folder
from lmlab.learn.interrupt import interruptible
from lmlab.learn.next_token import NextToken
from lmlab.learn.record import Ingredient, Model, Record, Result, Training
from lmlab.learn.run import Run, opened
from lmlab.learn.run_advice import what_is_kept
from lmlab.learn.run_files import create_run, finish_run, refuse_if_taken
from lmlab.models._mix_fit import Fitted, Heard, fit_weights
from lmlab.models.mix import Mix
from lmlab.models.registry import Way, kind_of
from lmlab.page.numbers import counted
from lmlab.text.batches import even_windows
from lmlab.text.fingerprint import fingerprint_of
from lmlab.text.stream import tokenize

WINDOW = 2048  # tokens per window on which weights are fitted
MOST_TOKENS = 1 << 17  # for fitting, spread over the validation part: more hardly changes the weights
ROWS = 16  # windows per batch
FEWEST_TOKENS = 200  # in the validation part: fewer do not determine the weights


def mix(
    runs: Sequence[Run | str | Path],
    *,
    out: str | Path,
    adapt: bool = False,
    device: str = "auto",
    tokens: int = MOST_TOKENS,
    watch: Callable[[str], None] | None = None,
) -> Run:
    """Combine the models of these runs into one mixture and save it in the new folder `out`.

    The runs must share a text and a tokenizer. Weights are fitted on the validation part in two variants: constants, and a
    gate on the models' confidence features. The variant with the lower loss on the half that it was not fitted on is kept. A
    model with negligible weight is dropped.

    Args:
        runs: the runs, or their folders.
        out: the folder of the new run.
        adapt: keep updating the weights at prediction time.
        device: the device that the models are evaluated on.
        tokens: maximum number of validation tokens to use.
        watch: callback for progress messages.

    Raises:
        Mistake: the runs cannot be mixed, or the validation part is too short.
    """
    return mix_and_compare(runs, out=out, adapt=adapt, device=device, tokens=tokens, watch=watch)[0]


def mix_and_compare(
    runs: Sequence[Run | str | Path],
    *,
    out: str | Path,
    adapt: bool = False,
    device: str = "auto",
    tokens: int = MOST_TOKENS,
    watch: Callable[[str], None] | None = None,
) -> tuple[Run, float, list[float]]:
    """Combine the models of these runs as `mix` does.

    Returns:
        The run of the mix; the nats per token of the mix, and those of each run, on the half of the validation part on which
        the weights were not fitted.
    """
    started, out = time.perf_counter(), Path(out)
    if tokens < 1:
        raise Mistake(f"{{tokens}} is a whole number from 1 up; got {tokens}", code="mix-tokens-below-one", tokens=None)
    named = [opened(run) for run in runs]
    if len({run.folder.resolve() for run in named}) < len(named):
        raise Mistake("a run is named twice; a model mixed with itself is itself", code="mix-of-one-run-twice")
    _require_company(named)
    refuse_if_taken(out, can_go_on=False)
    first = _with_text(named)
    valid = tokenize(first.corpus.valid, first.tokenizer, stream_folder())
    if valid.tokens < FEWEST_TOKENS:
        raise Mistake(
            f"the validation part of {first.corpus.name} has {counted(valid.tokens, 'token')}, too few to fit weights on; train"
            " these models with a larger share for it in their split, such as 80,10,10",
            code="mix-with-short-validation",
        )
    length = min(WINDOW, valid.tokens // 2)
    windows = even_windows(valid, min(tokens, MOST_TOKENS) // length, length)
    say = watch or (lambda _: None)

    def parts_in_turn() -> Iterator[LanguageModel]:
        for run in named:
            say(f"reading with {run.folder.name}")
            yield run.load(device)

    heard = Heard.of(parts_in_turn(), list(windows.split(ROWS * max(1, length // windows.tokens_BT.shape[1]))))
    say("fitting the weights")
    fitted = fit_weights(heard)
    kept = [named[k] for k in fitted.kept]
    parts = [(run.record.model.name, run.load(device)) for run in kept]
    model = Mix.of(parts, fitted.gate, weighting=fitted.weighting, adapt=adapt)
    model.end_id = first.tokenizer.end_id
    record = Record(
        task=NextToken.name,
        inputs=dataclasses.replace(first.record.inputs, parts=_ingredients(named, fitted)),
        model=Model(name=Mix.name, config=recorded(model.config)),
        training=Training(budget="", seed=0, device=device, precision="float32"),
    )
    texts = [fingerprint_of(first.corpus.valid), *(text for run in kept for text in run.learned_from)]
    spent = [run.record.result for run in kept]
    result = Result(
        status="finished",
        tokens=sum(part.tokens for part in spent),
        seconds=sum(part.seconds for part in spent) + time.perf_counter() - started,
        message=_summary(fitted, named),
    )
    with interruptible() as interrupted:  # Ctrl-C must not leave a partly written run
        made = create_run(out, record, first.tokenizer, texts)
        finish_run(made, model, recorded(model.config), result)
    if interrupted():
        raise Stopped(what_is_kept(made))
    alone_K = heard.halves()[1].nats_NK.mean(dim=0)
    return made, fitted.nats[fitted.weighting], alone_K.tolist()


def _require_company(runs: Sequence[Run]) -> None:
    """Raise a Mistake unless there are at least two runs, all on one text, split and tokenizer."""
    if len(runs) < 2:
        raise Mistake("a mix is made of two runs or more; name the others too", code="mix-of-one-run")
    first = _with_text(runs)
    for run in runs:
        if run.record.inputs.tokenizer is None or run.tokenizer.hash != first.tokenizer.hash:
            mine, theirs = run.record.inputs.tokenizer, first.record.inputs.tokenizer
            of_others = f" ({mine} and {theirs})" if mine != theirs else f" (both {mine}, of different texts)"
            raise Mistake(
                f"{run.folder} has another tokenizer than {first.folder}{of_others};"
                " only models of the same tokens can be mixed",
                code="mix-of-different-tokenizers",
            )
        if run.model.vocab_size != first.model.vocab_size:
            raise Mistake(
                f"{run.folder} predicts {run.model.vocab_size:,} tokens and {first.folder} predicts"
                f" {first.model.vocab_size:,}; only models of the same tokens can be mixed",
                code="mix-of-different-vocabularies",
            )
        if _is_opened(run):
            continue  # its text is not known, and the mix says so
        if run.record.inputs.corpus["parts"] != first.record.inputs.corpus["parts"]:
            raise Mistake(
                f"{run.folder} was trained on another text or split than {first.folder}; weights must be fitted on text that"
                " no part was trained on: mix runs of one text and one split",
                code="mix-of-different-texts",
            )


def _is_opened(run: Run) -> bool:
    return kind_of(run.record.model.name).way is Way.OPENED


def _with_text(runs: Sequence[Run]) -> Run:
    """Return the first run that was trained here, whose validation part the weights are fitted on."""
    if (found := next((run for run in runs if not _is_opened(run)), None)) is None:
        raise Mistake(
            "the weights of a mix are fitted on the validation part of a run's text, and no text is known of folders of"
            " others; name a run that was trained here, or make one of a folder: lmlab import FOLDER --out RUN",
            code="mix-without-text",
        )
    return found


def _ingredients(runs: Sequence[Run], fitted: Fitted) -> tuple[Ingredient, ...]:
    weights = dict(zip(fitted.kept, fitted.weights, strict=True))
    return tuple(
        Ingredient(
            run=str(run.folder.resolve()),
            model=run.record.model.name,
            sha256=run.record.model.sha256,
            weight=weights.get(k, 0.0),
            seconds=run.record.result.seconds,
            tokens=run.record.result.tokens,
        )
        for k, run in enumerate(runs)
    )


def _summary(fitted: Fitted, runs: Sequence[Run]) -> str:
    """Return a sentence that names the chosen weighting, the losses of both variants and the dropped models."""
    decided = ", ".join(f"{kind} {nats / math.log(2):.4f}" for kind, nats in fitted.nats.items())
    left_out = [run.record.model.name for k, run in enumerate(runs) if k not in fitted.kept]
    said = f"{fitted.weighting} weights (bits a token on text they were not fitted on: {decided})"
    return said + (f"; left out, as they would get next to no weight: {', '.join(left_out)}" if left_out else "")
