"""What a run says it computed is what PyTorch counts in its steps, and `train` and its page say the same.

That `compare` and its page say it too is held in tests/comparison.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

import lmlab
from command_line import Lmlab, done
from lmlab.costs.dispatcher import LACKING
from lmlab.layers import fast
from lmlab.learn import stepping
from lmlab.learn.micro_batches import MicroBatch
from lmlab.page.numbers import short
from thinning import thinned

SMALL = {"width": 8}
WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "saw",
    "one",
    "dog",
    "run",
    "to",
    "them",
    "while",
    "birds",
    "sing",
]


def plain_text(folder: Path) -> Path:
    path = folder / "text.txt"
    path.write_text("\n".join(" ".join(WORDS[i % 7 :: 1 + i % 3]) for i in range(200)))
    return path


def labelled(folder: Path) -> Path:
    path = folder / "labelled.tsv"
    path.write_text("text\tlabel\n" + "".join(f"{' '.join(WORDS[: 2 + i % 9])}\t{'ab'[i % 2]}\n" for i in range(60)))
    return path


def two_languages(folder: Path) -> Path:
    path = folder / "pairs.tsv"
    lines = (f"{' '.join(WORDS[: 1 + i % 5])}\t{' '.join(WORDS[3 : 5 + i % 7])}\n" for i in range(60))
    path.write_text("en\txx\n" + "".join(lines))
    return path


CASES: dict[str, tuple[Callable[[Path], Path], str, dict[str, Any]]] = {
    "gpt": (plain_text, "3steps", {"layers": 1, "heads": 1, "context": 32, **SMALL}),
    "feedforward": (plain_text, "3steps", SMALL),
    # a stretch of 16 pieces, the first without a past
    "rnn-attention": (plain_text, "16steps", {"memory": 100, **SMALL}),
    "bert": (plain_text, "3steps", {"layers": 1, "heads": 1, **SMALL}),
    "dan": (labelled, "1epochs", {"hidden": 6, **SMALL}),
    "classifier": (labelled, "1epochs", {"layers": 1, "heads": 1, **SMALL}),
    "translator": (two_languages, "1epochs", {"layers": 1, "heads": 1, **SMALL}),
    "glove": (plain_text, "3steps", {"least": 1, **SMALL}),
}
BYTES = ("bert", "classifier", "translator")  # the text is too short for pairs of bytes
# batches are of many shapes, and in a few steps not all come as often as in many
DRAWN = {"bert": 0.5, "translator": 0.1}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What PyTorch counts in each step that is taken, without the update."""
    counted: list[int] = []

    def counting(self: stepping.Eager, micro_batches: Sequence[MicroBatch], count: int, factor: float) -> Any:
        with fast.plain(), FlopCounterMode(display=False, custom_mapping=dict(LACKING)) as counter:
            for micro_batch in micro_batches:
                loss, _ = self.loss_of(self.model, micro_batch.piece, micro_batch.carry)
                (loss.total / count).backward()
        counted.append(counter.get_total_flops())
        stepping.forget_gradients(self.optimizer.parameters.values())
        return take(self, micro_batches, count, factor)

    take = stepping.Eager.take
    monkeypatch.setattr(stepping.Eager, "take", counting)
    return counted


@pytest.mark.parametrize("model", thinned(CASES, ["gpt", "dan", "bert", "glove"]))
def test_a_run_has_written_down_what_pytorch_counts_in_its_steps(
    model: str, tmp_path: Path, counted: list[int]
) -> None:
    make, budget, settings = CASES[model]
    asked: dict[str, Any] = {"budget": budget, "settings": settings, "tokenizer": "byte" if model in BYTES else None}
    run = lmlab.train(model, make(tmp_path), out=tmp_path / "run", **asked, device="cpu")
    assert run.record.result.training_flops == pytest.approx(sum(counted), rel=DRAWN.get(model, 1e-9))


@pytest.mark.parametrize(
    "model", thinned(["gpt", "feedforward", "cnn", "attention", "bigram", "gru", "bert"], ["gpt", "cnn", "bert"])
)
def test_documents_shorter_than_a_window_cost_what_their_windows_cost(
    model: str, tmp_path: Path, counted: list[int]
) -> None:
    """The places behind them are computed, but for the output layer; a model that leaves them out altogether says so."""
    (tmp_path / "texts").mkdir()
    for number in range(60):
        (tmp_path / "texts" / f"{number}.txt").write_text("some words here " * (1 + number % 3))
    settings = {"layers": 1, "heads": 1, "context": 64, **SMALL} if model in ("gpt", "bert") else SMALL
    options: dict[str, Any] = {"budget": "40steps", "learning": {"rows": 4}, "tokenizer": "byte", "device": "cpu"}
    run = lmlab.train(model, tmp_path / "texts", out=tmp_path / "run", settings=settings, **options)
    close = 0.12 if model in DRAWN else 0.05
    assert run.record.result.training_flops == pytest.approx(sum(counted), rel=close)


def test_train_its_page_and_count_say_the_same(lmlab: Lmlab, small_text: Path) -> None:
    out = done(lmlab("train", "bigram", small_text, "--budget", "5steps", "--out", "run", "--device", "cpu"))
    found = json.loads(Path("run/run.json").read_text())
    counts = json.loads(lmlab("count", "run", "--json")[1])
    per_token = (counts["forward"] + counts["backward"]) / counts["length"]
    flops = found["result"]["training_flops"]
    assert flops == pytest.approx(per_token * found["result"]["tokens"])
    said = f"{found['model']['parameters']:,} parameters, {short(flops)} FLOPs"
    assert said in out
    page = Path("run/page.html").read_text()
    assert f"{short(flops)} of training" in page
    assert f"{counts['parameters']:,}" in page


def test_a_run_that_counts_or_is_older_is_counted_when_it_is_asked(small_text: Path, tmp_path: Path) -> None:
    assert lmlab.train("bag", small_text, out=tmp_path / "bag").training_flops is None
    run = lmlab.train("bigram", small_text, out=tmp_path / "run", budget="2steps", device="cpu")
    written = json.loads((tmp_path / "run/run.json").read_text())
    known = written["result"].pop("training_flops")
    (tmp_path / "run/run.json").write_text(json.dumps(written))
    assert lmlab.load(tmp_path / "run").training_flops == pytest.approx(known) == run.training_flops
