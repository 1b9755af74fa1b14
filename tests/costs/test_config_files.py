"""Config files of Hugging Face: exact counts from the file alone, held to transformers; one line for a bad file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from command_line import Lmlab, refused
from lmlab.costs.config_file import read_config
from lmlab.costs.counting import count_file
from lmlab.costs.dispatcher import counted, counted_as_run
from lmlab.costs.published_architectures import FAMILIES
from lmlab.formulas import Shape, weights, work
from thinning import thinned

PUBLISHED = {
    "GPT-2": ({"model_type": "gpt2"}, 124_439_808),
    "GPT-2 medium": ({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16}, 354_823_168),
    "GPT-2 large": ({"model_type": "gpt2", "n_embd": 1280, "n_layer": 36, "n_head": 20}, 774_030_080),
    "GPT-2 XL": ({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25}, 1_557_611_200),
    "BERT base": ({"model_type": "bert"}, 109_482_240),
    "BERT large": (
        {
            "model_type": "bert",
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
        },
        335_141_888,
    ),
    "LLaMA 7B": ({"model_type": "llama"}, 6_738_415_616),
}
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
    max_examples=25,
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
    document, parameters = PUBLISHED[name]
    found = count_file(written(tmp_path, document))
    assert found.parameters == parameters
    assert found.agrees


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
    """The real thing, without dropout."""
    import transformers

    config = transformers.AutoConfig.for_model(kind, **document)
    cls = getattr(transformers, FAMILIES[kind].instance)
    model: nn.Module = cls(config)
    return model.eval()


def loss_of(model: nn.Module, kind: str, rows: int, length: int, source: int) -> torch.Tensor:
    ids = torch.zeros(rows, length, dtype=torch.long)
    if kind == "t5":
        return model(input_ids=torch.zeros(rows, source, dtype=torch.long), decoder_input_ids=ids).logits.sum()
    found = model(input_ids=ids)
    return found.last_hidden_state.sum() + found.pooler_output.sum() if kind == "bert" else found.logits.sum()


def turning(model: nn.Module, length: int) -> int:
    """Operations by which some versions of transformers find the angles of rotary positions; they need no product, and
    later versions and ours make none."""
    rotary = getattr(getattr(model, "model", None), "rotary_emb", None)
    if rotary is None:
        return 0
    places = torch.arange(length)[None]
    return counted_as_run(lambda: rotary(torch.zeros(1), places)[0].sum(), backward=False).forward


@pytest.mark.parametrize("kind", thinned(SIZES, ["gpt2", "llama"]))
@brief
@given(data=st.data())
def test_weights_and_operations_are_those_of_transformers(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    document = data.draw(small(kind))
    _, config = read_config(written(tmp_path, {"model_type": kind, **document}), {})
    model = of_transformers(kind, document)
    rows, length, source = (data.draw(st.integers(1, 4)) for _ in range(3))
    shape = Shape(rows, length, source=source if kind == "t5" else 0)
    parts = config.parts(config, config.vocab_size, shape)
    assert weights(parts) == sum(p.numel() for p in model.parameters())
    ran, said = counted(lambda: loss_of(model, kind, rows, length, source)), work(parts)
    assert (ran.forward - turning(model, length), ran.backward) == (said.forward, said.backward)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_have_the_weights_of_transformers(name: str) -> None:
    pytest.importorskip("transformers")
    document, parameters = PUBLISHED[name]
    sizes = {key: value for key, value in document.items() if key != "model_type"}
    with FakeTensorMode():
        model = of_transformers(str(document["model_type"]), sizes)
    assert sum(p.numel() for p in model.parameters()) == parameters


@pytest.mark.parametrize("kind", SIZES)
def test_whatever_transformers_writes_can_be_read(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(kind)
    whole, short = (
        count_file(written(tmp_path, document), length=8) for document in (config.to_dict(), {"model_type": kind})
    )
    assert whole.parameters == short.parameters, "what a file leaves open has the defaults of transformers"


def test_a_config_file_needs_no_transformers(tmp_path: Path) -> None:
    path = written(tmp_path, {"model_type": "gpt2"})
    program = (
        "import sys; sys.modules['transformers'] = None\n"
        f"import lmlab; print(lmlab.count({str(path)!r}, length=16).parameters)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "124439808"


def test_a_cache_is_as_large_as_that_of_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}
    document = {**sizes, "vocab_size": 9, "intermediate_size": 8}
    model = of_transformers("llama", document)
    cache = model(input_ids=torch.zeros(1, 7, dtype=torch.long), use_cache=True).past_key_values
    kept = sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)
    found = count_file(written(tmp_path, {"model_type": "llama", **document}))
    assert found.cache_bytes_per_token == 2 * kept // 7


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"model_type": "gpt2", "n_emb', "is it cut off?"),
        ("[1, 2]", "holds no config"),
        ("{}", "has no model_type"),
        ({"model_type": "gtp2"}, "did you mean 'gpt2'"),
        ({"model_type": "gpt2", "n_layers": 3}, "did you mean 'n_layer'"),
        ({"model_type": "gpt2", "n_layer": -3}, "n_layer must be 1 or more"),
        ({"model_type": "gpt2", "n_layer": "three"}, "n_layer is a whole number"),
        ({"model_type": "gpt2", "n_layer": True}, "n_layer is a whole number"),
        ({"model_type": "gpt2", "n_embd": 10, "n_head": 3}, "the heads must divide it"),
        ({"model_type": "llama", "hidden_size": 10, "num_attention_heads": 3}, "the heads must divide it"),
        ({"model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 3}, "as many heads as the others"),
        ({"model_type": "bert", "add_cross_attention": True}, "not counted for this kind"),
        ({"model_type": "torch-decoder", "layers": 2}, "lacks"),
        ({"model_type": "t5", "tie_word_embeddings": "yes"}, "true or false"),
    ],
)
def test_a_bad_config_gets_one_line(lmlab: Lmlab, tmp_path: Path, document: Any, words: str) -> None:
    refused(lmlab("count", written(tmp_path, document)), words)


def test_a_file_that_is_not_there_and_a_length_without_positions(lmlab: Lmlab, tmp_path: Path) -> None:
    assert "there is no file nothing.json" in lmlab("count", "nothing.json")[2]
    path = written(tmp_path, {"model_type": "gpt2"})
    assert "positions for 1024 tokens" in lmlab("count", path, "--length", 2000)[2]
    assert "no size 'layers'" in lmlab("count", path, "--set", "layers=2")[2]
