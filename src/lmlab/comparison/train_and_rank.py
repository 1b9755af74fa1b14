"""The function `compare`: checks the arguments, locks the folder, and runs the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lmlab.comparison.asked import Asked, AskedEntry
from lmlab.comparison.beside import measured_beside
from lmlab.comparison.display import Display, Lines
from lmlab.comparison.executors import executor_of
from lmlab.comparison.executors.here import Here
from lmlab.comparison.folder import Terms, claimed, entry_name
from lmlab.comparison.outcome import Comparison
from lmlab.comparison.run_comparison import ComparisonRun
from lmlab.comparison.time_shares import DEFAULT_BUDGET, Turn, checked_shares, in_order, least_budget_s, seconds_of
from lmlab.config import Budget, Mistake, checked_seed, make, with_our_names, without_open
from lmlab.hardware.choice import choose_device
from lmlab.learn.run import Run, opened
from lmlab.learn.settings import MOST_SEEDS, TrainConfig, training_config
from lmlab.measure.interval import LEAST_CELL_BYTES
from lmlab.measure.interval_units import FEWEST_BLOCKS
from lmlab.models.registry import (
    AnyModel,
    Way,
    kind_of,
    ladder,
    language_model,
    model_class,
    name_of,
    our_name,
    trainable_kind,
)
from lmlab.page.numbers import counted
from lmlab.text.corpus import Corpus, read, stem
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy
from lmlab.text.tokenizers import plain_spec

T = TypeVar("T")
N = TypeVar("N")

LEAST_TEST_BYTES = FEWEST_BLOCKS * LEAST_CELL_BYTES  # of fewer no interval can be given, so no two models told apart


def compare(
    text: str | Path | Sequence[str | Path] | Corpus = "sotu",
    *,
    out: str | Path | None = None,
    budget: str | float | Budget | None = None,
    each: str | float | Budget | None = None,
    shares: Mapping[str, float] | None = None,
    models: str | Sequence[AnyModel] | None = None,
    tokenizers: str | Sequence[str] = ("char",),
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    documents: str = "auto",
    valid: Text | None = None,
    test: Text | None = None,
    seed: int = 0,
    seeds: int = 1,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    learning: Mapping[str, Mapping[str, Any]] | None = None,
    device: str = "auto",
    executor: str = "here",
    beside: Sequence[Run | str | Path] = (),
    watch: Display | None = None,
    progress: bool = False,
    command: str = "",
) -> Comparison:
    """Train every model on one text within one wall-clock budget, score them on the same test bytes, and rank them.

    The comparison is saved in the folder `out` with its report. Called again with the same folder and budget, it continues in
    the remaining time; completed runs are neither trained nor scored again.

    Args:
        text: a named corpus, files or folders, or a `Corpus`.
        out: the folder; its default is runs/compare-TEXT, or runs/compare-TEXT-2 and so on if that holds another comparison.
        budget: time for the whole comparison, from reading the text on, such as "5m" (the default). Neural models train
            equally long; count models take the time they need.
        each: the budget of each trained run, instead of `budget`. If it is a time, the whole budget follows from it. In steps
            or tokens, all machines of one type get the same results, however often the comparison is stopped.
        shares: by model, its training time relative to the others.
        models: the models to compare, as a list or as "bag,ngram"; None: the default models.
        tokenizers: the tokenizers, as a list or as "char,bpe:1024"; every model is trained with each of them.
        split: the shares of the training, validation and test parts.
        split_by: the unit that is divided among the parts.
        documents: how the text is divided into documents whose end is predicted: "lines", "blank", "jsonl:FIELD", "files",
            "none", or "auto": as the text plainly consists of documents.
        valid: a separate validation text.
        test: a separate test text.
        seed: the first seed.
        seeds: number of seeds per trained model. Its score is their mean, and the ranking accounts for the variance between
            seeds. The budget stays the same for all of them together.
        settings: by model, the settings of its architecture.
        learning: by model, the settings of its training loop.
        device: the device to train and score on.
        executor: where runs are trained and scored: here, or, if `each` is in steps or tokens, processes:N or ray:ADDRESS.
        beside: runs or Hugging Face folders that are measured on the same test bytes, and have no rank.
        watch: a display of the progress.
        progress: print on stderr which models are done, if there is no `watch`.
        command: the command that repeats the comparison, for the report.

    Raises:
        Mistake: an argument is invalid, or `out` holds another comparison.
    """
    named, tokenizers = _listed(models), _listed(tokenizers) or ()
    names = [our_name(name_of(model)) for model in named or ()] or ladder()
    settings, learning, shares = _by_our_names(settings), _by_our_names(learning), _by_our_names(shares)
    if budget is not None and each is not None:
        raise Mistake(
            "{budget} is for everything and {each} for every model; leave one of them out",
            code="budget-beside-each",
            budget=None,
            each=None,
        )
    budget_s = seconds_of(DEFAULT_BUDGET if budget is None else budget) if each is None else None
    each_budget = None if each is None else Budget.parse(each)
    works = executor_of(executor)
    if not isinstance(works, Here) and (each_budget is None or each_budget.seconds is not None):
        raise Mistake(
            "models that share a time train one after the other; leave {executor} out, or give each of them steps with {each}",
            code="executor-beside-time",
            executor=None,
            each="300steps",
        )
    if not 1 <= seeds <= MOST_SEEDS:
        raise Mistake(
            f"{{seeds}} is a whole number from 1 to {MOST_SEEDS}; got {seeds}", code="seeds-out-of-range", seeds=None
        )
    seed = checked_seed(seed)
    checked_seed(seed + seeds - 1)
    for name in names:
        language_model(name)
        trainable_kind(name)
    if not tokenizers:
        raise Mistake("name at least one tokenizer, such as {tokenizers}", code="no-tokenizers", tokenizers="char")
    tokenizers = [plain_spec(spec) for spec in tokenizers]
    if unused := set(settings) - set(names):
        called = ", ".join(sorted(unused))
        raise Mistake(
            f"{{settings}} names {called}, which is not among the models that are compared",
            code="settings-of-no-model",
            settings=None,
        )
    asked: dict[str, dict[str, Any]] = {}
    for name, theirs in settings.items():  # refuse invalid values before anything runs
        given = with_our_names(model_class(name).Config, theirs)
        asked[name] = without_open(given, make(model_class(name).Config, given, name))
    asked_learning: dict[str, dict[str, Any]] = {}
    for name, theirs in learning.items():
        given = with_our_names(TrainConfig, theirs)
        if name not in names or kind_of(name).way is Way.COUNTS:
            why = "counts, and learns nothing" if name in names else "is not among the models compared"
            raise Mistake(f"{{learning}} names {name}, which {why}", code="learning-of-no-model", learning=None)
        asked_learning[name] = without_open(given, training_config(Budget(steps=1), seed, given))
    weights = checked_shares(shares, names)
    choose_device(device)
    others = [opened(run) for run in beside]
    import matplotlib.figure  # noqa: F401  (half a second, before the clock runs)

    corpus = (
        text
        if isinstance(text, Corpus)
        else read(text, valid=valid, test=test, split=split, split_by=split_by, seed=seed, documents=documents)
    )
    if not corpus.test.bytes:
        instead = "give it a share above 0 in {split}" if valid is None else "name one with {test}"
        raise Mistake(
            f"{corpus.name} has no test part to compare on; {instead}",
            code="comparison-without-test-part",
            split=None,
            test=None,
        )
    if corpus.test.bytes < LEAST_TEST_BYTES:
        more = "a larger share in {split}" if test is None else "a longer {test}"
        raise Mistake(
            f"the test part of {corpus.name} has {counted(corpus.test.bytes, 'byte')}, too few to tell models apart;"
            f" {LEAST_TEST_BYTES} are the least: give more text, or {more}",
            code="test-part-too-short",
            split="60,10,30",
            test=None,
        )
    several = len(set(tokenizers)) > 1
    entries = tuple(
        AskedEntry(name=f"{model} · {tokenizer}" if several else model, model=model, tokenizer=tokenizer)
        for tokenizer in dict.fromkeys(tokenizers)
        for model in in_order(list(dict.fromkeys(names)))
    )
    all_seeds = tuple(range(seed, seed + seeds))
    learned = [entry for entry in entries if not entry.counts]
    turns = [Turn(share=weights.get(entry.model, 1.0), runs=seeds) for entry in learned]
    if budget_s is not None and budget_s < (least_s := least_budget_s(turns, corpus.train.bytes)):
        raise Mistake(
            f"{budget_s:g} s are too short to train {len(learned) * seeds} models on {corpus.train.bytes:,} bytes;"
            " take {budget} or more, or name fewer with {models}",
            code="budget-too-short",
            budget=f"{least_s:g}s",
            models=None,
        )
    terms = Terms(
        budget_s=budget_s,
        each=None if each_budget is None else str(each_budget),
        shares=weights,
        device=device,
        runs=tuple(entry_name(entry.model, entry.tokenizer, number) for entry in learned for number in all_seeds),
    )
    asked_in_all = Asked(
        corpus=corpus,
        entries=entries,
        seeds=all_seeds,
        budget_s=budget_s,
        each=each_budget,
        shares=weights,
        settings=asked,
        learning=asked_learning,
        device=device,
        command=command,
    )
    place = Path("runs") / f"compare-{stem(text)}" if out is None else Path(out)
    with claimed(place, corpus.spec(), terms, beside=out is None) as folder:
        found = ComparisonRun(asked_in_all, folder, works, watch or (Lines() if progress else None)).run()
        return measured_beside(found, others, seed=seed, device=device) if others and not found.stopped else found


def _by_our_names(given: Mapping[str, T] | None) -> dict[str, T]:
    """Return what was given by model with our names of the models."""
    return {our_name(name): value for name, value in (given or {}).items()}


def _listed(names: str | Sequence[N] | None) -> Sequence[str | N] | None:
    """Return names that were given as a list, or as one text with commas."""
    return [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else names
