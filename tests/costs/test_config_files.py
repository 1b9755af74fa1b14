"""Config files of Hugging Face: exact counts from the file alone, held to transformers; one line for a bad file."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published_sizes import DENSE, MIXTURES, PUBLISHED
from torch import nn

from command_line import Lmlab, done, refused
from lmlab.costs.config_file import read_config
from lmlab.costs.counting import count_file
from lmlab.costs.dispatcher import counted, counted_as_run
from lmlab.costs.published_architectures import FAMILIES
from lmlab.formulas import Shape, weights, work
from thinning import examples, thinned

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # by transformers
SIZES = {
    "gpt2": ["n_embd", "n_layer", "n_head", "n_inner", "n_positions"],
    "bert": [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
    ],
    "t5": [
        "d_model",
        "d_kv",
        "d_ff",
        "num_layers",
        "num_decoder_layers",
        "num_heads",
        "relative_attention_num_buckets",
    ],
    **{
        kind: ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"]
        for kind in ("llama", "mistral", "qwen2")
    },
}
WIDTH = {"gpt2": ("n_embd", "n_head"), "t5": ("d_model", "num_heads")}
brief = settings(
    max_examples=examples(25),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def written(folder: Path, document: Any) -> Path:
    path = folder / "config.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_have_the_published_number_of_parameters(name: str, tmp_path: Path) -> None:
    model = PUBLISHED[name]
    found = count_file(written(tmp_path, model.document), length=8)
    assert found.parameters == model.total
    assert found.agrees
    assert (found.active is None) == (model.active is None)


@pytest.mark.parametrize("name", MIXTURES)
def test_a_token_uses_as_many_parameters_as_were_published(name: str, tmp_path: Path) -> None:
    model = MIXTURES[name]
    found = count_file(written(tmp_path, model.document), length=8)
    assert found.active is not None
    assert model.active is not None
    embedding = next(part.weights for part in found.parts if part.name == "embedding")
    counted_there = found.active - (0 if model.looked_up else embedding)
    assert counted_there == pytest.approx(model.active * 1e9, rel=0.025), "published in two or three digits"


def test_a_head_of_its_own_is_counted_where_the_file_says_so(tmp_path: Path) -> None:
    flan = {"model_type": "t5", "d_model": 768, "num_layers": 12, "num_heads": 12, "d_ff": 2048}
    flan |= {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    assert count_file(written(tmp_path, flan)).parameters == 247_577_856  # Flan-T5 base


def test_a_decoder_of_torch_comes_out_part_by_part(lmlab: Lmlab) -> None:
    path = Path(__file__).parents[2] / "examples" / "configs" / "torch-decoder.json"
    for layers, parameters in ((2, 9_721_596), (4, 14_980_860)):
        code, out, _ = lmlab("count", path, "--set", f"layers={layers}", "--json")
        found = json.loads(out)
        assert code == 0
        assert found["parameters"] == parameters == sum(p["times"] * p["weights"] for p in found["parts"])


def test_the_counted_decoder_is_that_of_torch() -> None:
    sizes: dict[str, Any] = {"layers": 2, "width": 12, "hidden": 7, "vocab_size": 11, "positions": 5}
    config = FAMILIES["torch-decoder"](**sizes)
    blocks = [nn.TransformerDecoderLayer(12, 3, 7, batch_first=True, dropout=0.0) for _ in range(2)]
    embedding, places, norm, output = nn.Embedding(11, 12), nn.Embedding(5, 12), nn.LayerNorm(12), nn.Linear(12, 11)
    there = [*blocks, embedding, places, norm, output]
    assert weights(config.parts(config, 11, Shape())) == sum(p.numel() for m in there for p in m.parameters())

    def loss() -> torch.Tensor:
        x, memory = embedding(torch.zeros(2, 4, dtype=torch.long)), torch.zeros(2, 3, 12, requires_grad=True)
        for block in blocks:
            x = block(x, memory)
        return output(norm(x)).sum()

    assert counted(loss) == work(config.parts(config, 11, Shape(2, 4, source=3)))


@st.composite
def small(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """A small config of this kind, its heads dividing its width."""
    sizes = {name: draw(st.integers(1, 3)) for name in SIZES[kind]}
    width, heads = WIDTH.get(kind, ("hidden_size", "num_attention_heads"))
    sizes[width] = 2 * sizes[heads] * draw(st.integers(1, 3))
    sizes["vocab_size"] = draw(st.integers(8, 20))
    for positions in {"n_positions", "max_position_embeddings"} & set(sizes):
        sizes[positions] += 8
    if "num_key_value_heads" in sizes:
        sizes["num_key_value_heads"] = draw(st.sampled_from([n for n in (1, 2, 3) if sizes[heads] % n == 0]))
        sizes["tie_word_embeddings"] = draw(st.booleans())
    if kind == "llama":
        sizes |= {name: draw(st.booleans()) for name in ("attention_bias", "mlp_bias")}
        sizes["head_dim"] = draw(st.sampled_from([2, 4, 6]))
    if kind == "t5":
        sizes["relative_attention_num_buckets"] = 32
        sizes["feed_forward_proj"] = draw(st.sampled_from(["relu", "gated-gelu"]))
    return sizes


def of_transformers(kind: str, document: dict[str, Any]) -> nn.Module:
    """The real thing, without dropout, its products made one by one."""
    import transformers

    plainly = {"attn_implementation": "eager"}
    if kind in SMALL and any("expert" in name for name in document):
        plainly["experts_implementation"] = "eager"
    config = transformers.AutoConfig.for_model(kind, **plainly, **document)
    cls = getattr(transformers, FAMILIES[kind].instance)
    model: nn.Module = cls(config)
    return model.eval()


def loss_of(model: nn.Module, kind: str, rows: int, length: int, source: int) -> torch.Tensor:
    ids = torch.zeros(rows, length, dtype=torch.long)
    if kind == "t5":
        return model(input_ids=torch.zeros(rows, source, dtype=torch.long), decoder_input_ids=ids).logits.sum()
    found = model(input_ids=ids)
    if "logits" in found:
        return found.logits.sum()
    pooled = found.get("pooler_output")
    return found.last_hidden_state.sum() + (0 if pooled is None else pooled.sum())


def turning(model: nn.Module, length: int) -> int:
    """Operations by which some versions of transformers find the angles of rotary positions; they need no product, and
    later versions and ours make none."""
    rotary = getattr(getattr(model, "model", None), "rotary_emb", None)
    if rotary is None or "layer_type" in inspect.signature(rotary.forward).parameters:  # a later version
        return 0
    places = torch.arange(length)[None]
    return counted_as_run(lambda: rotary(torch.zeros(1), places)[0].sum(), backward=False).forward


@pytest.mark.parametrize("kind", thinned(SIZES, ["gpt2", "llama"]))
@brief
@given(data=st.data())
def test_weights_and_operations_are_those_of_transformers(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    document = data.draw(small(kind))
    config = read_config(written(tmp_path, {"model_type": kind, **document}), {}).config
    model = of_transformers(kind, document)
    rows, length, source = (data.draw(st.integers(1, 4)) for _ in range(3))
    shape = Shape(rows, length, source=source if kind == "t5" else 0)
    parts = config.parts(config, config.vocab_size, shape)
    assert weights(parts) == sum(p.numel() for p in model.parameters())
    ran, said = counted(lambda: loss_of(model, kind, rows, length, source)), work(parts)
    assert (ran.forward - turning(model, length), ran.backward) == (said.forward, said.backward)


FAMILIES_OF_TRANSFORMERS = [kind for kind in FAMILIES if kind != "torch-decoder"]
ALWAYS = [
    "GPT-2",
    "OPT-350M",
    "Falcon 40B",
    "Llama-3 8B",
    "Gemma 2 9B",
    "DeepSeek-V2-Lite",
    "Qwen1.5-MoE-A2.7B",
    "T5 base",
]


def known_to_transformers(kind: str) -> None:
    """Skip where this version of transformers lacks the class."""
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, FAMILIES[kind].instance):
        pytest.skip(f"this transformers has no {FAMILIES[kind].instance}")


@pytest.mark.parametrize("name", thinned(PUBLISHED, ALWAYS))
def test_published_models_have_the_weights_of_transformers(name: str) -> None:
    known_to_transformers(PUBLISHED[name].kind)
    with torch.device("meta"):
        model = of_transformers(PUBLISHED[name].kind, PUBLISHED[name].sizes)
    assert sum(p.numel() for p in model.parameters()) == PUBLISHED[name].total


PLAIN = {"vocab_size": 17, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6}
GROUPED = PLAIN | {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 5}
LATENT = {
    **GROUPED,
    "num_key_value_heads": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 5,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 6,
    "q_lora_rank": 5,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 2,
    "v_head_dim": 3,
    "n_group": 1,
    "topk_group": 1,
}
GPT = {"vocab_size": 17, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 32}
SMALL: dict[str, dict[str, Any]] = {
    "gpt_bigcode": GPT,
    "gpt_neox": PLAIN,
    "opt": {k: v for k, v in PLAIN.items() if k != "intermediate_size"}
    | {"ffn_dim": 6, "word_embed_proj_dim": 4, "do_layer_norm_before": False},
    "bloom": {"vocab_size": 17, "hidden_size": 8, "n_layer": 2, "n_head": 2},
    "falcon": {"vocab_size": 17, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_kv_heads": 2}
    | {"new_decoder_architecture": True},
    "mpt": {"vocab_size": 17, "d_model": 8, "n_layers": 2, "n_heads": 2},
    "qwen3": GROUPED | {"head_dim": 6},
    "smollm3": GROUPED,
    "olmo": GROUPED,
    "olmo2": GROUPED,
    "gemma": GROUPED | {"head_dim": 6},
    "gemma2": GROUPED | {"head_dim": 6},
    "gemma3_text": GROUPED | {"head_dim": 6},
    "phi": GROUPED,
    "phi3": GROUPED,
    "stablelm": GROUPED | {"hidden_size": 32, "use_qkv_bias": True},
    "mixtral": GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "olmoe": GROUPED | {"num_experts": 4, "num_experts_per_tok": 2},
    "qwen2_moe": GROUPED | EXPERTS | {"shared_expert_intermediate_size": 7, "mlp_only_layers": [0]},
    "qwen3_moe": GROUPED | EXPERTS | {"head_dim": 6},
    "deepseek_v2": LATENT | {"q_lora_rank": None},
    "deepseek_v3": LATENT,
    "roberta": PLAIN | {"max_position_embeddings": 32},
    "xlm-roberta": PLAIN | {"max_position_embeddings": 32},
    "distilbert": {"vocab_size": 17, "dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 6},
    "modernbert": PLAIN | {"pad_token_id": 0},
}


def test_every_family_is_held_to_a_real_instance() -> None:
    assert SMALL.keys() | SIZES.keys() | {"torch-decoder"} == FAMILIES.keys()
    assert {model.kind for model in PUBLISHED.values()} | {"torch-decoder"} == FAMILIES.keys()
    assert len(DENSE) + len(MIXTURES) == len(PUBLISHED) >= 25


@pytest.mark.parametrize("kind", SMALL)
def test_a_small_model_has_the_weights_and_operations_of_transformers(kind: str, tmp_path: Path) -> None:
    known_to_transformers(kind)
    config = read_config(written(tmp_path, {"model_type": kind, **SMALL[kind]}), {}).config
    model = of_transformers(kind, SMALL[kind])
    parts = config.parts(config, config.vocab_size, Shape(2, 5))
    assert weights(parts) == sum(p.numel() for p in model.parameters())
    ran, said = counted(lambda: loss_of(model, kind, 2, 5, 0)), work(parts)
    assert (ran.forward - turning(model, 5), ran.backward) == (said.forward, said.backward)


@pytest.mark.parametrize("kind", ["mixtral", "olmoe", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3"])
def test_a_token_uses_the_weights_that_it_is_said_to_use(kind: str, tmp_path: Path) -> None:
    known_to_transformers(kind)
    model = of_transformers(kind, SMALL[kind])
    model(input_ids=torch.ones(1, 1, dtype=torch.long)).logits.sum().backward()  # the embedding of token 0 may be zero
    experts = [p for name, p in model.named_parameters() if ".experts." in name and p.ndim == 3]
    if not experts:
        pytest.skip("this transformers keeps experts in another way")
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in experts]
    left_out = sum(int(expert.numel()) for grad in grads for expert in grad if not expert.any())
    found = count_file(written(tmp_path, {"model_type": kind, **SMALL[kind]}), length=1)
    assert found.active == found.parameters - left_out


@pytest.mark.parametrize("kind", FAMILIES_OF_TRANSFORMERS)
def test_whatever_transformers_writes_can_be_read(kind: str, tmp_path: Path) -> None:
    known_to_transformers(kind)
    import transformers

    document = transformers.AutoConfig.for_model(kind).to_dict()
    if kind == "deepseek_v2":
        document["num_experts_per_tok"] = 8  # which transformers leaves open
    whole, short = (count_file(written(tmp_path, d), length=8) for d in (document, {"model_type": kind}))
    assert whole.parameters == short.parameters, "what a file leaves open has the defaults of transformers"


def test_a_config_file_needs_no_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)  # whoever imports it now fails
    assert count_file(written(tmp_path, {"model_type": "gpt2"}), length=16).parameters == 124_439_808


CACHES = {
    "all heads share": ("gpt_bigcode", GPT, 0),
    "grouped": ("llama", GROUPED, 0),
    "a window in every layer": ("mistral", GROUPED | {"sliding_window": 4}, 2),
    "a window in every other layer": ("gemma2", GROUPED | {"sliding_window": 4, "num_hidden_layers": 4}, 2),
    "a window in most layers": ("gemma3_text", GROUPED | {"sliding_window": 4, "num_hidden_layers": 7}, 6),
    "a window in the last layers": (
        "qwen2",
        GROUPED | {"sliding_window": 4, "use_sliding_window": True, "max_window_layers": 1},
        1,
    ),
    "latent": ("deepseek_v3", LATENT, 0),
}


@pytest.mark.parametrize("name", CACHES)
def test_a_cache_is_as_large_as_that_of_transformers(name: str, tmp_path: Path) -> None:
    """Between two tokens transformers keeps one token less of a window: the one that leaves it next."""
    kind, sizes, sliding = CACHES[name]
    known_to_transformers(kind)
    length, model = 7, of_transformers(kind, sizes)
    cache = model(input_ids=torch.zeros(1, length, dtype=torch.long), use_cache=True).past_key_values
    if not hasattr(cache, "layers") or (
        kind == "deepseek_v3" and cache.layers[0].keys.shape[-1] != sizes["kv_lora_rank"]
    ):
        pytest.skip("this transformers keeps its cache in another way")
    tensors = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
    kept = sum(t.numel() for t in tensors)
    leaving = sum(t.numel() // t.shape[2] for t in tensors if t.shape[2] < length)
    found = count_file(written(tmp_path, {"model_type": kind, **sizes}), length=length)
    assert found.cache_bytes == 2 * (kept + leaving)
    assert found.cache_bytes_per_token == 2 * sum(t.numel() // t.shape[2] for t in tensors)
    assert sum(t.shape[2] < length for t in tensors) == 2 * sliding


def test_caches_of_published_models(tmp_path: Path) -> None:
    known = {"Llama-3 8B": 128 * 1024, "DeepSeek-V3": 70_272, "Falcon 7B": 8192, "BERT base": 0}
    for name, size in known.items():
        found = count_file(written(tmp_path, PUBLISHED[name].document), length=512)
        assert found.cache_bytes_per_token == size, name
    mistral = count_file(written(tmp_path, PUBLISHED["Mistral 7B"].document), length=32_768)
    assert mistral.cache_bytes == 4096 * mistral.cache_bytes_per_token  # type: ignore[operator]


def test_layer_types_say_which_layers_have_a_window(tmp_path: Path) -> None:
    kinds = ["sliding_attention", "full_attention", "full_attention"]
    document = {"model_type": "gemma2", "num_hidden_layers": 3, "sliding_window": 4, "layer_types": kinds}
    found = count_file(written(tmp_path, document), length=10)
    assert found.cache_bytes == 2 * (4 + 2 * 10) * 2 * 4 * 256


def test_fields_that_change_no_count_are_named(lmlab: Lmlab, tmp_path: Path) -> None:
    document = {"model_type": "qwen2", "use_mrope": False, "rope_theta": 1e6, "architectures": ["Qwen2ForCausalLM"]}
    out = done(lmlab("count", written(tmp_path, document)))
    assert "Ignored, as no count depends on them: architectures, rope_theta, use_mrope." in out
    out = done(lmlab("count", written(tmp_path, {"model_type": "t5", "n_positions": 512})))
    assert "n_positions" in out
    assert "n_inner" in done(lmlab("count", written(tmp_path, {"model_type": "bloom", "n_inner": None})))
    document = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
    assert "layers for multi-token prediction are not counted" in done(lmlab("count", written(tmp_path, document)))


def test_a_mixture_shows_both_numbers_of_parameters(lmlab: Lmlab, tmp_path: Path) -> None:
    out = done(lmlab("count", written(tmp_path, {"model_type": "mixtral"})))
    assert "46,702,792,704" in out
    assert "# parameters that a token uses" in out
    assert "12,879,925,248" in out


def test_the_formula_of_active_parameters_has_their_number(tmp_path: Path) -> None:
    import sympy

    found = count_file(written(tmp_path, PUBLISHED["Mixtral 8x7B"].document))
    letters = {"V": 32000, "D": 4096, "F": 14336, "L": 32, "H": 32, "K": 8, "E": 8, "A": 2}
    formula = sympy.sympify(found.active_formula, locals={name: sympy.Symbol(name) for name in letters})
    assert formula.subs({sympy.Symbol(name): value for name, value in letters.items()}) == found.active


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"model_type": "gpt2", "n_emb', "is it cut off?"),
        ("[1, 2]", "holds no config"),
        ("{}", "has no model_type"),
        ({"model_type": "gtp2"}, "known are bert, bloom, deep"),
        ({"model_type": ["gpt2"]}, "is not known"),
        ({"model_type": None}, "is not known"),
        ({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}}, "is of 'gemma3_text'"),
        ({"model_type": "gpt2", "n_layers": 3}, "did you mean 'n_layer'"),
        ({"model_type": "gpt2", "n_layer": -3}, "n_layer must be 1 or more"),
        ({"model_type": "gpt2", "n_layer": "three"}, "n_layer is a whole number"),
        ({"model_type": "gpt2", "n_layer": True}, "n_layer is a whole number"),
        ({"model_type": "gpt2", "n_embd": 10, "n_head": 3}, "the heads must divide it"),
        ({"model_type": "llama", "hidden_size": 10, "num_attention_heads": 3}, "the heads must divide it"),
        ({"model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 3}, "as many heads as the others"),
        ({"model_type": "torch-decoder", "layers": 2}, "lacks"),
        ({"model_type": "t5", "tie_word_embeddings": "yes"}, "true or false"),
        ({"model_type": "llama", "vision_config": {"a": 1}}, "config-field-not-counted"),
        (
            {"model_type": "llama", "num_extra_towers": 2},
            "config-field-unknown",
        ),
        ({"model_type": "falcon", "num_kv_heads": 3, "new_decoder_architecture": True}, "as many heads as the others"),
        ({"model_type": "bloom", "n_inner": 4096}, "config-field-unknown"),
        ({"model_type": "gpt_neox", "head_dim": 64}, "config-field-unknown"),
        ({"model_type": "llama", "hidden_size": 10**400}, "hidden_size has 401 digits"),
        ('{"model_type": "llama", "hidden_size": 1' + "0" * 5000 + "}", "is no JSON"),
        ({"model_type": "llama", "hidden_size": 10**12, "intermediate_size": 10**12}, "more than any model has"),
        ('{"model_type": "llama", "hidden_size": 1e999}', "config-value-of-another-kind"),
        ('{"model_type": "llama", "hidden_size": NaN}', "config-value-of-another-kind"),
        ({"model_type": "llama", "hidden_size": 4096.0}, "config-value-of-another-kind"),
        ({"model_type": "llama", "num_hidden_layers": 0}, "setting-below-one"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9}, "more than num_local_experts 8"),
        ({"model_type": "deepseek_v3", "first_k_dense_replace": 62}, "config-dense-layers"),
        ({"model_type": "deepseek_v2", "moe_layer_freq": 2}, "moe_layer_freq is 2"),
        ({"model_type": "qwen3_moe", "mlp_only_layers": [0, 99]}, "mlp_only_layers"),
        ({"model_type": "qwen3_moe", "mlp_only_layers": list(range(25))}, "mlp_only_layers"),
        ({"model_type": "mpt", "attn_config": {"qk_ln": True}}, "qk_ln is True"),
        ({"model_type": "mpt", "attn_config": [1]}, "attn_config"),
        ({"model_type": "gemma2", "layer_types": ["mamba"]}, "layer_types has 'mamba'"),
        ({"model_type": "gemma2", "layer_types": ["full_attention"]}, "1 entries for 26 layers"),
        ({"model_type": "bert", "add_cross_attention": True}, "add_cross_attention"),
        ('\ufeff{"model_type": "gtp2"}', "is not known"),
        ("", "is no JSON"),
        ("null", "holds no config"),
        ('{"a":' * 100_000, "is no JSON"),
    ],
)
def test_a_bad_config_gets_one_line(lmlab: Lmlab, tmp_path: Path, document: Any, words: str) -> None:
    refused(lmlab("count", written(tmp_path, document)), words)


def test_a_file_that_is_not_there_and_a_length_without_positions(lmlab: Lmlab, tmp_path: Path) -> None:
    assert "there is no file nothing.json" in lmlab("count", "nothing.json")[2]
    path = written(tmp_path, {"model_type": "gpt2"})
    assert "positions for 1024 tokens" in lmlab("count", path, "--length", 2000)[2]
    assert "no size 'layers'" in lmlab("count", path, "--set", "layers=2")[2]


def test_sizes_that_a_file_does_not_say_are_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 4096}')
    found = read_config(tmp_path / "config.json", {})
    assert any("num_hidden_layers 32" in remark and "hidden_size 4096" not in remark for remark in found.remarks)
