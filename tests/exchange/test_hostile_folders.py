"""Folders that are damaged or meant to harm: one clear line, exit code 2, nothing executed, nothing written elsewhere."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import folder_of
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from command_line import Lmlab, refused
from lmlab.config import Mistake
from lmlab.exchange.folder_config import describe
from lmlab.exchange.folder_files import stored_tensors, weight_files
from lmlab.exchange.lm_eval_logs import read_samples
from lmlab.exchange.read_arpa import read_arpa
from thinning import examples

WEIGHTS, CONFIG, INDEX, TOKENIZER = "model.safetensors", "config.json", "model.safetensors.index.json", "tokenizer.json"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of("llama", tmp_path_factory.mktemp("sound") / "model")


def config_with(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        document = json.loads((folder / CONFIG).read_text())
        (folder / CONFIG).write_text(json.dumps(document | changes))

    return change


def with_index(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / WEIGHTS).rename(folder / "model-00001-of-00001.safetensors")
        (folder / INDEX).write_text(json.dumps({"weight_map": {f"w{i}": name for i, name in enumerate(names)}}))

    return change


def truncated(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])


def huge_header(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", 1 << 60) + content[8:])


def deep_header(folder: Path) -> None:
    header = b"[" * 200_000
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header)


def wrong_shapes(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    name = "model.layers.0.self_attn.q_proj.weight"
    save_file(tensors | {name: tensors[name].T[:16].contiguous(), "more": torch.zeros(32, 16)}, folder / WEIGHTS)


def not_finite(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    tensors["model.norm.weight"][3] = torch.nan
    save_file(tensors, folder / WEIGHTS)


class Harm:
    """What a pickle can do when it is opened."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("harm"),))


def pickled(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harm()))


def remote_code(folder: Path) -> None:
    (folder / "code.py").write_text("from pathlib import Path\nPath('harm').touch()\n")
    config_with(model_type="mine", auto_map={"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"})(folder)


def link_outside(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder.parent / "elsewhere.safetensors")
    (folder / WEIGHTS).symlink_to(folder.parent / "elsewhere.safetensors")


def tokenizer_with(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        document = json.loads((folder / TOKENIZER).read_text())
        change(document)
        (folder / TOKENIZER).write_text(json.dumps(document))

    return changed


def cyclic_merges(document: dict[str, Any]) -> None:
    document["model"]["merges"] += [["zz", "z"], ["z", "zz"]]


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (truncated, "weights-file-damaged"),
    "huge header": (huge_header, "weights-file-damaged"),
    "deep header": (deep_header, "weights-file-damaged"),
    "wrong shapes": (wrong_shapes, "weights-of-other-config"),
    "a billion layers": (config_with(num_hidden_layers=10**9), "config-of-other-weights"),
    "negative layers": (config_with(num_hidden_layers=-2), "config-of-other-weights"),
    "a vocabulary of 2^40": (config_with(vocab_size=1 << 39), "config-larger-than-weights"),
    "heads that do not divide": (config_with(num_attention_heads=5, head_dim=None), "folder-not-openable"),
    "positions without end": (config_with(max_position_embeddings=1 << 40), "config-positions"),
    "other architecture": (config_with(model_type="no such"), "architecture-unknown"),
    "no architecture": (config_with(model_type=7), "no-model-type"),
    "an encoder": (config_with(model_type="t5", architectures=["T5Model"]), "folder-not-causal"),
    "quantized": (config_with(quantization_config={"bits": 4}), "folder-quantized"),
    "not finite": (not_finite, "weights-not-finite"),
    "a pickle": (pickled, "folder-of-pickles"),
    "remote code": (remote_code, "architecture-unknown"),
    "a path in the index": (with_index("../elsewhere.safetensors"), "folder-file-outside"),
    "an absolute path in the index": (with_index("/etc/passwd"), "folder-file-outside"),
    "a pickle in the index": (with_index("pytorch_model.bin"), "folder-shard-missing"),
    "a missing shard": (with_index("model-00002-of-00002.safetensors"), "folder-shard-missing"),
    "an index of nothing": (with_index(), "folder-index-damaged"),
    "a link to elsewhere": (link_outside, "folder-link-outside"),
    "no tokenizer": (lambda folder: (folder / TOKENIZER).unlink(), "no-tokenizer"),
    "half a tokenizer": (lambda folder: (folder / TOKENIZER).write_text('{"model": '), "folder-tokenizer-damaged"),
    "cyclic merges": (tokenizer_with(cyclic_merges), "folder-tokenizer-damaged"),
    "config that is no JSON": (
        lambda folder: (folder / "tokenizer_config.json").write_text("{"),
        "folder-json-damaged",
    ),
    "config that is nested": (
        lambda folder: (folder / "generation_config.json").write_text("[" * 100_000),
        "folder-json-damaged",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_folder_is_refused_in_one_line(
    name: str, sound: Path, tmp_path: Path, lmlab: Lmlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, code = CASES[name]
    folder = tmp_path / "inside" / "model"
    shutil.copytree(sound, folder)
    change(folder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("the cat sat\n" * 20)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    refused(lmlab("eval", folder, "text.txt"), code)
    refused(lmlab("import", folder, "--out", "run"))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_sound_copy_of_the_folder_is_opened(sound: Path, tmp_path: Path, lmlab: Lmlab) -> None:
    """Otherwise the refusals above could have another reason."""
    (tmp_path / "text.txt").write_text("the cat sat\n" * 20)
    code, out, err = lmlab("eval", sound, tmp_path / "text.txt")
    assert (code, "bits per byte" in out) == (0, True), err


def test_the_links_of_the_cache_of_hugging_face_are_followed(sound: Path, tmp_path: Path, lmlab: Lmlab) -> None:
    blobs, snapshot = tmp_path / "repo" / "blobs", tmp_path / "repo" / "snapshots" / "abc"
    shutil.copytree(sound, blobs)
    snapshot.mkdir(parents=True)
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(Path("..", "..", "blobs", path.name))
    code, out, _ = lmlab("score", snapshot, "the cat")
    assert (code, "bits" in out) == (0, True)


STARTS = (
    b"",
    b"\\data\\\nngram 1=2\n\n\\1-grams:\n-1\t<s>\n",
    b"\x1f\x8b",
    b'{"doc_id": 1, "metrics": ["a"], "a": ',
)


def what_is_said(read: Callable[[], object]) -> str:
    """The mistake that reading ends with; nothing if it ends well. Any other error fails the test."""
    try:
        read()
    except Mistake as error:
        return str(error)
    return ""


@settings(max_examples=examples(120), deadline=None, derandomize=True)
@given(data=st.data())
def test_any_damage_to_the_small_files_is_a_mistake_or_changes_nothing(data: Any, sound: Path) -> None:
    """Bytes are changed anywhere in the header of the weights or in config.json; nothing but a Mistake may come of it."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        shutil.copytree(sound, folder)
        path = folder / data.draw(st.sampled_from([CONFIG, WEIGHTS]))
        content = bytearray(path.read_bytes())
        reach = min(len(content), 3000)
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, reach - 1))
            content[at] = data.draw(st.integers(0, 255))
        path.write_bytes(bytes(content[: data.draw(st.sampled_from([len(content), reach]))]))
        assert "\n" not in what_is_said(lambda: describe(folder, stored_tensors(weight_files(folder))))


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_no_arpa_file_and_no_log_or_are_read(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        for name, read in (("m.arpa", read_arpa), ("samples_t.jsonl", lambda path: read_samples([path]))):
            path = Path(place) / name
            for start in STARTS:
                path.write_bytes(start + content)
                assert "\n" not in what_is_said(lambda read=read, path=path: read(path))  # type: ignore[misc]
