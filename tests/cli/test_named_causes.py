"""What is refused is refused for the reason it is wrong, and before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Lmlab, refused


@pytest.fixture
def run(lmlab: Lmlab, small_text: Path) -> str:
    assert lmlab("train", "ngram", small_text, "--out", "run")[0] == 0
    return "run"


def test_texts_and_lines_are_not_scored_together(lmlab: Lmlab, run: str) -> None:
    refused(lmlab("score", run, "a", "--lines", "small.txt"), "text-beside-lines")
    refused(lmlab("score", run), "nothing-to-score")


@pytest.mark.parametrize("more", [[], ["small.txt"], ["small.txt", "--out", "other"]])
def test_beginning_with_a_run_and_going_on_with_one_are_two_things(lmlab: Lmlab, run: str, more: list[str]) -> None:
    refused(lmlab("train", "--from", run, "--resume", *more), "resume-beside-from")


def test_a_sweep_without_a_part_to_measure_on_trains_nothing(lmlab: Lmlab, small_text: Path) -> None:
    sweep = ["sweep", "ngram", "small.txt", "--over", "order=2,3", "--out", "s"]
    refused(lmlab(*sweep, "--split", "100,0,0"), "sweep-without-held-out-part")
    assert not Path("s").exists()


def test_what_is_no_compressed_file_is_said_to_be_none(lmlab: Lmlab, run: str) -> None:
    asked = ["--model", run, "--out", "back.txt"]
    refused(lmlab("decompress", run, *asked), "compressed-file-not-found")
    refused(lmlab("decompress", "gone.lml", *asked), "compressed-file-not-found")
