"""A Hugging Face folder as a run: the same verbs take it, and its results say what is not known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.exchange.folder_config import Folder, describe
from lmlab.exchange.folder_files import stored_tensors, weight_files
from lmlab.exchange.folder_tokenizer import backend_of, id_of, tokenizer_of
from lmlab.exchange.load_network import load_network, require_transformers
from lmlab.learn.record import Inputs, Model, Record, Result, Training
from lmlab.learn.run import Run
from lmlab.models.huggingface import HuggingFace, HuggingFaceConfig
from lmlab.text.tokenizers import FOREIGN, Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.interface import LanguageModel
    from lmlab.text.fingerprint import Fingerprint

SYMBOLS = {"bos": "BOS", "eos": "EOS"}


class HuggingFaceRun(Run):
    """A finished run whose weights, config and tokenizer are those of a Hugging Face folder. Nothing is written there."""

    described: Folder

    @classmethod
    def of(cls, folder: Path) -> HuggingFaceRun:
        """Open a folder.

        Raises:
            Mistake: it cannot be opened; the message says why.
        """
        require_transformers()
        described = describe(folder, stored_tensors(weight_files(folder)))
        backend = backend_of(folder)
        begin_id, begins = None, ""
        for kind, word in SYMBOLS.items():
            symbol = described.symbol(kind)
            if begin_id is None and (begin_id := id_of(backend, symbol)) is not None:
                begins = f"{word}, {backend.id_to_token(begin_id) or begin_id}"
        context = described.positions + (begin_id is None)  # without a begin symbol nothing is read for the first token
        config = HuggingFaceConfig(
            architecture=described.architecture,
            begin_id=begin_id,
            begins=begins,
            context=context,
            stride=max(1, context // 2),
        )
        record = Record(
            task="next-token",
            inputs=Inputs(corpus={"name": "a text that is not known", "parts": {}}, tokenizer=FOREIGN),
            model=Model(name=HuggingFace.name, config=asdict(config)),
            training=Training(budget="", seed=0, device="cpu", precision="float32"),
            result=Result(status="finished"),
        )
        run = cls(folder, record)
        run.described = described
        return run

    @cached_property
    def saved(self) -> HuggingFace:
        """The model, with weights in float32."""
        return HuggingFace(HuggingFaceConfig(**self.record.model.config), load_network(self.described))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the folder, with an id for every token that the model predicts."""
        return tokenizer_of(self.folder, self.saved.vocab_size)

    def load_again(self, device: str = "auto") -> LanguageModel:
        """Return a new copy of the model from disk."""
        again = type(self)(self.folder, self.record)
        again.described = self.described
        return again.load(device)

    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights by the names of the library."""
        return self.saved.tensors()

    @property
    def model_hash(self) -> None:
        """None: no hash is stored, so it is computed."""
        return None

    @property
    def learned_from(self) -> list[Fingerprint]:
        """Return the fingerprint of an unknown text."""
        from lmlab.text.fingerprint import Fingerprint

        return [Fingerprint.unknown()]

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """Return no learning curve."""
        return []
