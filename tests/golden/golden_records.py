"""Golden values of records: how texts are divided, what a comparison and a sweep found, and the keys of every JSON document."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import make_runs
from golden_places import Place, brought
from golden_texts import TEXTS
from golden_values import Group

import lmlab
from lmlab.cli.app import main
from lmlab.cli.explaining import TOPICS
from lmlab.text import sources
from lmlab.text.labelled import read_labelled

DOCUMENTS = 40  # of a text in many
OF_TEXTS: dict[str, Callable[[Place], Any]] = {
    "one file": lambda place: lmlab.read(place.text("train.txt")).spec()["parts"],
    "one file 60,20,20": lambda place: lmlab.read(place.text("train.txt"), split=(60, 20, 20)).spec()["parts"],
    "many documents": lambda place: lmlab.read(many(place), split_by="documents").spec()["parts"],
    "many documents seed 5": lambda place: lmlab.read(many(place), split_by="documents", seed=5).spec()["parts"],
    "parts by name": lambda place: lmlab.read(place.text("train.txt"), valid=place.text("valid.txt")).spec()["parts"],
    "labelled": lambda place: read_labelled(place.text("films.tsv")).spec()["parts"],
}
MADE_HERE = ("markov:order=2,alphabet=4,length=2000,seed=1", "numbers:50")


def many(place: Place) -> Path:
    """A folder with a document for each few lines."""
    folder = place.new / "many"
    folder.mkdir(exist_ok=True)
    lines = TEXTS["train.txt"].splitlines(keepends=True)
    for number in range(DOCUMENTS):
        (folder / f"{number:02}.txt").write_text("".join(lines[number::DOCUMENTS]), encoding="utf-8")
    return folder


def division(case: str, place: Place) -> Any:
    return OF_TEXTS[case](place)


def made_here(case: str, place: Place) -> dict[str, str]:
    """The files of a corpus that is made by rules."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sources.get(case)}


@cache
def compared(kept: Path) -> dict[str, Any]:
    """The finished comparison, asked for again where it lies: nothing is trained, all is measured."""
    folder = kept.parent / "compared"
    shutil.copytree(kept / "compare", folder / "compare")
    make_runs.compare_again(kept / "texts", folder / "compare", make_runs.COMPARED)
    found: dict[str, Any] = json.loads((folder / "compare" / "comparison.json").read_text(encoding="utf-8"))
    return found


OF_AN_ENTRY = ("name", "model", "tokenizer", "status", "rank", "reused", "error", "seeds", "training_flops")
OF_A_RESULT = ("bits_per_byte", "nats", "spelling_nats", "bytes", "tokens", "unknown_tokens", "certified", "context")
OF_A_TRAINING = ("tokens", "steps", "calibrated", "diverged")


def comparison(case: str, place: Place) -> dict[str, Any]:
    """What does not depend on time; numbers that an interval decides stand apart."""
    found = compared(place.kept)
    if case == "intervals":
        intervals = {entry["name"]: entry["result"]["interval"] for entry in found["entries"]}
        return {"pairs": found["pairs"], "ranking": found["ranking"], "of entries": intervals}
    if case == "text":
        return {key: found[key] for key in ("corpus", "measured")}
    entries = [
        {key: entry[key] for key in OF_AN_ENTRY}
        | {"result": {key: entry["result"][key] for key in OF_A_RESULT}}
        | {"training": {key: entry["training"][key] for key in OF_A_TRAINING}}
        for entry in found["entries"]
    ]
    together = [{"parts": one["parts"], "bits_per_byte": one["result"]["bits_per_byte"]} for one in found["together"]]
    return {"entries": entries, "together": together, "yardsticks": [one["name"] for one in found["yardsticks"]]}


def sweep(case: str, place: Place) -> Any:
    """The table of the finished sweep, asked for again where it lies."""
    folder = brought(place.new / "golden", ("sweep", "texts"))
    found = make_runs.sweep_again(folder / "texts", folder / "sweep").to_json()
    return {key: value for key, value in found.items() if key != "figure"}


def command(*words: object) -> Any:
    """The document that a command writes with --json."""
    before, out, err, code = sys.argv, io.StringIO(), io.StringIO(), None
    sys.argv = ["lmlab", *map(str, words), "--json"]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    assert not code, f"lmlab {' '.join(map(str, words))}: {err.getvalue()}"
    return json.loads(out.getvalue())


CPU = ("--device", "cpu")
DERIVATION = "given x: n\nlet L = sum(x**2)\nclaim dL/dx == 2*x\n"
IN_PARTS = ("texts/train.txt", "--valid", "texts/valid.txt", "--test", "texts/test.txt")
# The words behind `lmlab`; the folder of work holds a copy of the kept runs. The first word of a case is the verb.
COMMANDS: dict[str, tuple[object, ...]] = {
    "compare": (
        "compare",
        *IN_PARTS,
        "--out",
        "compare",
        "--each",
        "1s",
        "--models",
        "ngram,bigram",
        "--tokenizers",
        "words:40",
        "--set",
        "ngram.order=3",
        "--set",
        "bigram.width=8",
        "--set",
        "bigram.embedding_width=4",
        "--learn",
        "bigram.validations=2",
        *CPU,
    ),
    "best": (
        "best",
        *IN_PARTS,
        "--out",
        "best",
        "--budget",
        "3s",
        "--models",
        "ngram",
        "--tokenizers",
        "words:40",
        *CPU,
    ),
    "sweep": (
        "sweep",
        "feedforward",
        *IN_PARTS,
        "--out",
        "sweep",
        "--over",
        "context=2,3",
        "--seeds",
        2,
        "--budget",
        "10steps",
        "--tokenizer",
        "words:40",
        "--set",
        "width=8",
        "--set",
        "embedding_width=4",
        "--learn",
        "validations=2",
    ),
    "curves": ("curves", "gpt-char", "lstm-byte", "--out", "curves.svg"),
    "train": ("train", "bigram", *IN_PARTS, "--out", "new", "--budget", "2steps", "--set", "width=8", *CPU),
    "train bag": ("train", "bag", *IN_PARTS, "--out", "counted"),
    "settings": ("settings", "gpt", "--budget", "10steps", *CPU),
    "eval": ("eval", "ngram-words", *CPU),
    "eval bert": ("eval", "bert-words", *CPU),
    "eval classifier": ("eval", "classifier-words", *CPU),
    "eval dan": ("eval", "dan-words", *CPU),
    "eval translator": ("eval", "translator", *CPU),
    "eval variational": ("eval", "variational-words", *CPU),
    "eval glove": ("eval", "glove", *CPU),
    "eval autoencoder": ("eval", "autoencoder", *CPU),
    "score": ("score", "gpt-words", "The cat sees the river.", *CPU),
    "generate": ("generate", "gpt-char", "--prompt", "The", "--tokens", 4, *CPU),
    "mix": ("mix", "attention-words", "rnn-words", "--out", "mixed", *CPU),
    "compress": ("compress", "probe.txt", "--model", "ngram-char", "--out", "probe.lm"),
    "decompress": ("decompress", "probe.lm", "--model", "ngram-char", "--out", "again.txt"),
    "export": ("export", "ngram-words", "--out", "model.arpa"),
    "import": ("import", "model.arpa", "--out", "imported"),
    "explain": ("explain", "ngram-words", "gpt-words", "The cat sees the river."),
    "explain attention": ("explain", "attention", "gpt-words", "The cat sees the river."),
    "explain gates": ("explain", "gates", "lstm-byte", "The cat."),
    "explain heads": ("explain", "heads", "gpt-words", "The cat sees the river."),
    "explain matrix": ("explain", "matrix", "gpt-words", "The cat"),
    "explain search": ("explain", "search", "ngram-words", "the", "--tokens", 3),
    "explain gradients": ("explain", "gradients", "--width", 4, "--length", 5, "--steps", 2, "--tries", 1),
    "explain positions": ("explain", "positions", "--width", 8, "--length", 8, "--offset", 2),
    "explain dot-products": ("explain", "dot-products"),
    "explain sandbox": ("explain", "sandbox"),
    "count": ("count", "gpt", "--set", "layers=1", "--set", "width=8"),
    "plan": ("plan", "gpt", "--set", "layers=2", "--set", "width=64", "--tokens", "1M", "--device", "H100"),
    "fill": ("fill", "bert-words", "The [MASK] sees", *CPU),
    "classify": ("classify", "classifier-words", "a bright film", *CPU),
    "translate": ("translate", "translator", "forty-two", "--beam", 2, *CPU),
    "vectors neighbours": ("vectors", "glove", "neighbours", "the"),
    "vectors analogy": ("vectors", "glove", "analogy", "the", "w3", "and"),
    "combine": ("combine", "autoencoder", "the", "w3", *CPU),
    "latent": ("latent", "variational-words", "The cat", "A dog", "--number", 2, *CPU),
    "check": ("check", "one.derive"),
    "data": ("data",),
    "data show": ("data", "show", "texts/train.txt"),
    "prove": ("prove", "week2.E1a"),
    "machine": ("machine",),
    "contract": ("contract", "uniform"),
}
SLOW_COMMANDS = frozenset({"compare", "sweep", "explain dot-products", "explain gradients", "contract", "curves"})
WITHOUT_A_DOCUMENT = frozenset({"serve"})  # its documents are responses: tests/server
OF_THE_CACHE = ".kept[]"  # `machine` lists what lies there: nothing, in a new one


def document(case: str, place: Place) -> dict[str, str]:
    """The keys of a document by their way from the top, each with the type of its value."""
    brought(place.new)
    (place.new / "probe.txt").write_text(TEXTS["test.txt"][:200], encoding="utf-8")
    (place.new / "one.derive").write_text(DERIVATION, encoding="utf-8")
    here = Path.cwd()
    os.chdir(place.new)
    try:
        if case in (made_by := {"decompress": "compress", "import": "export"}):
            command(*COMMANDS[made_by[case]])
        return dict(sorted(pair for pair in keys_of(command(*COMMANDS[case])) if not pair[0].startswith(OF_THE_CACHE)))
    finally:
        os.chdir(here)


TYPES = {dict: "object", list: "list", str: "text", bool: "true or false", int: "number", float: "number"}


def keys_of(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Keys that are data, such as words, paths and the names of checks, stand as *; what is null says nothing of its type."""
    if at and value is not None:
        yield at, TYPES[type(value)]
    if isinstance(value, dict):
        for key, item in value.items():
            is_data = at.endswith((".certificate", ".certificate_details")) and isinstance(item, bool | str)
            named = key if re.fullmatch(r"[a-z][a-z0-9_]*", key) and not is_data else "*"
            if item is None:
                yield f"{at}.{named}", "null"
            yield from keys_of(item, f"{at}.{named}")
    elif isinstance(value, list):
        for item in value:
            yield from keys_of(item, f"{at}[]")


SMALL = {"tolerance": 2e-5, "why": "weights are kept; processors add in another order"}
GROUPS = (
    Group(name="splits", cases=tuple(OF_TEXTS), measure=division, tolerance=0.0, why="hashes"),
    Group(name="made here", cases=MADE_HERE, measure=made_here, tolerance=0.0, why="hashes"),
    Group(
        name="comparison", cases=("findings", "text", "intervals"), measure=comparison, tolerance=1e-4, may_grow=True,
        why="a mix is fitted",
    ),
    Group(name="sweep", cases=("sweep",), measure=sweep, tolerance=1e-9, why="results are read again", may_grow=True),
    Group(
        name="documents", cases=tuple(COMMANDS), measure=document, tolerance=0.0, why="keys", slow=SLOW_COMMANDS,
        may_grow=True,
    ),
)  # fmt: skip


def verbs_without_a_document(verbs: set[str]) -> set[str]:
    """Verbs, and topics of `explain`, whose keys nobody keeps."""
    wanted = verbs - WITHOUT_A_DOCUMENT | {f"explain {topic}" for topic in TOPICS}
    return {verb for verb in wanted if not any(case == verb or case.startswith(f"{verb} ") for case in COMMANDS)}
