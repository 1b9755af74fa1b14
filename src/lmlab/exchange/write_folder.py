"""Writing a run as a Hugging Face folder that transformers loads without code of ours, checked by loading it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from lmlab.config import Mistake, an
from lmlab.disk.files import made_folder
from lmlab.exchange.begin_token import begin_of, put_before
from lmlab.exchange.folder_files import CONFIG, GENERATION, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS
from lmlab.exchange.load_network import require_transformers
from lmlab.exchange.model_card import model_card
from lmlab.exchange.write_gpt import Written, as_their_network
from lmlab.models.gpt import GPT
from lmlab.models.huggingface import quiet

if TYPE_CHECKING:
    from lmlab.learn.run import Run
    from lmlab.text.tokenizers import Tokenizer

BEGIN = "<|begin_of_text|>"
TOLERANCE = 1e-4  # nats by which a log-probability may differ, relative for scores above ten
CHECKED_TOKENS = 512
ROWS = 4
REASONS = {
    "mix": "a mix of several models is no one network of theirs",
    "huggingface": "it is such a folder already; copy it",
}


def write_folder(run: Run, out: Path) -> tuple[Path, str]:
    """Write a run as a folder, load it with transformers, and compare the scores; return the folder and its architecture.

    Raises:
        Mistake: the model has no counterpart, or the folder would overwrite something.
    """
    require_transformers()
    model, tokenizer = run.model, run.tokenizer
    if not isinstance(model, GPT):
        why = REASONS.get(model.name, f"transformers has no network that computes what {an(model.name)} does")
        raise Mistake(f"{run.folder} cannot be a Hugging Face folder: {why}", code="export-without-counterpart")
    if tokenizer.spec.startswith("words"):
        raise Mistake(
            f"{run.folder} cannot be a Hugging Face folder: its words tokenizer keeps the spelling of unknown words beside the"
            " tokens, which no tokenizer.json can; train with bpe, char or byte tokens",
            code="export-of-words",
        )
    _refuse_if_taken(out)
    written = as_their_network(model, begin_of(tokenizer.backend))
    made_folder(out.parent)
    beside = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        save_file(dict(written.tensors), beside / WEIGHTS, metadata={"format": "pt"})
        _write_json(beside / CONFIG, dict(written.config))
        _write_json(beside / GENERATION, {"bos_token_id": written.begin_id})
        _write_tokenizer(tokenizer, written.begin_id, model.context, beside)
        check_folder(beside, model, tokenizer, written)
        (beside / "README.md").write_text(model_card(run, written.config["architectures"][0]), encoding="utf-8")
        beside.chmod(0o755)
        if out.exists():
            out.rmdir()
        os.replace(beside, out)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return out, str(written.config["architectures"][0])


def _refuse_if_taken(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Mistake(f"{out} exists and is not empty; name a new folder", code="export-folder-taken")


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _write_tokenizer(tokenizer: Tokenizer, begin_id: int, context: int, folder: Path) -> None:
    """Write the tokenizer with a begin symbol that it puts before every text and never reads inside one."""
    backend = Backend.from_str(tokenizer.backend.to_str())
    begin = backend.id_to_token(begin_id)
    if begin is None:
        begin = BEGIN
        while begin in backend.get_vocab():
            begin += "_"
        backend.add_special_tokens([AddedToken(begin, special=True, normalized=False)])
        if (found := backend.token_to_id(begin)) != begin_id:
            raise Mistake(
                f"the tokenizer would call the begin symbol {found}, and the model {begin_id}; it has gaps between its ids",
                code="export-tokenizer-gaps",
            )
    put_before(backend, begin, begin_id)
    (folder / TOKENIZER).write_text(backend.to_str(pretty=True), encoding="utf-8")
    _write_json(
        folder / TOKENIZER_CONFIG,
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": begin,
            "split_special_tokens": True,
            "clean_up_tokenization_spaces": False,
            "model_max_length": context,
        },
    )


def check_folder(folder: Path, model: GPT, tokenizer: Tokenizer, written: Written) -> None:
    """Load a folder as any user would, and compare tokens and log-probabilities with the model.

    Raises:
        RuntimeError: they differ, so the folder must not be kept.
    """
    with quiet():
        from transformers import AutoModelForCausalLM, AutoTokenizer

        theirs: Any = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).float().eval()
        their_tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    begin = their_tokenizer.bos_token
    for text in ("", "The cat sat.\n", f"a {begin} b", "Zürich — 猫\t\r\n  x", "0123456789 don't"):
        ids = their_tokenizer(text)["input_ids"]
        if ids != [written.begin_id, *tokenizer.encode(text).ids.tolist()]:
            raise RuntimeError(f"the written tokenizer has other tokens for {text!r}")
    length = min(model.context, CHECKED_TOKENS)
    generator = np.random.Generator(np.random.PCG64(0))
    tokens_BT = torch.from_numpy(generator.integers(model.vocab_size, size=(ROWS, length)))
    inputs_BT = torch.nn.functional.pad(tokens_BT[:, :-1], (1, 0), value=written.begin_id)
    with torch.no_grad(), quiet():
        ours_BT = model.score(tokens_BT)
        logp_BTV = theirs(inputs_BT).logits.log_softmax(-1)
    theirs_BT = -logp_BTV.gather(2, tokens_BT[..., None])[..., 0]
    worst = float(((ours_BT - theirs_BT).abs() / (ours_BT / 10).clamp(min=1)).max())
    begin_p = float(logp_BTV[..., written.begin_id].max().exp()) if written.begin_id >= model.vocab_size else 0.0
    if not (worst <= TOLERANCE and begin_p <= 1e-30):
        raise RuntimeError(f"the written model differs by {worst:.2g} nats; begin symbol {begin_p:.2g}")
