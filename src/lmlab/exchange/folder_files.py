"""The files of a Hugging Face folder, read with care: nothing in them is executed, and every size is checked first.

Only JSON, `tokenizer.json` and safetensors files are read, all of them inside the folder. A symbolic link may point into the
folder, or into `blobs/` of the cache that the Hugging Face library keeps. Pickles are refused, since opening one runs code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.config import LISTED, Mistake
from lmlab.disk.files import as_typed

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZER, TOKENIZER_CONFIG, GENERATION = "tokenizer.json", "tokenizer_config.json", "generation_config.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
MOST_JSON = 16 << 20  # bytes of a small JSON file
MOST_TOKENIZER = 256 << 20  # bytes of tokenizer.json
MOST_HEADER = 100_000_000  # bytes: the bound of the safetensors format
SIZES = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2, "I8": 1, "U8": 1,
    "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """A tensor in a safetensors file, as its header describes it."""

    shape: tuple[int, ...]
    dtype: str
    file: Path

    @property
    def numbers(self) -> int:
        """How many numbers the tensor has."""
        return math.prod(self.shape)


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file of the folder.

    Raises:
        Mistake: the name leads out of the folder, by its spelling or by a symbolic link.
    """
    if not name or name != Path(name).name or "\\" in name or name in (".", ".."):
        raise Mistake(
            f"{folder} names a file {name!r}, which is no plain name in the folder; nothing outside a folder is read",
            code="folder-file-outside",
        )
    path, home = folder / name, folder.resolve()
    if path.is_symlink():
        target = path.resolve()
        cached = home.parents[1] / "blobs" if home.parent.name == "snapshots" else home
        if not (target.is_relative_to(home) or target.is_relative_to(cached)):
            raise Mistake(
                f"{path} is a symbolic link out of its folder; put the file itself there", code="folder-link-outside"
            )
    return path


def read_json(folder: Path, name: str, most: int = MOST_JSON) -> dict[str, Any] | None:
    """Return the object in a JSON file of the folder; None if there is no such file.

    Raises:
        Mistake: the file is too large, or holds no JSON object.
    """
    path = inside(folder, name)
    if not path.exists():
        return None
    if not path.is_file() or path.stat().st_size > most:
        raise Mistake(f"{path} is no file of at most {most >> 20} MiB", code="folder-json-too-large")
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError, OSError) as error:
        raise Mistake(f"{path} is damaged: {str(error).splitlines()[0]}", code="folder-json-damaged") from None
    if not isinstance(found, dict):
        raise Mistake(f"{path} is damaged: it holds no JSON object", code="folder-json-no-object")
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of a folder.

    Raises:
        Mistake: there are none; a pickle is refused with the reason.
    """
    index = read_json(folder, INDEX, MOST_TOKENIZER)
    if (path := inside(folder, WEIGHTS)).exists():
        return [path]
    if index is not None:
        named = index.get("weight_map")
        if not isinstance(named, Mapping) or not named or not all(isinstance(name, str) for name in named.values()):
            raise Mistake(f"{folder / INDEX} is damaged: weight_map names no files", code="folder-index-damaged")
        paths = [inside(folder, name) for name in dict.fromkeys(named.values())]
        if missing := [path.name for path in paths if path.suffix != ".safetensors" or not path.is_file()]:
            more = f" and {len(missing) - LISTED} more" if len(missing) > LISTED else ""
            raise Mistake(
                f"{folder} lacks {', '.join(missing[:LISTED])}{more}, which its index names; copy the whole folder",
                code="folder-shard-missing",
            )
        return paths
    if pickles := sorted(path.name for pattern in PICKLES for path in folder.glob(pattern)):
        raise Mistake(
            f"{folder} has its weights in {pickles[0]}, a pickle, which can run code when it is opened; save the model"
            " as safetensors: model.save_pretrained(FOLDER)",
            code="folder-of-pickles",
        )
    raise Mistake(
        f"{folder} is a Hugging Face folder without {WEIGHTS}; for the parameters of its config.json type: lmlab count"
        f" {as_typed(folder / CONFIG)}",
        code="folder-without-weights",
    )


def stored_tensors(files: Sequence[Path]) -> dict[str, Stored]:
    """Return all tensors of safetensors files by name, from their headers alone.

    Raises:
        Mistake: a header is damaged, or does not fit the size of its file.
    """
    found: dict[str, Stored] = {}
    for path in files:
        for name, stored in _header(path):
            found[name] = stored
    if not found:
        raise Mistake(f"{files[0]} holds no tensors", code="weights-empty")
    return found


def _header(path: Path) -> Iterator[tuple[str, Stored]]:
    """The tensors of one file."""

    def damaged(why: str) -> Mistake:
        return Mistake(f"{path} is no whole safetensors file: {why}; copy it again", code="weights-file-damaged")

    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, MOST_HEADER):
            raise damaged(f"its header would take {length:,} bytes, and the file has {size:,}")
        try:
            header = json.loads(file.read(length))
            tensors = {name: about for name, about in header.items() if name != "__metadata__"}
        except (ValueError, RecursionError, AttributeError):
            raise damaged("its header is no JSON object") from None
    end = 0
    for name, about in tensors.items():
        match about:
            case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(first), int(last)]} if dtype in SIZES:
                pass
            case _:
                raise damaged(f"of {name[:60]!r} it does not say dtype, shape and place")
        if not all(type(side) is int and 0 <= side < 1 << 48 for side in shape):
            raise damaged(f"{name[:60]!r} has no shape")
        stored = Stored(tuple(shape), dtype, path)
        if not 0 <= first <= last or last - first != stored.numbers * SIZES[dtype]:
            raise damaged(f"{name[:60]!r} has another size than its shape")
        end = max(end, last)
        yield name, stored
    if end != size - 8 - length:
        raise damaged(f"its tensors take {end:,} bytes, and {size - 8 - length:,} are there")
