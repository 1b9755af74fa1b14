"""Every gradient, identity and shape answer of the five course documents, written in the language.

They test the checker alone: `make test` runs them when a file of the checker or of theirs has changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lmlab_derive import check

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parent / "derivations"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.derive")), ids=lambda path: path.stem)
def test_the_documents_formulas_get_the_right_verdict(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    wrong = []
    for claim in check(text).claims:
        note = lines[claim.line - 1].partition("#")[2].strip()
        assert note.startswith(("holds: ", "fails: ")), f"line {claim.line} of {path.name}: {claim.reason}"
        if claim.holds != note.startswith("holds"):
            wrong.append(f"{path.name} line {claim.line}: {claim.verdict}, {claim.reason}")
    assert not wrong
