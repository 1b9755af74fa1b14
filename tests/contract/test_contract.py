"""The contract suite: one list of promises, kept by every registered model over every kind of tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import VARIANTS, Case, build, cases
from checks import Check, check_measuring_certifies_it, checks_for

from lmlab.models.registry import MODELS

PROMISES = [
    pytest.param(case, check, id=f"{check.__name__.removeprefix('check_')}-{case}")
    for case in cases()
    for check in checks_for(case)
]


@pytest.mark.parametrize(("case", "check"), PROMISES)
def test_every_model_keeps_every_promise(case: Case, check: Check) -> None:
    check(build(case))


@pytest.mark.parametrize("case", cases(), ids=str)
def test_measuring_certifies_every_model(case: Case, tmp_path: Path) -> None:
    check_measuring_certifies_it(build(case), tmp_path)


def test_every_registered_model_is_in_the_suite() -> None:
    assert set(VARIANTS) == set(MODELS)
