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
        (["gradient"], "gradient is no run and no topic; did you mean lmlab explain gradients?"),
        (["gradients", "--scales", "big"], "--scales is numbers with commas between them, such as 0.5,2; got 'big'"),
        (["gradients", "--cells", "lsm"], "'lsm' is no recurrent cell; did you mean 'lstm'?"),
        (["gradients", "--scales", "0"], "--scales multiply the recurrent weights: numbers above 0, such as 0.5,1,2"),
        (["positions", "--width", "7"], "--width is an even number from 2 to 512"),
        (
            ["dot-products", "--widths", "2.5"],
            "--widths are whole numbers with commas between them, such as 4,64; got '2.5'",
        ),
        (["dot-products", "--draws", "1"], "--keys and --draws are whole numbers from 2 up"),
        (["sandbox", "--query-a", "21"], "--query-a is a number from 0 to 20; got 21"),
        (["sandbox", "--temperature", "hot"], "Invalid value for '--temperature'"),
        (["gradients", "--clip", "-1"], "--clip 1.0"),
    ],
)
def test_a_mistake_is_answered_with_one_line(lmlab: Lmlab, words: list[str], said: str) -> None:
    refused(lmlab("explain", *words), said)
