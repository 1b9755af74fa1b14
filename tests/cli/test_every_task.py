"""What holds for every task: it is trained, measured and used on the device asked for, shows how far it is, and speaks JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from command_line import Lmlab, refused
from lmlab.cli import commands
from lmlab.cli.show import progress
from lmlab.learn import loop
from lmlab.models.registry import KINDS
from lmlab.tasks.classification import scores
from lmlab.text import sources, tables

VERBS = set(commands.names())

PROSE = "The cat sat on the mat, and the dog sat on the cat. A man ran to the sea, and the sea was calm. " * 40
COUPLES = "".join(f"the w{5 * i % 17} v{7 * i % 23} and " for i in range(300))
LABELS = "".join(
    f"{'good' if i % 2 else 'bad'}\t{'fine' if i % 2 else 'dull'} film number {i % 9}\n" for i in range(40)
)
PAIRS = "en\tde\n" + "".join(f"number {i}\tNummer {i}\n" for i in range(40))
SMALL = ("--set", "layers=1", "--set", "width=8")


@dataclass(frozen=True)
class Trial:
    """What a kind learns here, in how little, how it is used, and what it says it counts."""

    data: str
    settings: tuple[str, ...]
    use: tuple[str, ...]  # behind the verb and the run
    counts: str
    options: tuple[str, ...] = ()


TRIALS = {
    "dan": Trial(LABELS, ("--set", "width=8", "--set", "hidden=8"), ("a fine film",), "examples/s"),
    "classifier": Trial(
        LABELS, (*SMALL, "--set", "heads=1", "--set", "context=12", "--tokenizer", "byte"), ("a film",), "examples/s"
    ),
    "bert": Trial(
        PROSE, (*SMALL, "--set", "heads=1", "--set", "context=12", "--tokenizer", "words"), ("The [MASK] sat",),
        "masked tokens/s",
    ),
    "variational": Trial(
        PROSE, (*SMALL, "--set", "latent=2", "--set", "segment=8", "--tokenizer", "words"), ("The cat", "a man"),
        "tokens/s", ("--number", "2"),
    ),
    "translator": Trial(PAIRS, (*SMALL, "--set", "heads=1"), ("number 3",), "tokens/s", ("--beam", "1")),
    "glove": Trial(PROSE, ("--set", "width=4", "--set", "window=9", "--set", "held_out=0.1"), ("neighbours", "cat"), "pairs/s"),
    "autoencoder": Trial(COUPLES, ("--set", "width=4"), ("the", "w3"), "pairs/s"),
}  # fmt: skip


def test_there_is_a_trial_of_every_kind_that_is_no_language_model() -> None:
    assert set(TRIALS) == {name for name, kind in KINDS.items() if kind.task is not None}


@pytest.mark.parametrize("name", TRIALS)
def test_what_it_learns_when_nobody_says_what_and_how_it_is_used_are_there(name: str) -> None:
    kind = KINDS[name]
    assert kind.data in {*tables.NAMES, *sources.PAIRS, *sources.SELECTIONS, *sources.MADE_HERE}
    assert kind.use.split()[0] in VERBS
    assert kind.use.split()[1] == "RUN"


@pytest.mark.parametrize("name", TRIALS)
def test_it_is_trained_measured_and_used_in_json_on_the_device_asked_for(
    name: str, lmlab: Lmlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, run = TRIALS[name], tmp_path / "run"
    data = tmp_path / ("data.tsv" if "\t" in trial.data else "data.txt")
    data.write_text(trial.data)
    monkeypatch.setattr(progress, "PLAIN_EVERY_S", 0.0)
    monkeypatch.setattr(progress, "FIRST_PLAIN_S", 0.0)
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    monkeypatch.setattr(scores, "RESAMPLES", 20)  # intervals have tests of their own

    def asked(*arguments: object) -> tuple[Any, str]:
        code, out, err = lmlab(*arguments, "--json", "--device", "cpu")
        assert code == 0 or arguments[0] == "eval", err  # of so few rows some are copies of others
        return json.loads(out), err

    _, err = asked("train", name, data, "--budget", "3steps", *trial.settings, "--out", run)
    assert f"{name}: " in err
    assert f" {trial.counts} · " in err  # how fast, in what it counts
    measured, _ = asked("eval", run, "--part", "valid")
    assert measured["part"] == "valid"
    verb = KINDS[name].use.split()[0]
    assert f"    lmlab {verb} run" in (run / "README.md").read_text()
    asked(verb, run, *trial.use, *trial.options)
    if not torch.cuda.is_available():
        for command in (["train", name, data, "--out", tmp_path / "no"], ["eval", run], [verb, run, *trial.use]):
            refused(lmlab(*command, "--device", "cuda"), "no CUDA device")
