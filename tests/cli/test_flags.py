"""What the library says of a setting, the command line writes with its dashes."""

from __future__ import annotations

from typing import Any

import pytest

from lmlab.cli.app import command_line
from lmlab.cli.flags import as_flag
from lmlab.config import Mistake


@pytest.mark.parametrize(
    ("verb", "settings", "written"),
    [
        ("train", {"device": "cpu"}, "--device cpu"),
        ("train", {"device": None}, "--device"),
        ("train", {"out": "my run"}, "--out 'my run'"),
        ("train", {"resume": True}, "--resume"),
        ("train", {"text": None}, "TEXT"),
        ("train", {"settings": None}, "--set"),
        ("train", {"learning": None}, "--learn"),
        ("train", {"layers": 2}, "--set layers=2"),
        ("train", {"layers": None}, "layers"),
        ("train", {"rows": 8}, "--learn rows=8"),
        ("train", {"seed": 1}, "--seed 1"),
        ("compress", {"force": True}, "--force"),
        ("compress", {"out": None}, "--out"),
        ("generate", {"top_p": 0.5}, "--top-p 0.5"),
        ("generate", {"n_best": 3}, "--best 3"),
        ("generate", {"max_tokens": None}, "--tokens"),
        ("nothing", {"device": None}, "device"),
    ],
)
def test_a_setting_is_written_as_the_verb_takes_it(verb: str, settings: dict[str, Any], written: str) -> None:
    (name,) = settings
    mistake = Mistake(f"say {{{name}}} here", **settings)
    assert mistake.written(as_flag(command_line().commands, [verb, "small.txt"])) == f"say {written} here"
