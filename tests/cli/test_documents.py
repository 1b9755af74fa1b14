"""What README and docs/ say is what the code has: verbs, options, models, packages and files."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from lmlab.cli.app import command_line
from lmlab.cli.explaining import TOPICS, topic
from lmlab.models.registry import KINDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = [
    pytest.param(line, id=f"{path.name}: {line}")
    for path in DOCUMENTS
    for line in re.findall(r"(?:^ {4}|`)(lmlab [a-z][^`\n]*)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
]


@cache
def options_of_verbs() -> dict[str, set[str]]:
    """Every verb of the command line with the options it takes."""
    commands = {**command_line().commands, **{f"explain {name}": topic(name) for name in TOPICS}}
    found = {
        name: {option for p in command.params for option in [*p.opts, *p.secondary_opts]}
        for name, command in commands.items()
    }
    return {name: options | {"--help", "-h"} for name, options in found.items()}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_in_a_document_exists_with_its_options(line: str) -> None:
    known = options_of_verbs()
    _, verb, *words = shlex.split(re.sub(r"(#|  ).*", "", line).replace("…", ""))
    assert verb in known
    verb = f"{verb} {words[0]}" if words and words[0] in TOPICS and verb == "explain" else verb
    assert {word.partition("=")[0] for word in words if re.match("-[a-z-]", word)} <= known[verb]


def test_every_verb_is_in_the_readme_or_the_tour_and_has_what_they_promise_all() -> None:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/tour.md"))
    for verb, options in options_of_verbs().items():
        assert f"lmlab {verb}" in text
        assert "--json" in options or verb == "serve", verb  # whose documents are responses


def test_the_table_of_models_is_the_registry() -> None:
    table = re.findall(
        r"^\| `([^|]*)` \| ([^|]*) \|", (ROOT / "docs/models.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert table == [(kind.name, kind.about) for kind in KINDS.values()]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_pages_that_a_document_names_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|md|derive))`", text)
    for name in named:
        assert any((folder / name).exists() for folder in (ROOT, ROOT / "src" / "lmlab")), name
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (path.parent / link).exists(), link
