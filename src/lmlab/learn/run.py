"""A run on disk.

    RUN/ run.json  model.safetensors  tokenizer.json  [spelling.json]  metrics.jsonl  loss.svg  state/  README.md
         recipe.toml  samples.jsonl  page.html  training_text.safetensors (its fingerprint)

Files are written under another name, flushed and renamed, so that a kill at any moment leaves the last good one. Only
metrics.jsonl grows by lines: a resumed run cuts it back to its checkpoint. Of what a model is, run.json is written
last and holds the hash of the weights: a run is either whole or recognisably not.

A run of format 1 or 2 has config.json instead of run.json. It is only read until its record is written again: then run.json
takes its place, and config.json goes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.config import Mistake
from lmlab.disk.files import (
    as_typed,
    can_be_written,
    drop_unfinished,
    made_folder,
    taken_by_a_file,
    write_atomically,
)
from lmlab.disk.locks import locked
from lmlab.identity import parameter_count
from lmlab.learn import recipe
from lmlab.learn.fingerprint_files import fingerprint_file, fingerprints_in
from lmlab.learn.lines import documents, is_metrics, is_sample, unit_of
from lmlab.learn.record import FORMATS, Record, Result
from lmlab.learn.record_types import WrongKey
from lmlab.learn.run_folder import RECORD, drop_old_record, record_file, required_record_file
from lmlab.models.registry import file_name
from lmlab.text.corpus import stem

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.interface import LanguageModel, Saved
    from lmlab.text.corpus import Corpus
    from lmlab.text.fingerprint import Fingerprint
    from lmlab.text.parts import Part
    from lmlab.text.tokenizers import Tokenizer


class Run:
    """One trained (or half-trained) model and all that is known of how it came to be."""

    def __init__(self, folder: Path, record: Record) -> None:
        self.folder, self.record = folder, record
        self._was_checked = False  # whether the hash of the weights was looked at a moment ago

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.record.model.name}, {self.status})"

    def _repr_html_(self) -> str:
        """The run in a notebook: what it is, and its curve."""
        from lmlab.learn.curve_figures import loss_curve
        from lmlab.page import numbers
        from lmlab.page.notebook import panel

        record, result = self.record, self.record.result
        facts = {
            "text": f"{record.inputs.corpus['name']} in {record.inputs.tokenizer} tokens",
            "settings": ", ".join(f"{key}={value}" for key, value in record.model.config.items()),
            "budget": record.training.budget,
            "folder": str(self.folder),
        }
        if record.model.parameters is not None:
            facts["parameters"] = f"{record.model.parameters:,}"
        if result.steps is not None:
            facts["learned"] = f"{result.steps:,} steps, {result.tokens:,} tokens, {result.seconds:.0f} s"
        if result.training_flops is not None:
            facts["FLOPs"] = numbers.short(result.training_flops)
        # what counts has no curve, nor has what diverged before it was validated
        curve = self.metrics and loss_curve(self.metrics, record.model.name, self.unit, record.training.went_on_at)
        said = self.caution or str(result.undertrained or "")
        return panel(f"{record.model.name}, {self.status}", facts, curve or "", said)

    @property
    def status(self) -> str:
        """ "finished", "stopped early", "diverged", "untrained" (no time for a step) or, before its end, "unfinished"."""
        return self.record.result.status

    @property
    def training_flops(self) -> float | None:
        """Operations of its training, by its model's formula; None: there is none, or it was fitted by counting.

        A run of a time when this was not written down is taken to have had batches of the usual length.
        """
        from lmlab.interface import Learner

        result = self.record.result
        if result.training_flops is not None or not isinstance(self.saved, Learner):
            return result.training_flops
        per_token = self.saved.training_flops_per_token
        return None if per_token is None else per_token * result.tokens

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer the model was trained with."""
        from lmlab.text.tokenizers import Tokenizer

        tokenizer = Tokenizer.load(self.folder)
        if tokenizer.spec != self.record.inputs.tokenizer:
            raise Mistake(
                f"{self.folder}/tokenizer.json is a {tokenizer.spec} tokenizer, and the run was trained with"
                f" {self.record.inputs.tokenizer}; the run is damaged: train again",
                code="tokenizer-of-another-run",
            )
        return tokenizer

    @cached_property
    def saved(self) -> Saved:
        """What was trained, its weights checked against their recorded hash."""
        from safetensors import SafetensorError

        from lmlab.learn.rebuilding import rebuilt

        vocab_size = 0 if self.record.inputs.tokenizer is None else self.tokenizer.vocab_size
        try:
            tensors = self.weights()
        except SafetensorError as error:
            raise Mistake(
                f"{self.folder}/model.safetensors cannot be read ({error}); train again", code="weights-not-readable"
            ) from None
        return rebuilt(self.folder, self.record, vocab_size, tensors)

    def weights(self) -> Mapping[str, Tensor]:
        """The weights; of a run that was stopped the best so far, or the last where nothing was validated yet."""
        from safetensors.torch import load, load_file

        if self.status == "unfinished" and self.checkpoint.exists():
            from lmlab.learn.checkpoint import load_checkpoint

            progress, groups = load_checkpoint(self.checkpoint)
            return groups["weights" if progress.best_nats is None else "best"]
        if self.status == "unfinished" and self.record.training.earlier is None:
            raise Mistake(
                f"{self.folder} has learned nothing yet; train it first: {self.how_to_go_on}",
                code="nothing-learned-yet",
            )
        try:
            if self._was_checked:  # then the file is only mapped: a copy of a large table is not read, but looked up in
                return load_file(self.folder / "model.safetensors")
            content = (self.folder / "model.safetensors").read_bytes()
        except FileNotFoundError:
            raise Mistake(
                f"{self.folder} has no model.safetensors; the run is damaged: train again", code="weights-missing"
            ) from None
        if hashlib.sha256(content).hexdigest() != self.record.model.sha256:
            raise Mistake(
                f"{self.folder}/model.safetensors is not what was saved; the run is damaged: train again",
                code="weights-changed",
            )
        return load(content)

    @property
    def checkpoint(self) -> Path:
        """What a run that was stopped goes on from."""
        return self.folder / "state" / "checkpoint.safetensors"

    @property
    def how_to_go_on(self) -> str:
        """The command for it."""
        return f"lmlab train --resume --out {as_typed(self.folder)}"

    @property
    def what_is_kept(self) -> str:
        """Of a training that was stopped, and what to do next."""
        if self.status != "unfinished":
            return f"{self.folder} had come to its end and is saved: {self.how_to_use()}"
        kept = "is kept up to its last checkpoint" if self.checkpoint.exists() else "has learned nothing yet"
        return f"{self.folder} {kept}; go on with: {self.how_to_go_on}"

    @property
    def learned_nothing(self) -> bool:
        """Whether it came to its end without a step, or with the weights it began with, which nobody had trained."""
        result = self.record.result
        diverged = result.status == "diverged" and not result.best_step and not self.record.training.lineage
        return diverged or result.steps == 0  # which runs of a time when they were called finished say too

    def that_learned(self) -> Run:
        """This run. A Mistake where it has learned nothing: such weights are no measure of a kind of model."""
        if self.learned_nothing:
            raise Mistake(f"{self.status}: {self.record.result.message}", code="nothing-learned")
        return self

    @property
    def caution(self) -> str:
        """What whoever uses the weights should know; nothing where the run came to a good end."""
        if self.learned_nothing:
            return f"{self.folder} has learned nothing: {self.record.result.message}"
        if self.status == "diverged":
            return f"{self.folder} diverged before its time was up: {self.record.result.message}"
        if self.status != "unfinished":
            return ""
        from lmlab.learn.checkpoint import read_progress

        progress = read_progress(self.checkpoint)
        step = ""
        if progress is not None:
            step = f", of step {progress.steps if progress.best_nats is None else progress.best_step}"
        return f"{self.folder} is unfinished: these are its best weights so far{step}; go on with: {self.how_to_go_on}"

    @property
    def model(self) -> LanguageModel:
        """What was trained, where that is a language model."""
        from lmlab.interface import LanguageModel

        if not isinstance(self.saved, LanguageModel):
            raise Mistake(
                f"{self.folder} holds a model of the kind {self.record.model.name}, which is no language model",
                code="run-is-no-language-model",
            )
        return self.saved

    def load(self, device: str = "auto") -> LanguageModel:
        """The model where it is wanted (auto: on a GPU if there is one); models that count stay where they are."""
        from torch.nn import Module

        from lmlab.hardware.choice import choose_device

        place, model = choose_device(device), self.model
        return model.to(place) if isinstance(model, Module) else model

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process trains in it meanwhile; Mistake where one does."""
        with locked(self.folder, _busy(self.folder), again=True):
            yield

    def load_again(self, device: str = "auto") -> LanguageModel:
        """The model as it is on disk, in another copy: what the one in memory has seen, it has not."""
        again = Run(self.folder, self.record)
        again._was_checked = "saved" in vars(self)
        again.tokenizer = self.tokenizer  # which sees no rows
        return again.load(device)

    @property
    def model_hash(self) -> str | None:
        """`lmlab.identity.model_hash`, as it was worked out when the weights were saved; None: it was not, or is another."""
        from lmlab.identity import kept_hash

        kept, sha256 = self.record.model.identity, self.record.model.sha256
        if kept is None or sha256 is None or self.status == "unfinished":
            return None
        return kept_hash(kept, self.model, self.tokenizer, sha256)

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus it was trained on, read again and checked against its hashes."""
        from lmlab.text.corpus import Corpus

        return Corpus.from_spec(dict(self.record.inputs.corpus))

    @property
    def learned_from(self) -> list[Fingerprint]:
        """Of all texts that its weights were trained on; one of an unknown text where that is not known."""
        return fingerprints_in(self.folder, self.record.inputs.fingerprints or ())

    def training_text(self, sha256: str) -> Part | None:
        """The part of its corpus with this hash, which it was trained on; None where it is not on disk as it was."""
        try:
            return next((part for part in self.corpus.parts.values() if part.sha256 == sha256), None)
        except (Mistake, OSError):
            return None

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl."""
        return documents(self.folder / "metrics.jsonl", is_metrics)

    @property
    def unit(self) -> str:
        """Of its curve: that of the first number of a line of metrics."""
        return str(unit_of(self.metrics[0])).replace("_", " ")

    @property
    def samples(self) -> list[dict[str, Any]]:
        """What the model wrote as it learned: step and text; none where training was over in a moment."""
        return documents(self.folder / "samples.jsonl", is_sample)

    def finish(self, model: Saved, config: dict[str, Any], result: Result) -> None:
        """Write the weights, then the record that vouches for them, then drop what was only needed to resume."""
        from torch.nn import Module

        from lmlab.learn.weights_file import write_weights

        sha256, identity = write_weights(model, self.folder / "model.safetensors", self.tokenizer)
        trained = replace(
            self.record.model,
            config=config,
            parameters=parameter_count(model),
            sha256=sha256,
            identity=identity,
        )
        self.record = replace(self.record, model=trained, result=result)
        write_atomically(self.folder / "README.md", self._readme().encode())
        write_atomically(self.folder / recipe.FILE, recipe.written(self.record, self.folder).encode())
        self.write_record()
        self.checkpoint.unlink(missing_ok=True)
        drop_unfinished(self.checkpoint)
        drop_unfinished(self.folder / "model.safetensors")
        self.__dict__["saved"] = model.to("cpu") if isinstance(model, Module) else model

    def write_record(self) -> None:
        """Write run.json, which takes the place of the config.json of an older run."""
        write_atomically(self.folder / RECORD, (json.dumps(self.record.to_json(), indent=2) + "\n").encode())
        drop_old_record(self.folder)  # a kill before this leaves both, of which run.json is read

    def how_to_use(self, folder: str | None = None) -> str:
        """The command that uses what was trained; folder: how it is named there."""
        from lmlab.models.registry import kind_of

        use = kind_of(self.record.model.name).use
        return f"lmlab {use.replace('RUN', as_typed(folder or self.folder), 1)}"

    def _readme(self) -> str:
        record, folder = self.record, as_typed(self.folder.name)
        settings = "\n".join(f"- {key}: {value}" for key, value in record.model.config.items())
        return (
            f"# {record.model.name} on {record.inputs.corpus['name']}\n\n"
            f"Trained by lmlab {record.lmlab} with the `{record.inputs.tokenizer}` tokenizer;"
            f" {record.model.parameters:,} parameters; {self.status}.\n\n"
            f"    lmlab eval {folder}\n    {self.how_to_use(self.folder.name)}\n\n"
            f"Settings\n\n{settings}\n"
        )


def create_run(
    folder: Path, record: Record, tokenizer: Tokenizer | None, learned_from: Sequence[Fingerprint] = ()
) -> Run:
    """A new, unfinished run in an empty or new folder. learned_from: what its weights were and will be trained on."""
    refuse_if_taken(folder)
    with locked(made_folder(folder), _busy(folder), again=True):
        refuse_if_taken(folder)  # once more: who came first has had it to himself
        contents = list(dict.fromkeys(text.to_bytes() for text in learned_from))
        known = tuple(hashlib.sha256(content).hexdigest() for content in contents)
        run = Run(folder, replace(record, inputs=replace(record.inputs, fingerprints=known)))
        if tokenizer is not None:
            tokenizer.save(folder)
            run.__dict__["tokenizer"] = tokenizer  # at hand already: a large one takes a while to load
        for number, content in enumerate(contents):
            write_atomically(folder / fingerprint_file(number), content)
        run.write_record()
    return run


def _busy(folder: Path) -> Mistake:
    return Mistake(f"another process trains in {folder}; wait for it, or name a new folder", code="run-busy")


def free_folder(name: str, text: str | Path | Sequence[str | Path] | Corpus) -> Path:
    """runs/NAME-TEXT, or the first of runs/NAME-TEXT-2, -3, … that is free."""
    called = f"{file_name(name)}-{stem(text)}"
    folder, number = Path("runs") / called, 2
    while folder.exists():
        folder, number = Path("runs") / f"{called}-{number}", number + 1
    return folder


def refuse_if_taken(folder: Path, *, can_go_on: bool = True) -> None:
    """Mistake unless `folder` is new or empty: a run never overwrites anything. can_go_on: a run in it could be, instead."""
    if taken := taken_by_a_file(folder):
        raise Mistake(
            f"{taken} is a file, and nothing can be in it; name a new folder for the run", code="run-folder-below-file"
        )
    if str(folder) == "-":
        raise Mistake(f"{folder} is no folder; name a new folder for the run", code="run-folder-is-file")
    if not can_be_written(folder):
        raise Mistake(
            f"nothing can be written in {folder}; name a new folder for the run elsewhere",
            code="run-folder-not-writable",
        )
    # Files of the tokenizer without a run.json are what a kill in the first moments leaves behind.
    beginnings = {"tokenizer.json", "spelling.json", fingerprint_file(0)}
    if folder.is_dir() and {path.name for path in folder.iterdir() if not path.name.startswith(".")} - beginnings:
        is_run = can_go_on and record_file(folder) is not None
        instead = ", or go on with the one in it: {resume} {out}" if is_run else ""
        raise Mistake(
            f"{folder} is not empty; name a new folder for the run{instead}",
            code="run-folder-not-empty",
            resume=None,
            out=str(folder),
        )


def opened(run: Run | Path | str) -> Run:
    """The run itself, or the one in the folder of that name; Mistake for anything else."""
    if isinstance(run, Run):
        return run
    if isinstance(run, str | Path) and str(run):
        return load_run(run)
    raise Mistake(
        f"a run is the name of its folder, or what lmlab.load or lmlab.train gave; got {str(run)[:40]!r}",
        code="run-not-a-name",
    )


def load_run(folder: Path | str) -> Run:
    """Open a run; Mistake, in one line, when it is missing or damaged."""
    folder = Path(folder)
    path = required_record_file(folder)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise Mistake(f"{path} is damaged; train again into a new folder", code="record-damaged") from None
    try:
        return Run(folder, Record.from_json(document, FORMATS[path.name]))
    except WrongKey as key:
        raise Mistake(
            f"{path} is damaged: {key} is missing or not what it has to be; train again", code="record-incomplete"
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Mistake(
            f"{path} was written by another version of lmlab, or is damaged; train again",
            code="record-of-another-version",
        ) from None
