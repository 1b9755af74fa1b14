"""A Hugging Face folder as a native run: GPT-2, LLaMA, Mistral, Qwen2 and Nemotron become a `gpt`, BERT a `bert`.

The begin symbol of ours is a copy of the row of their BOS token, or of EOS if there is no BOS. The tokenizer keeps that token
before every text in its template, so an export knows which it was. Before the run is written, log-probabilities are compared
with those of transformers.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend
from torch import Tensor

from lmlab.config import Mistake
from lmlab.exchange.begin_token import put_before
from lmlab.exchange.folder_config import Folder, describe
from lmlab.exchange.folder_files import stored_tensors, weight_files
from lmlab.exchange.folder_tokenizer import backend_of, id_of
from lmlab.exchange.import_bert import bert_as_native
from lmlab.exchange.imported_model import ImportedModel
from lmlab.exchange.load_network import load_network
from lmlab.exchange.read_gpt import READERS, gpt_of
from lmlab.models.gpt import GPT
from lmlab.models.huggingface import quiet
from lmlab.text.foreign_coding import ForeignCoding
from lmlab.text.tokenizers import FOREIGN, Tokenizer

TOLERANCE = 1e-4  # nats, relative for scores above ten
CHECKED_TOKENS, ROWS = 256, 3


def folder_as_native(path: Path) -> ImportedModel:
    """Read a folder.

    Raises:
        Mistake: the folder cannot be opened, or its architecture has no counterpart here.
    """
    described = describe(path, stored_tensors(weight_files(path)))
    backend = backend_of(path)
    if described.model_type == "bert":
        return bert_as_native(described, backend)
    if described.model_type not in READERS:
        raise Mistake(
            f"{path} is of the architecture {described.model_type}, which has no counterpart here; these have: "
            f"{', '.join([*READERS, 'bert'])}. Measure it as it is: lmlab eval {path} TEXT",
            code="import-without-counterpart",
        )
    begin_id = _begin_id(described, backend)
    network = load_network(described)
    config, tensors = gpt_of(described, network, begin_id)
    vocab_size = int(network.get_output_embeddings().weight.shape[0])
    tokenizer = _tokenizer(described, backend, begin_id, vocab_size)
    model = GPT.from_tensors(config, vocab_size, tensors)
    _compare(described, network, model, begin_id)
    message = f"{described.model_type} of {described.path.name}: {sum(t.numel() for t in tensors.values()):,} weights"
    return ImportedModel(model, tokenizer, dataclasses.asdict(config), message)


def _begin_id(described: Folder, backend: Backend) -> int:
    for kind in ("bos", "eos"):
        if (found := id_of(backend, described.symbol(kind))) is not None:
            return found
    raise Mistake(
        f"{described.path} names neither a BOS nor an EOS token, and a gpt begins every text with one; measure it as it is:"
        f" lmlab eval {described.path} TEXT",
        code="import-without-begin",
    )


def _tokenizer(described: Folder, backend: Backend, begin_id: int, vocab_size: int) -> Tokenizer:
    """The folder's tokenizer with a token for every id, and with the begin symbol before every text."""
    backend = Backend.from_str(backend.to_str())
    size = backend.get_vocab_size()
    if size > vocab_size:
        raise Mistake(
            f"{described.path}: the tokenizer has {size:,} tokens, and the model predicts {vocab_size:,}",
            code="import-tokenizer-larger",
        )
    backend.add_special_tokens([AddedToken(f"<|unused {id}|>", special=True) for id in range(size, vocab_size)])
    begin = backend.id_to_token(begin_id)
    if backend.get_vocab_size() != vocab_size or begin is None:
        raise Mistake(
            f"{described.path}: the tokenizer has gaps between its ids, so not every id can have a token",
            code="import-tokenizer-gaps",
        )
    backend.add_special_tokens([begin])
    put_before(backend, begin, begin_id)
    return Tokenizer(FOREIGN, backend, ForeignCoding(backend))


def _compare(described: Folder, network: Any, model: GPT, begin_id: int) -> None:
    """Raise a RuntimeError if the native model does not give the log-probabilities of the network."""
    length = min(model.context, CHECKED_TOKENS)
    tokens_BT: Tensor = torch.randint(
        model.vocab_size, (ROWS, length), generator=torch.Generator().manual_seed(0), dtype=torch.long
    )
    inputs_BT = torch.nn.functional.pad(tokens_BT[:, :-1], (1, 0), value=begin_id)
    with torch.no_grad(), quiet():
        logp_BTV = network(inputs_BT).logits.float().log_softmax(-1)
    theirs_BT = -logp_BTV.gather(2, tokens_BT[..., None])[..., 0]
    ours_BT = model.eval().score(tokens_BT)
    worst = float(((ours_BT - theirs_BT).abs() / (theirs_BT / 10).clamp(min=1)).max())
    if not worst <= TOLERANCE:
        raise RuntimeError(f"{described.path}: the imported model differs by {worst:.2g} nats from transformers")
