"""`lmlab.evaluate`: evaluates a trained model on the task that it was trained for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.config import Mistake, checked_seed
from lmlab.learn.run_advice import weights_warning
from lmlab.models.registry import Role, kind_of

if TYPE_CHECKING:
    from lmlab.learn.run import Run
    from lmlab.measure import Result
    from lmlab.results import OtherResult
    from lmlab.text.files_and_folders import Text


def evaluate(
    run: Run | str | Path,
    text: Text | None = None,
    *,
    part: str | None = None,
    documents: str | None = None,
    seed: int = 0,
    level: float = 0.95,
    device: str = "auto",
    against: Run | str | Path | None = None,
    per_token: str | Path | None = None,
    watch: Callable[[str, int, int], None] | None = None,
) -> Result | OtherResult:
    """Evaluate a trained language model on a text in bits per byte, with an interval and a certificate.

    A model of another task is evaluated by the metric of its task, such as accuracy, beside a simple baseline.

    Args:
        run: the run, or its folder.
        text: a text that is scored as a whole; None: `part` of the run's own corpus.
        part: "train", "valid" or "test" (None: "test").
        documents: how the text is divided into documents, as for `train`; None: as the run's own text was.
        seed: seed of the sample that the certificate checks.
        level: coverage of the confidence interval.
        device: "auto", "cpu", "cuda" or "mps".
        against: for a translator, another translator's run to compare it with, sentence by sentence.
        per_token: for a language model, a CSV file to write with the bits of every token.
        watch: for a language model, called with the step ("tokenise", "walk", "score"), the amount done, and the total.
    """
    if part not in (None, "train", "valid", "test"):
        raise Mistake(f"{{part}} is train, valid or test; got {part!r}", code="part-unknown", part=None)
    if text is not None and part is not None:
        raise Mistake(
            "{part} is of the run's own corpus; another text is scored whole: leave one out",
            code="part-beside-text",
            part=part,
        )
    if documents is not None and text is None:
        raise Mistake(
            "{documents} divides another text; the run's own was divided when it was trained: leave it out",
            code="documents-without-text",
            documents=documents,
        )
    seed = checked_seed(seed)
    from lmlab.comparison.measure_apart import needs_to_be_apart
    from lmlab.comparison.measure_run import measure_run
    from lmlab.hardware.threads import fastest_threads
    from lmlab.learn.run import opened
    from lmlab.measure.per_token import write_per_token
    from lmlab.text.corpus import read
    from lmlab.text.documents import DocumentRule, parse_rule
    from lmlab.text.parts import Part

    run = opened(run)
    kind = None if needs_to_be_apart(run.record.model.name, {}) else kind_of(run.record.model.name)
    if against is not None and (kind is None or kind.role is not Role.TRANSLATOR):
        raise Mistake(
            "{against} is for translators; others are told apart by: lmlab compare",
            code="against-without-translator",
            against=None,
        )
    if kind is not None and kind.task is not None:  # third-party code is only loaded by `measure_run`
        if per_token is not None:
            raise Mistake(
                f"{run.folder} is no language model: leave {{per_token}} out",
                code="per-token-of-no-language-model",
                per_token=None,
            )
        beside: dict[str, Any] = {} if against is None else {"against": against}
        return kind.task.measure(run, text, part=part or "test", seed=seed, device=device, **beside)
    if text is None:
        part = part or "test"
        name, chosen = run.corpus.called(part), run.corpus.parts[part]
        if not chosen.bytes:
            raise Mistake(
                f"the {part} part of {name} is empty; choose another {{part}}, or name a text",
                code="part-empty",
                part=None,
            )
    else:
        rule = run.rule if documents is None else DocumentRule(parse_rule(documents).mode, run.rule.separator)
        corpus = read(text, split=(100, 0, 0), documents=rule)
        name, chosen = corpus.name, Part("whole", corpus.train.documents)
    with fastest_threads():
        found = measure_run(run, chosen, name=name, seed=seed, level=level, device=device, progress=watch)
    if per_token is not None:
        write_per_token(found.scored, run.tokenizer, per_token)
    warning = weights_warning(run)
    return replace(found, notes=(warning, *found.notes)) if warning else found
