"""Recipes: TOML files that repeat a run. Every run writes its own; a recipe can also be written by hand.

    model = "gpt"
    text = "mytext.txt"
    budget = "3m"

    [settings]
    layers = 4

The keys are arguments of `train`. `from` names a run whose weights are the initial weights. Such a recipe has no tokenizer,
and no model unless the model starts from another kind (`classifier`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from lmlab.config import Mistake, nearest
from lmlab.disk.files import read_text
from lmlab.learn.record import Record, Training
from lmlab.models.registry import kind_of
from lmlab.text.tokenizers import FOREIGN

FILE = "recipe.toml"

PLAIN: dict[str, tuple[type, ...]] = {  # allowed types by key
    "model": (str,),
    "from": (str,),
    "text": (str, list),
    "columns": (list,),
    "tokenizer": (str,),
    "budget": (str,),
    "split": (list,),
    "split_by": (str,),
    "documents": (str,),
    "valid": (str, list),
    "test": (str, list),
    "seed": (int,),
    "device": (str,),
    "precision": (str,),
    "settings": (dict,),
    "learning": (dict,),
}


def recipe(file: str | Path) -> dict[str, Any]:
    """Read a recipe and return it as arguments: `train(**recipe(file), out=…)`.

    A recipe with `from` is for `fine_tune`, whose argument is then called `run`.

    Raises:
        Mistake: the file is not a recipe.
    """
    path = Path(file).expanduser()
    if path.is_dir() and (path / FILE).exists():  # a run
        path = path / FILE
    try:
        found = tomllib.loads(read_text(path, f"every run has a {FILE}, which is TOML"))
    except tomllib.TOMLDecodeError as error:
        beside = path.with_name(FILE)
        meant = f"; the recipe of that run is {beside}" if path.suffix == ".json" and beside.exists() else ""
        raise Mistake(f"{path} is not TOML: {error}{meant}", code="recipe-not-toml") from None
    for key, value in found.items():
        if key not in PLAIN:
            raise Mistake(f"{path} has no use for {key!r}; {nearest(key, PLAIN)}", code="recipe-key-unknown")
        if not isinstance(value, PLAIN[key]) or isinstance(value, bool):
            kinds = {str: "a text in quotes", list: "a list", int: "a whole number", dict: f"a table [{key}]"}
            right = " or ".join(kinds[kind] for kind in PLAIN[key])
            raise Mistake(f"{path}: {key} is {right}; got {value!r}", code="recipe-value-of-another-kind")
    begins = "model" in found and kind_of(found["model"]).begins_with is not None
    if not {"model", "from"} & set(found) or ({"model", "from"} <= set(found) and not begins):
        raise Mistake(
            f'{path} names either a model, such as model = "gpt", or a run to begin with (from)',
            code="recipe-without-model",
        )
    if "from" in found:
        found["run"] = found.pop("from")
        found.pop("tokenizer", None)
    return found


def recipe_text(record: Record, folder: Path) -> str:
    """Return the text of a recipe that repeats a run: the same model, text and requested budget."""
    asked, corpus = record.training, record.inputs.corpus
    if parts := record.inputs.parts:
        adapt = " --adapt" * bool(record.model.config.get("adapt"))
        runs = " ".join(quote(part.run) for part in parts)
        return f"# Repeats {folder.name}: lmlab mix {runs}{adapt} --out NEW\n"
    if "imported" in corpus:
        return f"# Repeats {folder.name}: lmlab import {quote(corpus['imported'])} --out NEW\n"
    own = [ancestor for ancestor in asked.lineage if ancestor.run is None]
    others = [ancestor for ancestor in asked.lineage if ancestor.run is not None]
    begun = {"from": others[-1].run} if others else {}
    if not others or kind_of(record.model.name).begins_with is not None:
        begun["model"] = record.model.name
    budgets = [*(ancestor.budget for ancestor in own), asked.budget]
    plain: dict[str, Any] = {
        **begun,
        "text": corpus["text"],
        "columns": corpus.get("columns"),
        "tokenizer": None if record.inputs.tokenizer == FOREIGN else record.inputs.tokenizer,
        "budget": budgets[0],
        "split": list(corpus["split"]) if corpus["valid"] is None and corpus["test"] is None else None,
        "split_by": None if corpus.get("divided_by", "given") == "given" else corpus["divided_by"],
        "documents": corpus.get("documents"),
        "valid": corpus["valid"],
        "test": corpus["test"],
        "seed": asked.seed,
        "device": asked.device,
        "precision": asked.precision,
    }
    lines = [f"# Repeats {folder.name}: lmlab train --config {FILE} --out NEW"]
    lines += [f"# and then: lmlab train --resume --out NEW --budget +{budget}" for budget in budgets[1:]]
    if record.inputs.tokenizer == FOREIGN:
        lines.append("# From Python: lmlab.train(tokenizer=Tokenizer.load(RUN)), as others made its tokenizer.json.")
    if corpus["seed"] != asked.seed:
        lines.append(
            f"# The documents of the text were divided with seed {corpus['seed']}, which is not repeated here."
        )
    lines += [f"{key} = {_value(value)}" for key, value in plain.items() if value is not None]
    for name, table in (("settings", record.model.config), ("learning", _learning(asked))):
        if given := {key: value for key, value in table.items() if value is not None}:
            lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in given.items())]
    return "\n".join(lines) + "\n"


def _learning(asked: Training) -> Mapping[str, Any]:
    """Return the settings of the loop, with the rows that were chosen by the speed of the machine."""
    by_the_clock = asked.plan is not None and asked.plan.tokens_per_second is not None and asked.plan.rows is not None
    return {"rows": asked.plan.rows, **asked.learning} if asked.plan is not None and by_the_clock else asked.learning


def _value(value: Any) -> str:
    """Format a value as TOML.

    Strings, numbers, lists and booleans are written as in JSON, with U+007F escaped.

    Raises:
        TypeError: the value is a nested table.
    """
    if isinstance(value, Mapping):
        raise TypeError("a recipe holds no tables inside tables")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
