"""The house is built as docs/architecture.md says: who imports whom, no circles, no long files, nothing decided by a name."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "lmlab"
LONGEST = 400  # lines of a file
ABOVE = "everything above"


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ("lmlab", *path.relative_to(SOURCE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@functools.cache
def imported(name: str) -> frozenset[str]:
    """Modules of the package that a module imports, anywhere in it, except for the sake of types alone."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree(modules()[name])]
    while waiting:
        node = waiting.pop()
        if _only_for_types(node):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{name}: relative imports hide where a thing is"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {n if n in modules() else node.module for n in names}
        waiting.extend(ast.iter_child_nodes(node))
    return frozenset(n for n in found if n in modules() and n != name)


def room(name: str) -> str:
    """The package or file of the first level that a module belongs to."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "lmlab"


def table() -> dict[str, str]:
    """Rooms in their order, with what each may import, as the page says it."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w./]+)` \| .* \| ([^|]+) \|$", page, flags=re.MULTILINE)
    return {name.rstrip("/").removesuffix(".py"): allowed.strip() for name, allowed in rows}


def test_the_page_names_every_room_and_no_other() -> None:
    rooms = {room(name) for name in modules()} - {"lmlab", "__main__"}
    assert set(table()) == rooms


def test_every_import_is_one_that_the_page_allows() -> None:
    order, wrong = list(table()), []
    for name in modules():
        here = room(name)
        if here in ("lmlab", "__main__"):
            continue
        allowed = table()[here]
        may = set(order[: order.index(here)]) if allowed == ABOVE else set(re.findall(r"[\w]+", allowed)) - {"nothing"}
        unknown = may - set(order)
        assert not unknown, f"the page lets {here} import {unknown}, which are no rooms"
        wrong += [f"{name} imports {other}" for other in imported(name) if room(other) not in may | {here, "lmlab"}]
    assert wrong == []


def test_the_page_lists_rooms_below_those_they_import() -> None:
    order = list(table())
    for here, allowed in table().items():
        if allowed not in (ABOVE, "nothing"):
            assert all(order.index(other) < order.index(here) for other in re.findall(r"[\w]+", allowed)), here


def test_no_circle_between_files() -> None:
    graph = {name: imported(name) for name in modules() if name not in ("lmlab", "lmlab.__main__")}
    done: set[str] = set()

    def circle(name: str, path: tuple[str, ...]) -> tuple[str, ...] | None:
        if name in path:
            return (*path[path.index(name) :], name)
        if name in done or name not in graph:
            return None
        for other in sorted(graph[name]):
            if found := circle(other, (*path, name)):
                return found
        done.add(name)
        return None

    assert [found for name in sorted(graph) if (found := circle(name, ()))] == []


def test_no_file_is_too_long() -> None:
    long = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}
    assert {name: lines for name, lines in long.items() if lines > LONGEST} == {}


def model_names() -> set[str]:
    from lmlab.models import registry

    return set(registry.names())


def _strings(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


@pytest.mark.parametrize("where", sorted(modules()))
def test_nothing_is_decided_by_comparing_the_name_of_a_model(where: str) -> None:
    # The registry names them; the ledger's claims are about single ones; to the checker "uniform" is a distribution.
    if room(where) in ("models", "ledger", "checker"):
        return
    compared = [
        f"line {node.lineno}: {sorted(_strings(node) & model_names())}"
        for node in ast.walk(tree(modules()[where]))
        if isinstance(node, ast.Compare) and _strings(node) & model_names()
    ]
    assert compared == []


@pytest.mark.parametrize("where", sorted(modules()))
def test_public_names_say_what_they_are(where: str) -> None:
    def lacking(node: ast.AST, prefix: str = "") -> list[str]:
        found = []
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.ClassDef | ast.FunctionDef) or child.name.startswith("_"):
                continue
            decorators = {ast.unparse(d) for d in child.decorator_list}
            if not ast.get_docstring(child) and "overload" not in decorators:
                found.append(prefix + child.name)
            if isinstance(child, ast.ClassDef):
                found += lacking(child, f"{prefix}{child.name}.")
        return found

    module = tree(modules()[where])
    assert ast.get_docstring(module) or not module.body, "the module says nothing of itself"
    assert lacking(module) == []


def test_the_text_needs_no_torch() -> None:
    """Which takes seconds to load: who only looks at a text does not wait for it."""
    script = "import sys, lmlab.text.tokenizers, lmlab.text.stream; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
