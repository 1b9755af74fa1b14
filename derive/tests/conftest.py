"""What tests share. Of the longest lists of claims the fast suite takes one in a few; `make test-all` takes all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lmlab_derive.command.app import main

ONE_IN = {
    "test_the_derivative_of_an_exact_mean_is_decided": 6,
    "test_the_smaller_and_the_larger_of_two_are_asked_one_by_one": 6,
    "test_averages_that_are_estimated_tell_a_value_from_one_a_percent_away": 5,
    "test_the_length_of_a_normal_vector_is_one_number": 5,
    "test_the_mean_of_a_row_of_a_recursion_is_that_of_its_own_row": 5,
    "test_a_planted_error_of_one_percent_is_refuted": 6,
    "test_the_derivative_of_an_integrated_mean_is_decided_at_one_seed": 4,
    "test_notation_means_what_mathematics_means": 5,
    "test_a_right_claim_holds": 5,
    "test_a_wrong_claim_is_refuted": 5,
    "test_what_is_right_in_the_corners_holds": 5,
    "test_the_slip_is_named_and_the_repaired_formula_holds": 5,
    "test_the_derivative_by_an_entry_is_a_column": 3,
    "test_an_entry_of_a_jacobian_has_the_place_above_first": 4,
    "test_a_right_derivative_holds": 3,
    "test_latex_means_what_it_means_on_paper": 2,
    "test_a_bound_that_is_nearly_attained_holds": 3,
    "test_a_bound_that_is_broken_in_few_places_fails": 2,
    "test_a_bound_of_a_sum_is_tried_at_millions_of_terms": 3,
    "test_a_row_by_a_row_keeps_the_other_axes_of_both": 2,
    "test_a_sum_of_more_terms_than_long_decimals_take_is_known_with_its_error": 3,
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before slow tests are left out, call so the ones that a list can spare."""
    seen: dict[str, int] = {}
    for item in items:
        name = getattr(item, "originalname", "")
        if name in ONE_IN:
            seen[name] = seen.get(name, -1) + 1
            if seen[name] % ONE_IN[name]:
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def derive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line as the script would, in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["derive", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    return run
