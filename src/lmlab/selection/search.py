"""The function `best`: checks the arguments, locks the folder, and runs the search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from lmlab.comparison.executors.here import Here
from lmlab.comparison.folder import ComparisonFolder, Terms, claimed
from lmlab.comparison.time_shares import DEFAULT_BUDGET
from lmlab.config import Budget, Mistake, Stopped, checked_seed
from lmlab.disk.files import made_folder
from lmlab.hardware.choice import choose_device
from lmlab.learn.run import Run, load_run
from lmlab.models.registry import AnyModel, language_model, name_of, trainable_kind
from lmlab.page.notebook import panel
from lmlab.records import to_json
from lmlab.selection.candidates import COUNTED, LEARNED, tokenizers_for
from lmlab.selection.lines import Lines, sentence
from lmlab.selection.page import write_page
from lmlab.selection.records import PAGE, SEARCH, Found
from lmlab.selection.run_search import AskedSearch, Display, Search
from lmlab.text.corpus import Corpus, read, stem
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy
from lmlab.text.tokenizers import plain_spec


@dataclass(frozen=True, kw_only=True)
class Best:
    """The outcome of a search.

    Attributes:
        folder: the folder of the search, which is the run of the best model.
        page: the path of the page.
    """

    folder: Path
    found: Found
    page: Path

    @property
    def run(self) -> Run:
        """The run of the best model."""
        return load_run(self.folder)

    @property
    def bits_per_byte(self) -> float | None:
        """Bits per byte of the test part; None if infinite."""
        return self.found.result.bits_per_byte

    def __repr__(self) -> str:
        return f"Best({sentence(self.found)} {self.folder})"

    def _repr_html_(self) -> str:
        """Return the result as HTML, for a notebook."""
        return panel(
            "The best model", {"model": sentence(self.found), "run": str(self.folder), "page": str(self.page)}, ""
        )

    def to_json(self) -> dict[str, Any]:
        """Return the content of best.json as a dict."""
        document: dict[str, Any] = to_json(self.found)
        return document


def best(
    text: str | Path | Sequence[str | Path] | Corpus = "sotu",
    *,
    out: str | Path | None = None,
    budget: str | Budget | None = None,
    models: Sequence[AnyModel] | None = None,
    tokenizers: Sequence[str] | None = None,
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    valid: Text | None = None,
    test: Text | None = None,
    documents: str = "auto",
    seed: int = 0,
    device: str = "auto",
    watch: Display | None = None,
    progress: bool = False,
    command: str = "",
) -> Best:
    """Search for the best model of a text within a time, and measure it once on the test part.

    Models that count are fitted with several tokenizers. Models that learn are trained side by side, each for the whole of its
    budget or until a rung at which validation stops half of them. Those that finish are mixed if the mix validates better. The
    folder `out` is the run of the best model. Called again with the same folder and budget, a search that was stopped goes on.

    Args:
        text: a named corpus, files or folders, or a `Corpus`.
        out: the folder; its default is runs/best-TEXT, or runs/best-TEXT-2 and so on if that holds another search.
        budget: time for the whole search, such as "10m"; its default is "5m".
        models: the kinds of models to try, those that learn in the order in which short budgets take them; None: the kinds that
            win most often.
        tokenizers: the tokenizers to try; None: what suits the text.
        split: the shares of the training, validation and test parts.
        split_by: the unit that is divided among the parts.
        valid: a separate validation text.
        test: a separate test text.
        documents: what the documents are whose end is predicted, as for `compare`.
        seed: the seed of every candidate.
        device: the device to train and score on.
        watch: a display of the progress.
        progress: print on stderr what is done, if there is no `watch`.
        command: the command that repeats the search, for the page.

    Raises:
        Mistake: an argument is invalid, or `out` holds something else.
    """
    asked_budget = Budget.parse(DEFAULT_BUDGET if budget is None else budget)
    if asked_budget.seconds is None:
        raise Mistake(
            "a search has a budget of time for everything, such as {budget}",
            code="search-budget-of-steps",
            budget="10m",
        )
    names = tuple(dict.fromkeys([*COUNTED, *LEARNED] if models is None else [name_of(model) for model in models]))
    for name in names:
        language_model(trainable_kind(name).name)
    if not names or (tokenizers is not None and not list(tokenizers)):
        raise Mistake(
            "name at least one of {models} and {tokenizers}", code="search-of-nothing", models=None, tokenizers=None
        )
    choose_device(device)
    corpus = (
        text
        if isinstance(text, Corpus)
        else read(text, valid=valid, test=test, split=split, split_by=split_by, seed=seed, documents=documents)
    )
    for part in (corpus.valid, corpus.test):
        if not part.bytes:
            raise Mistake(
                f"{corpus.name} has no {part.name} part, by which a search {'chooses' if part is corpus.valid else 'measures'};"
                " give it a share above 0 in {split}",
                code="search-without-part",
                split=None,
            )
    specs = tokenizers_for(corpus, asked_budget.seconds) if tokenizers is None else map(plain_spec, tokenizers)
    asked = AskedSearch(
        corpus=corpus,
        models=names,
        tokenizers=tuple(dict.fromkeys(specs)),
        named=tokenizers is not None,
        budget_s=asked_budget.seconds,
        seed=checked_seed(seed),
        device=device,
        command=command,
    )
    place = Path("runs") / f"best-{stem(text)}" if out is None else Path(out)
    with _claimed(place, asked, beside=out is None) as (path, folder):
        search = Search(asked, path, folder, Here(), watch or (Lines() if progress else None))
        found = search.run()
        return Best(folder=path, found=found, page=write_page(found, path / PAGE))


@contextmanager
def _claimed(out: Path, asked: AskedSearch, *, beside: bool) -> Iterator[tuple[Path, ComparisonFolder]]:
    """Lock the folder of a search for the block; beside: take `out-2` and so on if `out` holds another search."""
    terms = Terms(
        budget_s=asked.budget_s,
        each=None,
        shares={},
        device=asked.device,
        runs=tuple(f"{model}-{spec}-seed{asked.seed}" for model in asked.models for spec in asked.tokenizers),
    )
    for number in count(1):
        path = out if number == 1 else out.with_name(f"{out.name}-{number}")
        taken = path.exists() and not (path / SEARCH).is_dir() and (path.is_file() or any(path.iterdir()))
        if not taken:
            made_folder(path)
            try:
                with claimed(path / SEARCH, asked.corpus.spec(), terms, beside=False) as folder:
                    yield path, folder
                return
            except Stopped:
                raise Stopped(f"what was trained is kept in {path}: the same command goes on") from None
            except Mistake as mistake:
                if not beside or mistake.code != "comparison-folder-taken":
                    raise
        elif not beside:
            raise Mistake(
                f"{path} is not empty and holds no search; name a new folder with {{out}}",
                code="search-folder-taken",
                out=None,
            )
