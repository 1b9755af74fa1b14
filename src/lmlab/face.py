"""Every verb as a Python function; the command line calls these.

    run = lmlab.train("gpt", "mytext.txt", out="runs/mine", budget="3m")
    lmlab.evaluate(run).bits_per_byte

Arguments are called as on the command line (`--set` is `settings`, `--learn` is `learning`), and a path may be a string. What a
verb needs is imported when it is called. What stands in `HOMES` has a room of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from lmlab.config import Mistake as Mistake
from lmlab.config import an, checked_seed
from lmlab.disk.files import free_file
from lmlab.models.registry import Role, kind_of

if TYPE_CHECKING:
    from lmlab.comparison import compare as compare
    from lmlab.compression.compress_files import Coded, Compressed
    from lmlab.compression.text_codec import Progress
    from lmlab.costs.asked_count import count as count
    from lmlab.costs.asked_plan import plan as plan
    from lmlab.costs.calibrate import plan_steps as plan_steps
    from lmlab.coursework.running import Entry
    from lmlab.decode import Generated
    from lmlab.hardware.report import MachineReport
    from lmlab.inside.theory.verbs import explain_dot_products as explain_dot_products
    from lmlab.inside.theory.verbs import explain_gradients as explain_gradients
    from lmlab.inside.theory.verbs import explain_positions as explain_positions
    from lmlab.inside.theory.verbs import explain_sandbox as explain_sandbox
    from lmlab.inside.verbs import explain as explain
    from lmlab.inside.verbs import explain_attention as explain_attention
    from lmlab.inside.verbs import explain_gates as explain_gates
    from lmlab.inside.verbs import explain_heads as explain_heads
    from lmlab.inside.verbs import explain_matrix as explain_matrix
    from lmlab.inside.verbs import explain_search as explain_search
    from lmlab.learn.about_settings import settings as settings
    from lmlab.learn.curves import curves as curves
    from lmlab.learn.going_on import fine_tune as fine_tune
    from lmlab.learn.going_on import resume as resume
    from lmlab.learn.mixing import mix as mix
    from lmlab.learn.recipe import recipe as recipe
    from lmlab.learn.run import Run
    from lmlab.learn.train import train as train
    from lmlab.measure import Result
    from lmlab.measure.strings import ScoredText, ScoredTexts
    from lmlab.promises.suite import contract as contract
    from lmlab.results import OtherResult
    from lmlab.sweeps import sweep as sweep
    from lmlab.tasks.classification.verbs import classify as classify
    from lmlab.tasks.classification.verbs import mistakes as mistakes
    from lmlab.tasks.latent.verbs import latent as latent
    from lmlab.tasks.masked.verbs import fill as fill
    from lmlab.tasks.translation.verbs import translate as translate
    from lmlab.tasks.word_pairs.verbs import combine as combine
    from lmlab.tasks.word_vectors.verbs import analogy as analogy
    from lmlab.tasks.word_vectors.verbs import neighbours as neighbours
    from lmlab.tasks.word_vectors.verbs import vectors as vectors
    from lmlab.tasks.word_vectors.verbs import word_map as word_map
    from lmlab.text.corpus import Corpus
    from lmlab.text.corpus import read as read
    from lmlab.text.files_and_folders import Text
    from lmlab.text.files_and_folders import strings as strings
    from lmlab.text.splitting import SplitBy
    from lmlab_derive.verbs import check as check
    from lmlab_derive.verbs import grade as grade

HOMES: dict[str, tuple[str, ...]] = {  # of the verbs that have a room of their own
    "lmlab_derive.verbs": ("check", "grade"),
    "lmlab.tasks.classification.verbs": ("classify", "mistakes"),
    "lmlab.tasks.word_pairs.verbs": ("combine",),
    "lmlab.comparison": ("compare",),
    "lmlab.costs.asked_count": ("count",),
    "lmlab.costs.asked_plan": ("plan",),
    "lmlab.costs.calibrate": ("plan_steps",),
    "lmlab.inside.theory.verbs": ("explain_dot_products", "explain_gradients", "explain_positions", "explain_sandbox"),
    "lmlab.inside.verbs": (
        "explain",
        "explain_attention",
        "explain_gates",
        "explain_heads",
        "explain_matrix",
        "explain_search",
    ),
    "lmlab.tasks.latent.verbs": ("latent",),
    "lmlab.learn.about_settings": ("settings",),
    "lmlab.learn.curves": ("curves",),
    "lmlab.learn.going_on": ("fine_tune", "resume"),
    "lmlab.learn.mixing": ("mix",),
    "lmlab.learn.recipe": ("recipe",),
    "lmlab.learn.train": ("train",),
    "lmlab.tasks.masked.verbs": ("fill",),
    "lmlab.promises.suite": ("contract",),
    "lmlab.sweeps": ("sweep",),
    "lmlab.text.corpus": ("read",),
    "lmlab.text.files_and_folders": ("strings",),
    "lmlab.tasks.translation.verbs": ("translate",),
    "lmlab.tasks.word_vectors.verbs": ("analogy", "neighbours", "vectors", "word_map"),
}


def __getattr__(name: str) -> Any:
    """A verb that has a room of its own is fetched from there when it is first asked for."""
    for module, verbs in HOMES.items():
        if name in verbs:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'lmlab.face' has no attribute {name!r}")


def _opened(run: Run | str | Path) -> Run:
    from lmlab.learn.run import opened

    return opened(run)


def load(folder: str | Path) -> Run:
    """The run in a folder."""
    from lmlab.learn.run import load_run

    return load_run(folder)


def _on(device: str, run: Run | str | Path) -> Run:
    """The run, its model on that device. What is compressed must be opened again, so its weights may not change."""
    run = _opened(run)
    if run.status == "unfinished":
        raise Mistake(
            f"{run.folder} is unfinished, and its weights will change; finish it first: {run.how_to_go_on}",
            code="export-unfinished",
        )
    run.load(device)
    return run


def evaluate(
    run: Run | str | Path,
    text: Text | None = None,
    *,
    part: str | None = None,
    seed: int = 0,
    level: float = 0.95,
    device: str = "auto",
    against: Run | str | Path | None = None,
    watch: Callable[[str, int, int], None] | None = None,
) -> Result | OtherResult:
    """Bits per byte of a text under a run's model, with interval (of that level) and certificate.

    text: another text, scored whole; without it, `part` ("train", "valid" or, if nothing is said, "test") of the run's own
    corpus.
    Of a model of another task: what that task is measured by, such as accuracy, with something simpler beside it.
    against: of a translator another one, compared with it sentence by sentence.
    watch: told, of a language model, what is being done ("tokenise", "walk", "score"), and how much of how much.
    """
    if part not in (None, "train", "valid", "test"):
        raise Mistake(f"{{part}} is train, valid or test; got {part!r}", code="part-unknown", part=None)
    if text is not None and part is not None:
        raise Mistake(
            "{part} is of the run's own corpus; another text is scored whole: leave one out",
            code="part-beside-text",
            part=part,
        )
    seed = checked_seed(seed)
    from lmlab.comparison.measure_apart import needs_to_be_apart
    from lmlab.comparison.measure_run import measure_run
    from lmlab.hardware.threads import fastest_threads
    from lmlab.text.corpus import read
    from lmlab.text.parts import Part

    run = _opened(run)
    kind = None if needs_to_be_apart(run.record.model.name, {}) else kind_of(run.record.model.name)
    if against is not None and (kind is None or kind.role is not Role.TRANSLATOR):
        raise Mistake(
            "{against} is for translators; others are told apart by: lmlab compare",
            code="against-without-translator",
            against=None,
        )
    if kind is not None and kind.task is not None:  # code of others is not loaded here: `measure_run` sees to it
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
        corpus = read(text, split=(100, 0, 0))
        name, chosen = corpus.name, Part("whole", corpus.train.documents)
    with fastest_threads():
        found = measure_run(run, chosen, name=name, seed=seed, level=level, device=device, progress=watch)
    return replace(found, notes=(run.caution, *found.notes)) if run.caution else found


@overload
def score(run: Run | str | Path, texts: str, *, device: str = ...) -> ScoredText: ...  # type: ignore[overload-overlap]
@overload
def score(run: Run | str | Path, texts: Sequence[str], *, device: str = ...) -> ScoredTexts: ...
def score(run: Run | str | Path, texts: str | Sequence[str], *, device: str = "auto") -> ScoredText | ScoredTexts:
    """Bits of strings under a run's model, token by token and word by word; one for a string, a sequence for several.

    Each string is a text of its own: it begins afresh, and its end costs nothing.
    """
    from lmlab.measure.strings import score_texts

    run = _opened(run)
    found = score_texts(run.load(device), run.tokenizer, [texts] if isinstance(texts, str) else texts)
    return found[0] if isinstance(texts, str) else found


def generate(
    run: Run | str | Path,
    prompt: str = "",
    *,
    method: str = "sample",
    tokens: int = 200,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    beam: int = 4,
    best: int = 1,
    length_penalty: float = 1.0,
    stop: str | Sequence[str] = (),
    samples: int = 1,
    seed: int = 0,
    precision: str = "float32",
    device: str = "auto",
    watch: Callable[[str], None] | None = None,
) -> list[Generated]:
    """Continuations of `prompt`: `samples` of them, or the `best` of a beam; see `lmlab.decode.Options`.

    precision: of the weights while writing, float32 or bf16. watch: told the one text piece by piece, as each is certain.
    """
    from lmlab import decode

    options: dict[str, Any] = {"method": method, "max_tokens": tokens, "temperature": temperature, "top_k": top_k}
    options |= {"top_p": top_p, "min_p": min_p, "beam_width": beam, "n_best": best, "length_penalty": length_penalty}
    options |= {"stop": stop, "samples": samples, "seed": seed}
    run = _opened(run)
    model = run.load(device)
    with decode.as_verbs_call_them(), decode.writing_in(model, precision):
        if watch is None:
            return decode.generate(model, run.tokenizer, prompt, **options)
        pieces = decode.stream(model, run.tokenizer, prompt, **options)
        for piece in pieces:
            watch(piece)
        return [pieces.result]


def generate_many(
    run: Run | str | Path,
    prompts: Sequence[str],
    *,
    precision: str = "float32",
    device: str = "auto",
    **settings: Any,
) -> list[list[Generated]]:
    """What `generate` finds for each of these prompts, with the same settings; they are continued side by side."""
    from lmlab import decode

    names = {called: name for name, called in decode.IN_VERBS.items()}
    run = _opened(run)
    model = run.load(device)
    with decode.as_verbs_call_them(), decode.writing_in(model, precision):
        options = {names.get(name, name): value for name, value in settings.items()}
        return decode.generate_many(model, run.tokenizer, prompts, **options)


def compress(
    file: str | Path,
    *,
    model: Run | str | Path,
    out: str | Path,
    streams: int = 1,
    check: bool = False,
    force: bool = False,
    device: str = "cpu",
    watch: Progress | None = None,
) -> Compressed:
    """Compress a text with a trained model, by arithmetic coding, to the bits that `evaluate` claims.

    file: UTF-8, plain or gzip; "-" is standard input. model: the run. check: decompress again and compare before writing.
    device: what is compressed on one is opened on one of its kind alone; there is a CPU everywhere.
    """
    target = free_file(out, force)
    from lmlab.compression.compress_files import compress_file

    return compress_file(file, _on(device, model), target, streams=streams, check=check, watch=watch)


def decompress(
    file: str | Path,
    *,
    model: Run | str | Path,
    out: str | Path,
    force: bool = False,
    device: str = "cpu",
    watch: Progress | None = None,
) -> Coded:
    """Bring back a text that `compress` made small, byte for byte, with the run it was compressed with.

    file: that `compress` wrote; "-" is standard input.
    """
    target = free_file(out, force)
    from lmlab.compression.compress_files import decompress_file

    return decompress_file(Path(file), lambda: _on(device, model), target, watch=watch)


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A model in a form that other tools read. ngrams: how many of each order, special symbols included."""

    output: str
    format: str
    bytes: int
    ngrams: list[int]


def export(run: Run | str | Path, *, out: str | Path, force: bool = False) -> Exported:
    """Write an n-gram model as an ARPA file, which KenLM, SRILM and others read with the same log-probabilities."""
    target = free_file(out, force)
    from lmlab.exchange.arpa import write_arpa
    from lmlab.models.ngram import NGram

    run = _opened(run)
    model = run.model
    if not isinstance(model, NGram):
        raise Mistake(
            f"{run.folder} holds {an(model.name)} model; only ngram models can be written as an ARPA file",
            code="arpa-needs-ngram",
        )
    counts = write_arpa(model, run.tokenizer.vocabulary, target)
    return Exported(output=str(target), format="arpa", bytes=target.stat().st_size, ngrams=counts)


@overload
def data(action: Literal["list"] = "list") -> dict[str, str]: ...
@overload
def data(action: Literal["get"], text: str) -> list[Path]: ...
@overload
def data(
    action: Literal["show"],
    text: Text,
    *,
    split: Sequence[float] = ...,
    split_by: SplitBy = ...,
    valid: Text | None = ...,
    test: Text | None = ...,
    seed: int = ...,
) -> Corpus: ...
def data(
    action: str = "list",
    text: Text | None = None,
    *,
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    valid: Text | None = None,
    test: Text | None = None,
    seed: int = 0,
) -> dict[str, str] | list[Path] | Corpus:
    """The named corpora with a sentence each (list), the files of one, fetched if need be (get), or a text (show)."""
    from lmlab.text import sources

    if action == "list":
        return sources.available()
    if action not in ("get", "show"):
        shown = f"data show {action}" if Path(action).exists() else f"data get {action}"
        meant = f"; did you mean {shown}?" if Path(action).exists() or action in sources.available() else ""
        raise Mistake(f"data takes list, get or show; got {action!r}{meant}", code="data-action-unknown")
    if text is None:
        raise Mistake(f"name the text to {action}, such as: {', '.join(sources.available())}", code="data-without-text")
    if action == "get":
        return sources.get(str(text))
    from lmlab.text.corpus import read

    return read(text, valid=valid, test=test, split=split, split_by=split_by, seed=seed)


def prove(
    ids: Sequence[str] = (),
    *,
    source: str | None = None,
    html: str | Path | None = None,
    watch: Callable[[Entry], None] | None = None,
) -> list[Entry]:
    """Run claims of course documents (those that begin so). html: a folder for pages. watch: told of each that is done."""
    from lmlab.coursework import choosing, page, running

    chosen = choosing.claims(ids, source)
    if html is not None:
        page.refuse_if_file(Path(html))
    entries = running.run(chosen, watch)
    if html is not None:
        page.write(entries, Path(html))
    return entries


def machine(*, again: bool = False) -> MachineReport:
    """What this machine was found to do and what is chosen because of it. again: measure anew what is known already."""
    from lmlab.hardware.report import about_machine
    from lmlab.layers.raced import RACES

    return about_machine(RACES, again=again)
