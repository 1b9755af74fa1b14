"""Reading a config.json of Hugging Face transformers, or one like it.

A field is counted, or known to change no count, or refused by its name: no field is passed over in silence.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, nearest
from lmlab.costs.family import SLIDING, Family
from lmlab.costs.published_architectures import FAMILIES

KIND, INNER = "model_type", "text_config"
MOST = 10**12  # of one size
ALIKE = 0.8  # of a misspelled field and the one that was meant, by difflib
# Fields without weights, as patterns. A field that the family counts is never looked up here.
WITHOUT_WEIGHT = re.compile(
    "|".join(
        (
            r"_.*|architectures|auto_map|name_or_path|tokenizer_.*|transformers_version|verbose|.*token_id|unk_token",
            # training and generation
            r".*dropout.*|.*_pdrop|layerdrop|init_.*|initializer_.*|router_.*|.*aux_loss.*|seq_aux|output_.*|return_dict.*",
            r"max_length|min_length|do_sample|temperature|top_[kp]|num_beams|use_cache|cache_implementation|prefix",
            r"id2label|label2id|num_labels|classifier_.*|summary_.*|problem_type|finetuning_task|task_specific_params",
            r"predict_special_tokens|n_special|sparse_pred.*|pruned_heads|gradient_checkpointing|prefix_lm",
            # precision and kernels
            r"dtype|torch_dtype|use_bfloat16|torchscript|quantization_config|pretraining_tp|ep_size|slow_but_exact",
            r".*_fusion|skip_bias_add.*|fused_.*|(use_)?flash_attn.*|deterministic_flash_attn|attn_impl",
            r"attention_softmax_in_fp32|scale_.*|reorder_and_upcast_attn|reference_compile|repad_logits_with_grad",
            r"inference_runner|validate_runner_input|pre_allocate_kv_cache|pad_key_length|max_batch_size",
            r"chunk_size_feed_forward|attn_uses_sequence_id",
            # activations, norms and the size of logits
            r"(hidden_|dense_)?act|.*act_fn|(hidden_)?activation|activation_function|is_gated_act|.*(_eps|epsilon)",
            r"norm_type|apply_residual_connection_post_layernorm|use_parallel_residual|clip_qkv|softmax_scale",
            r"logit_scale|.*softcapping|query_pre_attn_scalar|embedding_fraction|decoder_bias",
            # positions that are computed, windows, and lengths
            r"rope|rope_.*|.*_rope_theta|no_rope_.*|rotary.*|partial_rotary_factor|use_mrope|mrope_.*|alibi.*|offset_alibi|position_embedding_type",
            r"n_ctx|n_positions|seq_length|max_seq_len|(original_)?max_position_embeddings|relative_attention_max_distance",
            r"learned_pos_emb|sinusoidal_pos_embds|global_attn_every_n_layers|local_attention|.*sliding_window.*",
            r"max_window_layers|layer_types|use_bidirectional_attention",
            # how experts are chosen
            r"topk_.*|norm_topk_prob|n_group|routed_scaling_factor|scoring_func",
            # stated by another field too, or about parts that this family lacks
            r"is_decoder|is_encoder_decoder|tie_encoder_decoder|tie_word_embeddings|tie_weights_|qk_head_dim",
        )
    )
)
REFUSED = {
    "add_cross_attention": "attention to a second sequence is not counted for this kind",
    "vision_config": "the part that reads pictures is not counted",
    "audio_config": "the part that reads sound is not counted",
    "num_mem_blocks": "memory blocks are not counted",
}
REMARKS = {"num_nextn_predict_layers": "layers for multi-token prediction are not counted, as transformers has none"}


@dataclass(frozen=True, kw_only=True)
class ReadConfig:
    """A config file with what a reader of its count must know.

    kind: its model_type. ignored: fields that change no count. remarks: sentences on what the count leaves out.
    """

    kind: str
    config: Family
    ignored: tuple[str, ...]
    remarks: tuple[str, ...]


def read_config(path: Path, settings: Mapping[str, str]) -> ReadConfig:
    """Read a config file, and raise a Mistake in one line for whatever cannot be counted.

    Args:
        path: of the file.
        settings: fields that take another value, as text.
    """
    document = _document(path)
    kind = document[KIND]
    if not isinstance(kind, str) or kind not in FAMILIES:
        inner = document.get(INNER)
        more = f"; its {INNER} is of {inner.get(KIND)!r}: count that" if isinstance(inner, dict) else ""
        raise Mistake(
            f"{path}: {KIND} {kind!r} is not known; known are {', '.join(sorted(FAMILIES))}{more}",
            code="config-family-unknown",
        )
    family = FAMILIES[kind]
    fields, types_ = dataclasses.fields(family), typing.get_type_hints(family)
    hints = {field.name: types_[field.name] for field in fields}
    for name in settings:
        if name not in hints:
            raise Mistake(f"a {kind} config has no size {name!r}; {nearest(name, hints)}", code="config-size-unknown")
    values = _flat(document, family) | {name: _from_text(text) for name, text in settings.items()}
    ignored = _ignored(path, values, hints, family)
    missing = [f.name for f in fields if f.default is dataclasses.MISSING and f.name not in values]
    if missing:
        raise Mistake(
            f"{path} lacks {', '.join(missing)}; add them, or give them by {{settings}}",
            code="config-lacks-sizes",
            settings=None,
        )
    known = {name: _typed(name, values[name], hint) for name, hint in hints.items() if name in values}
    config = family(**known)
    _refuse_layers(path, config)
    remarks = tuple(f"{name}: {REMARKS[name]}" for name in values if name in REMARKS and values[name])
    usual = [f"{f.name} {f.default}" for f in fields if f.name not in values and type(f.default) is int]
    if usual:
        remarks = (*remarks, f"the file does not say, so these are the usual ones: {', '.join(usual)}")
    return ReadConfig(kind=kind, config=config, ignored=ignored, remarks=remarks)


def _document(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise Mistake(f"there is no file {path}", code="config-not-found")
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise Mistake(f"{path} is no JSON: it is not text in UTF-8", code="config-not-utf8") from None
    except (ValueError, RecursionError) as error:
        raise Mistake(
            f"{path} is no JSON: {str(error).partition(chr(10))[0]}; is it cut off?", code="config-not-json"
        ) from None
    if not isinstance(document, dict):
        raise Mistake(
            f"{path} holds no config: a config is an object with fields, such as {KIND} and vocab_size",
            code="config-no-object",
        )
    if KIND not in document:
        raise Mistake(
            f"{path} has no {KIND}; it should say one of {', '.join(sorted(FAMILIES))}", code="config-without-family"
        )
    return document


def _flat(document: Mapping[str, Any], family: type[Family]) -> dict[str, Any]:
    """Return the fields under the names of the family, with those of its nested object beside the others."""
    values = dict(document)
    inner = values.pop(family.nested, None) or {}
    if not isinstance(inner, dict):
        raise Mistake(f"config: {family.nested} is an object with fields; got {inner!r}", code="config-not-nested")
    values = {**inner, **values}
    for other, name in family.aliases.items():
        if other in values and (value := values.pop(other)) is not None:
            values.setdefault(name, value)
    return values


def _ignored(path: Path, values: Mapping[str, Any], counted: Iterable[str], family: type[Family]) -> tuple[str, ...]:
    """Return the fields that change no count, and raise a Mistake that names a field that might."""
    ignored = []
    for name, value in values.items():
        if name in family.only:
            if value is not None and value != family.only[name]:
                wanted = json.dumps(family.only[name])
                raise Mistake(
                    f"{path}: {name} is {value!r}, and such models are counted for {wanted} alone",
                    code="config-value-not-counted",
                )
        elif name in REFUSED:
            if value:
                raise Mistake(f"{path}: {name} is set, and {REFUSED[name]}", code="config-field-not-counted")
            ignored.append(name)
        elif name in counted or name == KIND or name in REMARKS:
            continue
        elif value is None or WITHOUT_WEIGHT.fullmatch(name):  # null switches nothing on
            ignored.append(name)
        else:
            close = difflib.get_close_matches(name, counted, n=1, cutoff=ALIKE)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise Mistake(
                f"{path}: the field {name!r} is not known and might change the count{meant};"
                " correct it, or take it out if it has no weights",
                code="config-field-unknown",
            )
    return tuple(sorted(ignored))


def _refuse_layers(path: Path, config: Family) -> None:
    """Raise a Mistake for kinds of layers that are not counted, or for another number of them than of layers."""
    kinds, layers = getattr(config, "layer_types", None), getattr(config, "num_hidden_layers", None)
    if kinds is None:
        return
    if other := sorted({str(kind) for kind in kinds} - {SLIDING, "full_attention"}):
        raise Mistake(
            f"{path}: layer_types has {other[0]!r}; counted are full_attention and {SLIDING}",
            code="config-layer-kind-unknown",
        )
    if len(kinds) != layers:
        raise Mistake(
            f"{path}: layer_types has {len(kinds)} entries for {layers} layers; it should have one for each",
            code="config-layer-kinds-number",
        )


def _from_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _typed(name: str, value: Any, hint: Any) -> Any:
    """Return the value of a field, and raise a Mistake where it has another type or no model is so large."""
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    if not any(type(value) is (typing.get_origin(kind) or kind) for kind in kinds):
        wanted = {int: "a whole number", bool: "true or false", str: "a word", type(None): "null", list: "a list"}
        told = " or ".join(wanted[typing.get_origin(kind) or kind] for kind in kinds)
        shown = repr(value)
        raise Mistake(
            f"config: {name} is {told}; got {shown if len(shown) < 80 else shown[:77] + '...'}",
            code="config-value-of-another-kind",
        )
    if type(value) is int and value > MOST:
        raise Mistake(
            f"config: {name} has {len(str(value))} digits, more than in any model; expected at most {MOST:,}",
            code="config-value-too-large",
        )
    return value
