"""What a change is not meant to move must not: ten steps, scores, costs, texts, intervals, records, documents.

`python tests/golden/make_golden.py` writes the values anew and says which moved; the commit says why.

Tolerances were measured by instructions of one processor (MKL_ENABLE_INSTRUCTIONS, ONEDNN_MAX_CPU_ISA,
ATEN_CPU_CAPABILITY): AVX-512 against AVX2 and SSE 4. Scores of kept weights then differ by 1e-7 of themselves, or by 2e-7 bits
near 0. Weights of a mix that are fitted anew differ by 5e-3. A group allows some times as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import golden_models
import golden_uses
import pytest
from golden_groups import GROUPS
from golden_places import Place
from golden_records import verbs_without_a_document
from golden_values import VALUES, Group, plain

from lmlab.cli import commands
from lmlab.hardware.c_kernels import SWITCH
from lmlab.models.registry import KINDS, Role, Way

BY_NAME = {group.name: group for group in GROUPS}


def every_case() -> Iterator[Any]:
    for group in GROUPS:
        for case in group.cases:
            marks = [pytest.mark.slow] if case in group.slow else []
            yield pytest.param(group, case, id=f"{group.name}: {case}", marks=marks)


@pytest.mark.parametrize(("group", "case"), list(every_case()))
def test_it_is_what_it_was(group: Group, case: str, place: Place) -> None:
    assert group.moved(group.golden()[case], plain(group.measure(case, place))) == []


def test_every_kept_value_belongs_to_a_case() -> None:
    assert {path.stem for path in VALUES.iterdir()} == set(BY_NAME)
    assert {group.name: set(group.golden()) ^ set(group.cases) for group in GROUPS} == {name: set() for name in BY_NAME}


def test_every_registered_kind_has_golden_values() -> None:
    kinds = {
        golden_models.kind(case) for case in (*golden_models.LEARNED, *golden_models.COUNTED, *golden_models.MIXES)
    }
    assert kinds == set(KINDS)
    assert {golden_models.kind(case) for case in golden_models.COSTS} == golden_models.kinds(Way.LEARNS, Way.COUNTS)


def test_every_kind_of_the_kept_runs_is_still_registered(kept: Any) -> None:
    """A kind that is younger than the kept runs has none."""
    import lmlab

    other, predicting = golden_uses.OTHERS, golden_uses.LANGUAGE_MODELS
    found = {name.split()[0]: lmlab.load(kept / name.split()[0]).record.model.name for name in (*other, *predicting)}
    assert set(found.values()) <= set(KINDS)
    assert len(found) == len(other) + len({name.split()[0] for name in predicting})
    assert all(KINDS[found[name]].role is not Role.LANGUAGE_MODEL for name in other)


def test_of_every_verb_and_topic_the_keys_are_kept() -> None:
    assert verbs_without_a_document(set(commands.names())) == set()


@pytest.mark.slow
@pytest.mark.parametrize("case", ["gpt", "gpt learned", "gru", "rnn", "lstm", "rnn-attention", "cnn", "variational"])
def test_functions_in_c_come_to_the_same_but_for_rounding(
    case: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "always")
    group = BY_NAME["learned"]
    assert group.moved(group.golden()[case], plain(group.measure(case, place))) == []


@pytest.mark.parametrize("case", ["ngram words", "ngram 5"])
def test_functions_in_c_count_the_same_to_the_last_bit(
    case: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "always")
    golden, found = BY_NAME["counted"].golden()[case], plain(BY_NAME["counted"].measure(case, place))
    assert found["hash"] == golden["hash"]
