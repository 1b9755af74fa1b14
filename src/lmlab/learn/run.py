"""A run on disk: its record and the contents of its files.

    RUN/ run.json  model.safetensors  tokenizer.json  [spelling.json]  metrics.jsonl  loss.svg  state/  README.md
         recipe.toml  samples.jsonl  page.html  training_text.safetensors (its fingerprint)

Each file is written under another name, flushed and renamed (`run_files.py`), so a kill at any moment leaves the last complete
version. Only metrics.jsonl and samples.jsonl are appended to; a resumed run truncates them to its checkpoint. run.json is
written after the weights and holds their hash, so an incomplete run is recognized.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.config import Mistake
from lmlab.disk.locks import locked
from lmlab.learn.fingerprint_files import fingerprints_in
from lmlab.learn.foreign_folders import format_of
from lmlab.learn.lines import documents, is_metrics, is_sample, unit_of
from lmlab.learn.record import FORMATS, Record, read_record
from lmlab.learn.run_advice import how_to_resume
from lmlab.learn.run_folder import required_record_file
from lmlab.learn.world import SINGLE_PROCESS, World
from lmlab.records import WrongKey

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.interface import LanguageModel, Saved
    from lmlab.text.corpus import Corpus
    from lmlab.text.documents import DocumentRule
    from lmlab.text.fingerprint import Fingerprint
    from lmlab.text.parts import Part
    from lmlab.text.tokenizers import Tokenizer


class Run:
    """A trained or partly trained model, with the record of its training."""

    def __init__(self, folder: Path, record: Record) -> None:
        self.folder, self.record = folder, record
        self.paused = False  # whether this process paused its training at the share `until` of its budget
        self._was_checked = False  # whether the hash of the weights was already checked

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.record.model.name}, {self.status})"

    def _repr_html_(self) -> str:
        """Return the notebook display of the run."""
        from lmlab.learn.run_page import notebook_panel

        return notebook_panel(self)

    @property
    def status(self) -> str:
        """The status: "unfinished" during training, then "finished", "stopped early", "diverged" or "untrained" (no step
        taken).
        """
        return self.record.result.status

    @property
    def learned_nothing(self) -> bool:
        """Whether training took no step, or diverged and left the random initial weights."""
        result = self.record.result
        diverged = result.status == "diverged" and not result.best_step and not self.record.training.lineage
        return diverged or result.steps == 0  # an older format has status finished for such a run

    @property
    def training_flops(self) -> float | None:
        """The FLOPs of the training, by the model's formula; None: no formula, or fitted by counting.

        An older record lacks the number. It is then computed for batches of the default length.
        """
        from lmlab.interface import Learner

        result = self.record.result
        if result.training_flops is not None or not isinstance(self.saved, Learner):
            return result.training_flops
        per_token = self.saved.training_flops_per_token
        return None if per_token is None else per_token * result.tokens

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that the model was trained with."""
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
        """The trained model of any task. Its weights are checked against their recorded hash."""
        from safetensors import SafetensorError

        from lmlab.interface import LanguageModel
        from lmlab.learn.rebuilding import rebuild_model

        vocab_size = 0 if self.record.inputs.tokenizer is None else self.tokenizer.vocab_size
        try:
            tensors = self.weights()
        except SafetensorError as error:
            raise Mistake(
                f"{self.folder}/model.safetensors cannot be read ({error}); train again", code="weights-not-readable"
            ) from None
        saved = rebuild_model(self.folder, self.record, vocab_size, tensors)
        if isinstance(saved, LanguageModel):
            saved.end_id = self.tokenizer.end_id
        return saved

    @property
    def rule(self) -> DocumentRule:
        """How the training text was divided into documents; their end is predicted unless the mode is "none"."""
        from lmlab.text.documents import NONE, DocumentRule

        corpus = self.record.inputs.corpus
        return DocumentRule(corpus["documents"], corpus["separator"].encode()) if "documents" in corpus else NONE

    @property
    def model(self) -> LanguageModel:
        """The trained language model. Raises a Mistake if the run holds a model of another task."""
        from lmlab.interface import LanguageModel

        if not isinstance(self.saved, LanguageModel):
            raise Mistake(
                f"{self.folder} holds a model of the kind {self.record.model.name}, which is no language model",
                code="run-is-no-language-model",
            )
        return self.saved

    def load(self, device: str = "auto") -> LanguageModel:
        """Return the model on a device. Counting models stay on the CPU.

        Args:
            device: "auto" selects a GPU if there is one.
        """
        from torch.nn import Module

        from lmlab.hardware.choice import choose_device

        place, model = choose_device(device), self.model
        return model.to(place) if isinstance(model, Module) else model

    def load_again(self, device: str = "auto") -> LanguageModel:
        """Return a new copy of the model from disk, which shares no state with the copy in memory."""
        again = Run(self.folder, self.record)
        again._was_checked = "saved" in vars(self)
        again.tokenizer = self.tokenizer  # shared, because it keeps no state
        return again.load(device)

    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights; for an unfinished run, the best so far, or the last if nothing was validated.

        Raises:
            Mistake: there are no weights, or they do not have the recorded hash.
        """
        from safetensors.torch import load, load_file

        if self.status == "unfinished" and self.checkpoint.exists():
            from lmlab.learn.checkpoint import load_checkpoint

            progress, groups = load_checkpoint(self.checkpoint)
            return groups["weights" if progress.best_nats is None else "best"]
        if self.status == "unfinished" and self.record.training.earlier is None:
            raise Mistake(
                f"{self.folder} has learned nothing yet; train it first: {how_to_resume(self.folder)}",
                code="nothing-learned-yet",
            )
        try:
            if self._was_checked:  # memory-maps the file, so a large table is not read whole
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
    def model_hash(self) -> str | None:
        """The stored `lmlab.identity.model_hash`; None: none was stored, or the model has changed since."""
        from lmlab.identity import kept_hash

        kept, sha256 = self.record.model.identity, self.record.model.sha256
        if kept is None or sha256 is None or self.status == "unfinished":
            return None
        return kept_hash(kept, self.model, self.tokenizer, sha256)

    @property
    def checkpoint(self) -> Path:
        """The path of the checkpoint from which an unfinished run is resumed."""
        return self.folder / "state" / "checkpoint.safetensors"

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus of the training, read again and checked against its recorded hashes."""
        from lmlab.text.corpus import Corpus

        if not self.record.inputs.corpus["parts"]:
            raise Mistake(
                f"{self.folder} is a model that others trained on a text that is not known here; name a text",
                code="run-without-text",
            )
        return Corpus.from_spec(dict(self.record.inputs.corpus))

    @property
    def learned_from(self) -> list[Fingerprint]:
        """Return the fingerprints of all texts that the weights were trained on.

        An unknown text has the fingerprint `Fingerprint.unknown`.
        """
        inputs = self.record.inputs

        def training_part() -> Part | None:
            return self.training_text(inputs.corpus["parts"]["train"]["sha256"])

        return fingerprints_in(self.folder, inputs.fingerprints or (), training_part)

    def training_text(self, sha256: str) -> Part | None:
        """Return the part of the corpus with this SHA-256; None if it is missing on disk or has changed."""
        try:
            return next((part for part in self.corpus.parts.values() if part.sha256 == sha256), None)
        except (Mistake, OSError):
            return None

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The parsed lines of metrics.jsonl."""
        return documents(self.folder / "metrics.jsonl", is_metrics)

    @property
    def unit(self) -> str:
        """The unit of the learning curve, which is that of the first metric."""
        return str(unit_of(self.metrics[0])).replace("_", " ")

    @property
    def samples(self) -> list[dict[str, Any]]:
        """The texts generated during training, with their steps; empty for a very short training."""
        return documents(self.folder / "samples.jsonl", is_sample)

    @contextmanager
    def alone(self, world: World = SINGLE_PROCESS) -> Iterator[None]:
        """Lock the run against training by a process outside this world. Raises a Mistake if it is locked."""
        with only_process_in(self.folder, world):
            yield


@contextmanager
def only_process_in(folder: Path, world: World = SINGLE_PROCESS) -> Iterator[None]:
    """Lock the folder of a run against training by a process outside this world. Raises a Mistake if it is locked."""
    busy = Mistake(f"another process trains in {folder}; wait for it, or name a new folder", code="run-busy")
    with locked(folder, busy, again=True, writer=world.is_writer):
        yield


def opened(run: Run | Path | str) -> Run:
    """Return the run itself, or load the run in the folder of that name.

    Raises:
        Mistake: the argument is neither.
    """
    if isinstance(run, Run):
        return run
    if isinstance(run, str | Path) and str(run):
        return load_run(run)
    raise Mistake(
        f"a run is the name of its folder, or what lmlab.load or lmlab.train gave; got {str(run)[:40]!r}",
        code="run-not-a-name",
    )


def load_run(folder: Path | str) -> Run:
    """Load a run from its folder, or open the model folder of another program as a run.

    Raises:
        Mistake: the run is missing or damaged, or has an unknown format.
    """
    folder = Path(folder)
    if (foreign := format_of(folder)) is not None:
        return foreign.open(folder)
    path = required_record_file(folder)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise Mistake(f"{path} is damaged; train again into a new folder", code="record-damaged") from None
    try:
        return Run(folder, read_record(document, FORMATS[path.name]))
    except WrongKey as key:
        raise Mistake(
            f"{path} is damaged: {key} is missing or not what it has to be; train again", code="record-incomplete"
        ) from None
    except ValueError:
        raise Mistake(
            f"{path} was written by another version of lmlab, or is damaged; train again",
            code="record-of-another-version",
        ) from None
