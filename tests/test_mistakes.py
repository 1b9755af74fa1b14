"""Mistakes are told apart by their codes: in the code, where each has its own, and in tests, which quote no sentence."""

from __future__ import annotations

import ast
import functools
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmlab.config import Mistake
from mistakes import LONGEST_WORDS, mistake
from parsed import nodes

ROOT = Path(__file__).parents[1]
KINDS = {"Mistake", "Refusal", "CorpusUnavailable", "SizesUnknown"}
CALLS = re.compile(rf"\b({'|'.join(sorted(KINDS))})\s*\(")
SAID = re.compile(r"\b(match|err|stderr|error|caught)\b")  # what `sentences` looks for: without any, there are none
PASSED_ON = {  # files that make a mistake again, with the code of the first
    "src/lmlab/comparison/measure_apart.py",
    "src/lmlab/compression/compress_files.py",
    "derive/src/lmlab_derive/shared/mistakes.py",
}
IN_SEVERAL_PLACES = {  # why one code is made there
    "argument-empty": "the command line and Python ask for themselves",
    "heads-do-not-divide-width": "several models have heads",
    "language-unknown": "translating and looking inside a translator both name a language",
    "no-entry-found": "sizes are drawn, or there are none",
    "out-is-folder": "the lab and the checker write files",
    "part-empty": "every task measures a part of its own kind of data",
    "part-unknown": "measuring and listing mistakes both name a part",
    "run-is-no-translator": "translating and measuring translations both need one",
    "sacrebleu-missing": "asked for before work begins, and where it is used",
    "settings-change-weights": "two tasks begin with another run's weights",
    "symbols-needed": "two tasks need ids that no text has",
    "text-binary": "found in the first bytes, or at the first that is not UTF-8",
    "too-many-axes": "arrays grow axes in three ways",
    "word-without-vector": "neighbours and combiners both look words up",
}
SENTENCES = "test_messages.py"  # the files that quote sentences


def made(path: Path) -> Iterator[ast.Call]:
    """The calls in a file that make a mistake. Most files make none, and need not be parsed to know it."""
    if not CALLS.search(path.read_text(encoding="utf-8")):
        return
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS:
            yield node


def code_of(call: ast.Call) -> str | None:
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "code"), None)
    return given.value if isinstance(given, ast.Constant) else None


@functools.cache
def places() -> dict[str | None, list[str]]:
    found: dict[str | None, list[str]] = {}
    for tree in ("src", "derive/src"):
        for path in sorted((ROOT / tree).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            for call in made(path):
                code = code_of(call)
                if code is not None or name not in PASSED_ON:
                    found.setdefault(code, []).append(f"{name}:{call.lineno}")
    return found


def test_every_mistake_has_a_code_of_its_own() -> None:
    found = dict(places())
    assert found.pop(None, []) == []
    several = {code: where for code, where in found.items() if len(where) > 1 and code not in IN_SEVERAL_PLACES}
    assert several == {}
    assert {code for code in IN_SEVERAL_PLACES if len(found.get(code, [])) < 2} == set()


def test_a_code_is_words_with_hyphens() -> None:
    assert [code for code in places() if code and not all(word.isalnum() for word in code.split("-"))] == []
    assert [code for code in places() if code and (code != code.lower() or len(code) > 40)] == []


def sentences(source: str) -> list[int]:
    """The lines where a test compares an error's words, or what a command said on stderr, with a sentence."""
    found: list[int] = []
    if not SAID.search(source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "match":
            said: ast.AST = node.value
        elif isinstance(node, ast.Compare) and _is_of_an_error(node):
            said = node
        else:
            continue
        texts = [
            part.value for part in ast.walk(said) if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        if max(map(len, texts), default=0) > LONGEST_WORDS:
            found.append(node.value.lineno if isinstance(node, ast.keyword) else node.lineno)
    return found


def _is_of_an_error(node: ast.Compare) -> bool:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return bool({"err", "stderr"} & (names | attributes) or ("value" in attributes and {"error", "caught"} & names))


def test_only_the_tests_of_messages_quote_sentences() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for tree in ("tests", "derive/tests")
        for path in (ROOT / tree).rglob("test_*.py")
        if path.name != SENTENCES and (lines := sentences(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "planted",
    [
        'with pytest.raises(Mistake, match="there is no file or folder of that name"): pass',
        'assert "there is no file or folder of that name" in err',
        'assert capsys.readouterr().err == "there is no file or folder of that name"',
        'assert "there is no file or folder of that name" in str(error.value)',
    ],
)
def test_a_planted_sentence_is_found(planted: str) -> None:
    assert sentences(planted) == [1]


def test_the_helper_takes_codes_and_few_words_and_no_sentence() -> None:
    def wrong() -> None:
        raise Mistake("there is no file or folder of that name", code="text-not-found")

    with mistake("text-not-found", "no file"):
        wrong()
    for words in ("text-empty", "no such", "there is no file or folder of that name"):
        with pytest.raises(AssertionError), mistake(words):
            wrong()


def test_a_mistake_keeps_its_code_wherever_it_goes() -> None:
    first = Mistake("set {beam_width} or more", code="beam-narrower-than-best", beam_width=3)
    called = first.called({"beam_width": "beam"})
    assert (called.code, str(called)) == ("beam-narrower-than-best", "set beam=3 or more")
    sent = pickle.loads(pickle.dumps(first))
    assert (sent.code, sent.settings, str(sent)) == (first.code, first.settings, str(first))
    assert Mistake("of a model of others").code == ""
