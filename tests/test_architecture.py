"""The house is built as docs/architecture.md says: who imports whom, no circles, nothing decided by a name."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsed import nodes, tree

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"lmlab": ROOT / "src" / "lmlab", "lmlab_derive": ROOT / "derive" / "src" / "lmlab_derive"}
TREES = list(SOURCES)
USERS_OF_THE_CHECKER = {"coursework", "cli"}  # the other rooms of the lab import `lmlab_derive.shared` alone
MAY_CITE = (  # the course documents: their claims, the verb that runs them, and the pages about them
    "src/lmlab/coursework/",
    "src/lmlab/cli/commands/prove.py",
    "tests/coursework/",
    "tests/golden/",
    "tests/page/test_pages.py",
    "tests/test_architecture.py",
    "tests/test_wheel.py",
    "docs/coursework.md",
    "docs/perplexity.md",
    "docs/sources.md",
    "docs/tour.md",
    "README.md",
)
TEXTS = (".py", ".md", ".toml", ".json", ".js", ".css", ".c", ".h", ".ipynb", ".derive", ".yml")
ABOVE = "everything above"


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of both packages by its dotted name."""
    found = {}
    for package, source in SOURCES.items():
        for path in sorted(source.rglob("*.py")):
            parts = (package, *path.relative_to(source).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def package(name: str) -> str:
    """The distribution that a module belongs to."""
    return name.partition(".")[0]


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _for_running(parsed: ast.Module) -> Iterator[ast.AST]:
    """Every node of a module but those that are for the sake of types alone."""
    waiting: list[ast.AST] = [parsed]
    while waiting:
        node = waiting.pop()
        if not _only_for_types(node):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


@functools.cache
def imported(name: str) -> frozenset[str]:
    """Modules of both packages that the import statements of a module name, anywhere in it."""
    found: set[str] = set()
    for node in _for_running(tree(modules()[name])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{name}: relative imports hide where a thing is"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {n if n in modules() else node.module for n in names}
    return frozenset(n for n in found if n in modules() and n != name)


IMPORTERS = {"import_module", "__import__", "find_spec", "run_module", "resolve_name"}
NAMED_BY_A_VARIABLE = {  # modules that import what a table names; the strings of these tables are read like imports
    "lmlab.comparison.executors",  # classes of executors
    "lmlab.models.registry",  # classes of models, those of others included
    "lmlab.plugins",
    "lmlab.tasks",  # the files of a task, by the package that registers them
    "lmlab",  # the names that `__init__.pyi` lists
    "lmlab.coursework.assignment2.perplexity",  # modules of the standard library
    "lmlab.coursework.choosing",  # its own packages, one a document
}


def strings_of_modules(parsed: ast.Module) -> set[str]:
    """Modules of both packages that strings of a module name: "lmlab.x.y", "lmlab.x:Class", and beginnings of f-strings.

    A string counts wherever it stands, so that a table of modules cannot hide what is imported. Of a call that imports, every
    string within the arguments counts by the longest module that it begins with.
    """
    found, importers = set(), _importers(parsed)
    for node in _for_running(parsed):
        if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            found.add(_module_that_begins(str(node.values[0].value)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"lmlab(_derive)?(\.\w+)+(:[\w.]+)?", node.value):
                found.add(_module_that_begins(node.value))
        elif isinstance(node, ast.Call) and _called(node) in importers:
            inside = (n for argument in node.args for n in ast.walk(argument))
            found |= {_module_that_begins(n.value) for n in inside if isinstance(n, ast.Constant)}
    return {name for name in found if name}


def _module_that_begins(text: object) -> str:
    """The longest name of a module or package below the two top ones that a string begins with; "": there is none."""
    parts = text.partition(":")[0].strip(".").split(".") if isinstance(text, str) else []
    names = (".".join(parts[:end]) for end in range(len(parts), 1, -1))
    return next((name for name in names if name in modules()), "")


def _called(node: ast.Call) -> str:
    """The name of the function that is called, without the module that it is from."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _importers(parsed: ast.Module) -> set[str]:
    """What a module calls the functions that import."""
    statements = (node for node in _for_running(parsed) if isinstance(node, ast.ImportFrom))
    return IMPORTERS | {
        alias.asname for node in statements for alias in node.names if alias.asname and alias.name in IMPORTERS
    }


def imports_by_a_variable(parsed: ast.Module) -> list[int]:
    """Lines of calls that import a module whose name does not begin with a string that is written there."""
    importers = _importers(parsed)
    calls = (node for node in _for_running(parsed) if isinstance(node, ast.Call) and _called(node) in importers)
    return [call.lineno for call in calls if not (call.args and _begins_with_text(call.args[0]))]


def _begins_with_text(name: ast.expr) -> bool:
    """Whether a name begins with a string, or with the name of the module in which it stands."""
    if isinstance(name, ast.BinOp):
        return _begins_with_text(name.left)
    if isinstance(name, ast.JoinedStr):
        first = name.values[0]
        return isinstance(first, ast.Constant) or ast.unparse(first).strip("f'\"{}") == "__name__"
    return isinstance(name, ast.Constant)


@functools.cache
def named(name: str) -> frozenset[str]:
    """Modules of both packages that a module imports, by statements or by strings."""
    return imported(name) | {other for other in strings_of_modules(tree(modules()[name])) if other != name}


def room(name: str) -> str:
    """The package or file of the first level that a module belongs to."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def rooms(tree: str) -> dict[str, list[str]]:
    """The modules of every room of a package; its own file and `__main__` are in none."""
    found: dict[str, list[str]] = {}
    for name in modules():
        if package(name) == tree and room(name) not in ("", "__main__"):
            found.setdefault(room(name), []).append(name)
    return found


@functools.cache
def table(tree: str) -> dict[str, str]:
    """Rooms of a package in their order, with what each may import, as the page says it."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    page = page.partition(f"## The rooms of `{tree}`")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w./]+)` \| .* \| ([^|]+) \|$", page, flags=re.MULTILINE)
    return {name.rstrip("/").removesuffix(".py"): allowed.strip() for name, allowed in rows}


@pytest.mark.parametrize("tree", TREES)
def test_the_page_names_every_room_and_no_other(tree: str) -> None:
    assert set(table(tree)) == set(rooms(tree))


@pytest.mark.parametrize("tree", TREES)
def test_every_import_is_one_that_the_page_allows(tree: str) -> None:
    order, wrong = list(table(tree)), []
    for here, names in rooms(tree).items():
        allowed = table(tree)[here]
        may = set(order[: order.index(here)]) if allowed == ABOVE else set(re.findall(r"[\w]+", allowed)) - {"nothing"}
        unknown = may - set(order)
        assert not unknown, f"the page lets {here} import {unknown}, which are no rooms"
        within = {other for name in names for other in named(name) if package(other) == tree}
        wrong += [f"{here} imports {other}" for other in within if room(other) not in may | {here, ""}]
    assert wrong == []


@pytest.mark.parametrize(
    "planted",
    [
        'TASK = "lmlab.tasks.masked.learner:Masking"',
        'HOMES = {"lmlab.tasks.masked": ("fill",)}',
        'importlib.import_module("lmlab.tasks.masked")',
        'import_module(f"lmlab.tasks.masked.{part}")',
        'import_module("lmlab.tasks.masked." + part)',
        '__import__("lmlab.tasks.masked.learner", fromlist=["Masking"])',
        "from importlib import import_module as load\nload(f'lmlab.tasks.masked.{part}')",
        "from importlib import import_module as load\nload('lmlab.tasks.masked.' + part)",
    ],
)
def test_an_import_by_a_string_is_found(planted: str) -> None:
    assert {room(name) for name in strings_of_modules(ast.parse(planted))} == {"tasks"}


def test_strings_that_name_no_module_are_no_imports() -> None:
    words = [
        '"lmlab.models."',
        '"lmlab.compare"',
        '"see lmlab.tasks.masked"',
        'if TYPE_CHECKING:\n    x = "lmlab.tasks"',
    ]
    assert [strings_of_modules(ast.parse(text)) for text in words] == [set()] * len(words)


def test_only_a_few_modules_import_what_a_variable_names() -> None:
    assert imports_by_a_variable(ast.parse("import_module(kind.home)")) == [1]
    parsed = {name: tree(path) for name, path in modules().items()}
    assert {name for name, module in parsed.items() if imports_by_a_variable(module)} == NAMED_BY_A_VARIABLE


@pytest.mark.parametrize("tree", TREES)
def test_the_page_lists_rooms_below_those_they_import(tree: str) -> None:
    order = list(table(tree))
    for here, allowed in table(tree).items():
        if allowed not in (ABOVE, "nothing"):
            assert all(order.index(other) < order.index(here) for other in re.findall(r"[\w]+", allowed)), here


def test_the_checker_and_its_tests_import_neither_torch_nor_the_lab() -> None:
    allowed = {"lmlab_derive", "mpmath", "numpy", "rich", "typer", *sys.stdlib_module_names}
    in_tests = {"hypothesis", "pytest", "refusals", "sheet_strategies"}
    for path in sorted((ROOT / "derive").rglob("*.py")):
        statements = [n for n in nodes(path) if isinstance(n, ast.Import | ast.ImportFrom)]
        names = {alias.name for n in statements if isinstance(n, ast.Import) for alias in n.names}
        names |= {str(n.module) for n in statements if isinstance(n, ast.ImportFrom)}
        assert {package(other) for other in names} - allowed <= (in_tests if "tests" in path.parts else set()), path


def test_only_few_rooms_of_the_lab_import_more_of_the_checker_than_what_is_shared() -> None:
    wrong = [
        f"{name} imports {other}"
        for here, names in rooms("lmlab").items()
        if here not in USERS_OF_THE_CHECKER
        for name in names
        for other in named(name)
        if package(other) == "lmlab_derive" and room(other) != "shared"
    ]
    assert wrong == []


def test_only_the_command_line_imports_the_package_itself() -> None:
    users = {name for name in modules() if room(name) not in ("", "cli") and "lmlab" in imported(name)}
    assert users <= {"lmlab.comparison.measure_apart"}, "`import lmlab` offers every room, whatever the page allows"


def test_no_room_but_the_verbs_imports_the_claims_of_the_course_documents() -> None:
    users = {room(name) for name in modules() if any(room(other) == "coursework" for other in named(name))}
    assert users <= {"coursework", "cli"}


def test_the_course_documents_are_cited_where_their_claims_are_and_nowhere_else() -> None:
    names = re.compile(r"\b(week ?2|quiz ?1|assignment ?2|lab ?11|bishop ?12)\b", re.IGNORECASE)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("what belongs to the project is asked of git")
    files = [name for name in listed.stdout.splitlines() if name.endswith(TEXTS) and not name.startswith(MAY_CITE)]
    assert len(files) > 800
    assert [name for name in files if names.search((ROOT / name).read_text(encoding="utf-8"))] == []


def test_no_circle_between_files() -> None:
    graph = {name: imported(name) for name in modules() if room(name) not in ("", "__main__")}
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


def model_names() -> set[str]:
    from lmlab.models import registry

    return set(registry.names())


def _strings(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def test_nothing_is_decided_by_comparing_the_name_of_a_model() -> None:
    # The registry names them; claims are about single ones; to the checker "uniform" is a distribution.
    names = model_names()
    compared = [
        f"{where}, line {node.lineno}: {sorted(_strings(node) & names)}"
        for where, path in modules().items()
        if package(where) == "lmlab" and room(where) not in ("models", "coursework")
        for node in nodes(path)
        if isinstance(node, ast.Compare) and _strings(node) & names
    ]
    assert compared == []


def _undocumented(node: ast.AST, prefix: str) -> list[str]:
    """Public classes and functions below a node that have no docstring."""
    found = []
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.ClassDef | ast.FunctionDef) or child.name.startswith("_"):
            continue
        decorators = {ast.unparse(d) for d in child.decorator_list}
        if not ast.get_docstring(child) and "overload" not in decorators:
            found.append(prefix + child.name)
        if isinstance(child, ast.ClassDef):
            found += _undocumented(child, f"{prefix}{child.name}.")
    return found


def test_public_names_say_what_they_are() -> None:
    parsed = {where: tree(path) for where, path in modules().items()}
    silent = [where for where, module in parsed.items() if module.body and not ast.get_docstring(module)]
    assert silent + [name for where, module in parsed.items() for name in _undocumented(module, f"{where}.")] == []


def test_the_text_needs_no_torch() -> None:
    """Which takes seconds to load: who only looks at a text does not wait for it."""
    # `import lmlab` registers every task, which must cost nothing either.
    script = "import sys, lmlab.text.tokenizers, lmlab.text.stream; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
