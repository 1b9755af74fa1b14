"""`lmlab explain TOPIC` on the command line: numbers, JSON, files, and mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Lmlab, done, refused

FAST = {
    "gradients": ["--cells", "rnn", "--width", "4", "--length", "6", "--no-train"],
    "sandbox": ["--samples", "20"],
    "positions": ["--width", "8", "--length", "12"],
    "dot-products": ["--widths", "4,16", "--draws", "20"],
}


@pytest.mark.parametrize("topic", FAST)
def test_a_topic_prints_a_table_or_json_and_writes_the_same_picture_twice(
    lmlab: Lmlab, topic: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    out = done(lmlab("explain", topic, *FAST[topic], "--svg", first))
    assert f"Written: {first}" in out
    assert "±" not in out or "± is one standard error" in " ".join(out.split())
    out = done(lmlab("explain", topic, *FAST[topic], "--json", "--svg", second))
    assert json.loads(out)["seed"] == 0
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gradient"], "topic-unknown"),
        (["gradients", "--scales", "big"], "numbers-not-understood"),
        (["gradients", "--cells", "lsm"], "did you mean 'lstm'?"),
        (["gradients", "--scales", "0"], "scales-not-positive"),
        (["positions", "--width", "7"], "positions-width-odd"),
        (
            ["dot-products", "--widths", "2.5"],
            "whole-numbers-not-understood",
        ),
        (["dot-products", "--draws", "1"], "draws-below-two"),
        (["sandbox", "--query-a", "21"], "sandbox-out-of-range"),
        (["sandbox", "--temperature", "hot"], "for '--temperature'"),
        (["gradients", "--clip", "-1"], "--clip 1.0"),
    ],
)
def test_a_mistake_is_answered_with_one_line(lmlab: Lmlab, words: list[str], said: str) -> None:
    refused(lmlab("explain", *words), said)
