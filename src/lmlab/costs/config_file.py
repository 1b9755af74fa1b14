"""Reading a config.json of Hugging Face transformers, or one like it; no field is passed over in silence."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, nearest
from lmlab.costs.published_architectures import FAMILIES, Family

KIND = "model_type"
# Fields that such files have and that change no count: dropout, starting values, special tokens, what is returned, …
WITHOUT_WEIGHT = {
    "activation_function", "architectures", "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop",
    "bos_token_id", "chunk_size_feed_forward", "classifier_dropout", "decoder_start_token_id", "dense_act_fn",
    "do_sample", "dropout_rate", "dtype", "embd_pdrop", "eos_token_id", "finetuning_task", "gradient_checkpointing",
    "hidden_act", "hidden_dropout_prob", "id2label", "initializer_factor", "initializer_range", "is_decoder",
    "is_encoder_decoder", "is_gated_act", "label2id", "layer_norm_eps", "layer_norm_epsilon", "layer_types",
    "max_length", "max_window_layers", "model_type", "n_ctx", "n_special", "output_attentions",
    "output_hidden_states", "output_past", "pad_token_id", "position_embedding_type", "predict_special_tokens",
    "prefix", "pretraining_tp", "problem_type", "relative_attention_max_distance", "reorder_and_upcast_attn",
    "resid_pdrop", "return_dict", "rms_norm_eps", "rope_parameters", "rope_scaling", "rope_theta",
    "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "scale_decoder_outputs", "sliding_window",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "task_specific_params", "tie_word_embeddings", "torch_dtype", "transformers_version", "use_cache",
    "use_sliding_window",
}  # fmt: skip
REFUSED = {"add_cross_attention": "attention to a second sequence is not counted for this kind"}


def read_config(path: Path, settings: Mapping[str, str]) -> tuple[str, Family]:
    """The kind and the config of a file. settings: fields that take another value, as text."""
    if not path.is_file():
        raise Mistake(f"there is no file {path}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise Mistake(f"{path} is no JSON: {_first_line(error)}; is it cut off?") from None
    if not isinstance(document, dict):
        raise Mistake(f"{path} holds no config: a config is an object with fields, such as {KIND} and vocab_size")
    if KIND not in document:
        raise Mistake(f"{path} has no {KIND}; it should say one of {', '.join(FAMILIES)}")
    kind = str(document[KIND])
    if kind not in FAMILIES:
        raise Mistake(f"{path}: {KIND} {kind!r} is not one that is counted here; {nearest(kind, FAMILIES)}")
    family = FAMILIES[kind]
    fields, types_ = dataclasses.fields(family), typing.get_type_hints(family)
    hints = {field.name: types_[field.name] for field in fields}
    for name in settings:
        if name not in hints:
            raise Mistake(f"a {kind} config has no size {name!r}; {nearest(name, hints)}")
    values = {**document, **{name: _from_text(text) for name, text in settings.items()}}
    _refuse_unknown(path, values, hints)
    missing = [f.name for f in fields if f.default is dataclasses.MISSING and f.name not in values]
    if missing:
        raise Mistake(f"{path} lacks {', '.join(missing)}")
    return kind, family(**{name: _typed(name, values[name], hint) for name, hint in hints.items() if name in values})


def _refuse_unknown(path: Path, values: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name in REFUSED and value:
            raise Mistake(f"{path}: {name} is set, and {REFUSED[name]}")
        if name not in known and name not in WITHOUT_WEIGHT and name not in REFUSED and not name.startswith("_"):
            raise Mistake(
                f"{path} has a field {name!r} that is not known, and might change the count;"
                f" {nearest(name, known)} (take it out if it has no weights)"
            )


def _from_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _typed(name: str, value: Any, hint: Any) -> Any:
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    fits = any(type(value) is kind for kind in kinds)
    if not fits:
        wanted = {int: "a whole number", bool: "true or false", str: "a word", type(None): "null"}
        raise Mistake(f"config: {name} is {' or '.join(wanted[kind] for kind in kinds)}; got {value!r}")
    return value


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
