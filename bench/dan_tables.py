"""Tables of labelled texts that `bench_dan.py` learns from beside film reviews, made from what lies on the machine.

authors    who wrote a paragraph: the named table `authors`, books of Project Gutenberg
pages      the topic of a documentation page: docstrings of installed packages, labelled with the package
languages  the language of a sentence: captions of Multi30k in English, German and French
"""

from __future__ import annotations

import ast
import importlib.util
import random
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

PACKAGES = ("matplotlib", "numpy", "sympy", "torch")  # and Python's own library
SHORTEST, MOST = 200, 1500  # characters of a page; pages of a package
SENTENCES = 2000  # of a language
LANGUAGES = ("en", "de", "fr")


def authors(data: Path, folder: Path) -> str | None:
    """Return the name of the table."""
    return "authors"


def pages(data: Path, folder: Path) -> Path | None:
    """Write the docstrings of functions and classes, a row each; tests and copies are left out."""
    places = {name: importlib.util.find_spec(name) for name in PACKAGES}
    folders = {name: Path(spec.origin).parent for name, spec in places.items() if spec is not None and spec.origin}
    folders["python"] = Path(sysconfig.get_path("stdlib"))
    seen: set[str] = set()
    rows = []
    for label, place in sorted(folders.items()):
        found = []
        for page in _docstrings(place):
            if page not in seen:
                seen.add(page)
                found.append(page)
        random.Random(0).shuffle(found)
        rows += [f"{page}\t{label}\n" for page in found[:MOST]]
    return _written(folder / "pages.tsv", rows)


def languages(data: Path, folder: Path) -> Path | None:
    """Write the first captions of each language, a row each; None where Multi30k is absent."""
    files = {label: data / "multi30k" / f"train.{label}" for label in LANGUAGES}
    if not all(file.exists() for file in files.values()):
        return None
    rows = []
    for label, file in files.items():
        lines = file.read_text(encoding="utf-8").splitlines()[:SENTENCES]
        rows += [f"{' '.join(line.split())}\t{label}\n" for line in lines if line.strip()]
    return _written(folder / "languages.tsv", rows)


def _docstrings(place: Path) -> Iterator[str]:
    """Yield the docstrings below a folder that are long enough, in the order of file names, as one line each."""
    for path in sorted(place.rglob("*.py")):
        inside = path.relative_to(place).parts
        if "site-packages" in inside or any(part.startswith("test") for part in inside):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):  # some packages hold files that are no Python
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                text = " ".join((ast.get_docstring(node) or "").split())
                if len(text) >= SHORTEST:
                    yield text


def _written(path: Path, rows: list[str]) -> Path:
    path.write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    return path


TABLES: dict[str, tuple[str, Callable[[Path, Path], str | Path | None]]] = {
    "authors": ("who wrote a paragraph", authors),
    "pages": ("topic of a documentation page", pages),
    "languages": ("language of a sentence", languages),
}
