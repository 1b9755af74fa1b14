"""Builds the site: docs/ with generated pages for the front, the experiments and the reference, rendered into site/."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "build/docs"  # what mkdocs.yml names as the folder of pages


def main() -> None:
    """Write all pages under build/docs and render them. A warning, such as a dead link, is an error."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE)
    for page in SOURCE.rglob("*.md"):
        page.write_text(_links_within_the_site(page.read_text(encoding="utf-8")), encoding="utf-8")
    generated = {
        "index.md": front_page,
        "notes/index.md": experiments,
        "reference/commands.md": commands,
        "reference/python.md": python,
        "reference/settings.md": settings,
    }
    for path, make in generated.items():
        (SOURCE / path).parent.mkdir(exist_ok=True)
        (SOURCE / path).write_text(make(), encoding="utf-8")
    subprocess.run([Path(sys.executable).with_name("zensical"), "build", "--clean", "--strict"], cwd=ROOT, check=True)


def _links_within_the_site(text: str) -> str:
    """Show a link to a file that is not part of the site as the name of that file in the repository."""
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)+([^)]+)\)", r"\1 (`\2`)", text)


def front_page() -> str:
    """README, with its links as links between pages of the site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(
        r"\[([^\]]+)\]\(((?:CONTRIBUTING|CHANGELOG|SECURITY|LICENSE|CITATION|examples)[^)]*)\)", r"\1 (`\2`)", text
    )


def experiments() -> str:
    """A list of the notes: each note's title is a question, and its next paragraph begins with the answer."""
    lines = ["# Experiments", "", "Questions that decided a default, each answered by a measurement.", ""]
    for path in sorted((ROOT / "docs/notes").glob("*.md")):
        title, answer = path.read_text(encoding="utf-8").split("\n\n")[:2]
        first = re.split(r"(?<=[.:])\s", " ".join(answer.split()), maxsplit=1)[0]
        lines.append(f"- [{title.removeprefix('# ')}]({path.name}) {first.rstrip(':')}")
    return "\n".join(lines) + "\n"


def commands() -> str:
    """Every command with its arguments and options, from the command line itself."""
    from lmlab.cli.commands import Commands

    parts = [
        "# Commands",
        "",
        "Every verb of `lmlab`, in the order of `lmlab --help`. Most take `--json` and `--seed`.",
        "",
    ]
    section = None
    for name, command in Commands().by_section():
        if command.rich_help_panel != section:
            section = command.rich_help_panel
            parts += [f"## {section}", ""]
        parts += _command(f"lmlab {name}", command, "###")
        for child, subcommand in getattr(command, "commands", {}).items():
            parts += _command(f"lmlab {name} {child}", subcommand, "####")
    return "\n".join(parts) + "\n"


def _command(name: str, command: Any, heading: str) -> list[str]:
    usage = " ".join([name, *(_argument(p) for p in command.params if p.param_type_name == "argument")])
    parts = [f"{heading} `{name}`", "", "```text", usage, "```", "", *_paragraphs(command.help or "")]
    options = [p for p in command.params if p.param_type_name == "option" and not getattr(p, "hidden", False)]
    if options:
        parts += ["", "| option | meaning | default |", "| --- | --- | --- |"]
        parts += [f"| {_spelling(p)} | {_cell(p.help or '')} | {_default(p)} |" for p in options]
    return [*parts, ""]


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name or "").upper().strip("[]")
    name = f"{name}..." if parameter.nargs == -1 and not name.endswith("...") else name
    return name if parameter.required else f"[{name}]"


def _spelling(parameter: Any) -> str:
    return ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])


def _default(parameter: Any) -> str:
    value = parameter.default
    if value in (None, False, (), []) or callable(value):
        return ""
    return f"`{_cell(str(value))}`"


def _paragraphs(text: str) -> list[str]:
    return [
        _cell(" ".join(paragraph.split())) + "\n"
        for paragraph in re.split(r"\n\s*\n", text.replace("\b", ""))
        if paragraph
    ]


def _cell(text: str) -> str:
    """Text in one line of a table: placeholders such as <file> and bars are no markup."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def python() -> str:
    """Every name that `lmlab` offers, with its docstring, in the order of the alphabet."""
    lines = [
        "# Python",
        "",
        "Every verb is a function of `lmlab`, with the names of the command line: `--set` is `settings`,",
    ]
    lines += ["`--learn` is `learning`.", ""]
    stub = ast.parse((ROOT / "src/lmlab/__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    where = {one.name: str(node.module) for node in imports for one in node.names if one.name != "__version__"}
    for name in sorted(where, key=str.lower):
        module = _defining_module(where[name], name)
        lines += [f"::: {module}.{name}", "    options:", f'      heading: "lmlab.{name}"', ""]
    return "\n".join(lines) + "\n"


def _defining_module(module: str, name: str) -> str:
    """Follow imports of a package to the file that defines the name."""
    return str(getattr(importlib.import_module(module), name).__module__)


def settings() -> str:
    """The settings of every kind of model that can be trained, from the comments beside their fields."""
    from lmlab import plugins  # noqa: F401  (registers the kinds of every task)
    from lmlab.learn.about_settings import settings as described
    from lmlab.models import registry

    lines = [
        "# Settings of models",
        "",
        "Set one with `--set name=value`; `auto` is chosen by the text and the budget.",
    ]
    lines += ["`lmlab settings MODEL TEXT` says what they come to for a text.", ""]
    learning = None
    for kind in registry.trainable():
        found = described(kind)
        lines += [f"## `{kind}`", "", f"{found.about[:1].upper()}{found.about[1:]}.", "", *_table(found.settings), ""]
        learning = learning or found.learning
    lines += ["## Training", "", "Set one with `--learn name=value`.", "", *_table(learning or [])]
    return "\n".join(lines) + "\n"


def _table(settings: Any) -> list[str]:
    if not settings:
        return ["It has no settings."]
    rows = []
    for setting in settings:
        default = "auto" if setting.default is None else setting.default
        rows.append(f"| `{setting.name}` | {_cell(setting.meaning)} | {_cell(setting.kind)} | `{default}` |")
    return ["| setting | meaning | values | default |", "| --- | --- | --- | --- |", *rows]


if __name__ == "__main__":
    main()
