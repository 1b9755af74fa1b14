"""Ten steps of every learned model and the scores of all: a change that is not meant to move them must not.

`python tests/golden/test_golden.py` writes the values anew (say in the commit why they moved); `--show` prints them with all
their digits, to hold two versions against each other on one machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

import lmlab
from lmlab.models.registry import Way, kind_of

VALUES = Path(__file__).with_name("golden.json")
STEPS = 10
SETTINGS: dict[str, dict[str, object]] = {
    "uniform": {},
    "bag": {},
    "ngram": {"order": 4},
    "bigram": {"width": 24},
    "feedforward": {"context": 4, "embedding_width": 16, "width": 32, "dropout": 0.1},
    "attention": {"context": 8, "width": 16},
    "rnn": {"width": 32, "layers": 1, "dropout": 0.0},
    "gru": {"width": 32, "layers": 2, "dropout": 0.1},
    "lstm": {"width": 32, "layers": 1, "dropout": 0.0},
    "rnn-attention": {"width": 32},
    "gpt": {"layers": 2, "width": 32, "heads": 2, "context": 16, "dropout": 0.1},
}
TEXT = (
    "She sells sea shells by the sea shore; the shells she sells are surely seashells.\n"
    "Peter Piper picked a peck of pickled peppers. Where is the peck that Peter Piper picked?\n"
    "How much wood would a woodchuck chuck if a woodchuck could chuck wood? 12, 30 or 4,567 pieces!\n"
) * 30


def measured(model: str, folder: Path, tokenizer: str = "char") -> dict[str, float]:
    """The training loss over ten steps (nats per token) and the total nats of a part the model was trained on."""
    text = folder / "golden.txt"
    text.write_text(TEXT)
    run = lmlab.train(
        model,
        text,
        out=folder / f"{model}-{tokenizer.replace(':', '')}",
        tokenizer=tokenizer,
        budget=f"{STEPS}steps",
        settings=SETTINGS[model],
        learning={"calibrate": False}
        if kind_of(model).way is Way.LEARNS
        else None,  # the bits of ten steps and no more
        device="cpu",
        precision="float32",
    )
    found = {"total_nats": float(lmlab.evaluate(run, part="test").scored.total_nats)}
    if run.metrics:
        found["train_nats_per_token"] = float(run.metrics[-1]["train_nats_per_token"])
    return found


def all_measured(folder: Path) -> dict[str, dict[str, float]]:
    found = {f"{name} char": measured(name, folder) for name in SETTINGS}
    found["gpt words:20"] = measured("gpt", folder, "words:20")
    found["gpt bpe:280"] = measured("gpt", folder, "bpe:280")
    return found


@pytest.mark.parametrize("case", [f"{name} char" for name in SETTINGS] + ["gpt words:20", "gpt bpe:280"])
def test_ten_steps_and_their_scores_are_what_they_were(case: str, tmp_path: Path) -> None:
    model, tokenizer = case.split()
    golden = json.loads(VALUES.read_text())[case]
    # Processors round differently; ten steps carry that to the fifth digit, a changed rule to the second.
    assert measured(model, tmp_path, tokenizer) == pytest.approx(golden, rel=1e-4)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        values = all_measured(Path(scratch))
    if "--show" in sys.argv:
        for name, numbers in values.items():
            print(name, {key: value.hex() for key, value in numbers.items()})
    else:
        VALUES.write_text(json.dumps(values, indent=2) + "\n")
