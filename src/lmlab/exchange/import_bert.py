"""The folder of a BERT with its masked-language-model head as a native `bert`.

Our begin, end and mask stand beside the vocabulary: they are copies of the rows of [CLS], [SEP] and [MASK].
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

from lmlab.config import Mistake
from lmlab.exchange.folder_config import Folder
from lmlab.exchange.imported_model import ImportedModel
from lmlab.exchange.load_network import (
    cannot_open,
    in_float32,
    read_tensors,
    refuse_if_too_large,
    require_transformers,
    unloaded,
)
from lmlab.models.bert import BERT, BERTConfig
from lmlab.models.huggingface import quiet
from lmlab.text.foreign_coding import ForeignCoding
from lmlab.text.tokenizers import FOREIGN, Tokenizer

SYMBOLS = ("[CLS]", "[SEP]", "[MASK]")
TASK = "masked-token"
TOLERANCE = 1e-4  # nats
KEYS = {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "position_embedding_type": "absolute", "is_decoder": False}


def bert_as_native(folder: Folder, backend: Backend) -> ImportedModel:
    """Read the folder of a BERT.

    Raises:
        Mistake: the folder has no head for masked tokens, or a key has no counterpart.
    """
    network = _network(folder)
    c = network.config
    for key, wanted in KEYS.items():
        if (found := getattr(c, key, wanted)) != wanted:
            raise Mistake(
                f"{folder.path}: {key} {found} has no counterpart here, where it is {wanted}",
                code="import-bert-key-without-counterpart",
            )
    ids = [id for symbol in SYMBOLS if (id := backend.token_to_id(symbol)) is not None]
    size = int(c.vocab_size)
    if len(ids) < len(SYMBOLS) or backend.get_vocab_size() != size:
        raise Mistake(
            f"{folder.path}: its tokenizer lacks {' or '.join(SYMBOLS)}, or has {backend.get_vocab_size():,} tokens where the"
            f" model has {size:,}",
            code="import-bert-tokenizer",
        )
    config = BERTConfig(
        layers=c.num_hidden_layers,
        width=c.hidden_size,
        heads=c.num_attention_heads,
        hidden=c.intermediate_size,
        context=c.max_position_embeddings,
        segments=c.type_vocab_size,
        symbols=True,
        dropout=0.0,
        pooler=False,
        transform=True,
    )
    model = BERT.from_tensors(config, size, _tensors(network, ids))
    _compare(folder, network, model, ids)
    tokenizer = Tokenizer(FOREIGN, backend, ForeignCoding(backend))
    message = f"bert of {folder.path.name}: {sum(p.numel() for p in model.parameters()):,} weights"
    return ImportedModel(model, tokenizer, dataclasses.asdict(config), message, task=TASK)


def _network(folder: Folder) -> Any:
    """The BertForMaskedLM of the folder."""
    require_transformers()
    with quiet():
        from transformers import BertConfig, BertForMaskedLM
    try:
        with quiet():
            config = BertConfig.from_dict(folder.architecture)
            with torch.device("meta"):
                wanted = sum(p.numel() for p in BertForMaskedLM(config).parameters())
        if wanted > folder.numbers:
            raise ValueError(f"config.json describes {wanted:,} parameters, and the files hold {folder.numbers:,}")
        refuse_if_too_large(folder, wanted, config)
        with quiet():
            load: Any = BertForMaskedLM.from_pretrained
            network, found = load(
                None,
                config=config,
                state_dict=read_tensors(folder),
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **in_float32(),
            )
    except Mistake:
        raise
    except Exception as error:  # whatever the library raises of a folder that is not what it seems
        raise cannot_open(folder, error) from None
    if lost := unloaded(found):
        raise Mistake(
            f"{folder.path}: the weights lack {lost[0]}; a BERT is imported with its head for masked tokens",
            code="import-bert-weights-of-other-config",
        )
    if not all(bool(torch.isfinite(p.detach()).all()) for p in network.parameters()):
        raise Mistake(
            f"{folder.path}: the weights are not all finite numbers; the folder is damaged",
            code="import-bert-weights-not-finite",
        )
    return network.float().eval()


def _tensors(network: Any, ids: list[int]) -> dict[str, Tensor]:
    """The weights by our names."""
    w = {name: value.detach() for name, value in network.state_dict().items()}
    base, head = "bert.embeddings.", "cls.predictions."
    table = w[f"{base}word_embeddings.weight"]
    found = {
        "encoder.embedding": torch.cat([table, table[ids]]),
        "encoder.position": w[f"{base}position_embeddings.weight"],
        "encoder.segment": w[f"{base}token_type_embeddings.weight"],
        "bias": w[f"{head}bias"],
    }
    maps = {
        f"{base}LayerNorm": "encoder.norm",
        f"{head}transform.dense": "transform",
        f"{head}transform.LayerNorm": "norm",
    }
    for i in range(network.config.num_hidden_layers):
        at, block = f"bert.encoder.layer.{i}.", f"encoder.blocks.{i}."
        maps |= {
            f"{at}attention.output.dense": f"{block}out",
            f"{at}attention.output.LayerNorm": f"{block}norm_attention",
            f"{at}intermediate.dense": f"{block}up",
            f"{at}output.dense": f"{block}down",
            f"{at}output.LayerNorm": f"{block}norm_mlp",
        }
        for kind in ("weight", "bias"):
            parts = [w[f"{at}attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
            found[f"{block}qkv.{kind}"] = torch.cat(parts)
    for theirs, ours in maps.items():
        found |= {f"{ours}.{kind}": w[f"{theirs}.{kind}"] for kind in ("weight", "bias")}
    return {name: value.float().clone().contiguous() for name, value in found.items()}


def _compare(folder: Folder, network: Any, model: BERT, ids: list[int]) -> None:
    """Raise a RuntimeError if the native model guesses other tokens than the network."""
    size, (begin, end, mask) = int(network.config.vocab_size), ids
    length = min(16, model.encoder.context - 2)
    inner_BT = torch.randint(size, (2, length), generator=torch.Generator().manual_seed(0))
    theirs_BT = torch.nn.functional.pad(torch.nn.functional.pad(inner_BT, (1, 0), value=begin), (0, 1), value=end)
    ours_BT = theirs_BT.clone()
    ours_BT[:, 0], ours_BT[:, -1] = model.symbols.begin, model.symbols.end
    theirs_BT[:, 2], ours_BT[:, 2] = mask, model.symbols.mask
    places_N = torch.tensor([2, length + 2 + 2])
    with torch.no_grad(), quiet():
        wanted_NV = network(theirs_BT).logits.log_softmax(-1)[:, 2]
    worst = float((model.guesses(ours_BT, places_N) - wanted_NV).abs().max())
    if not worst <= TOLERANCE:
        raise RuntimeError(f"{folder.path}: the imported model differs by {worst:.2g} nats from transformers")
