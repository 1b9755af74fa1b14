"""The files of a run that grow by lines: what a power cut leaves in them costs lines, and no training."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import refused
from lmlab.config import Mistake, Note
from lmlab.learn.lines import cut_back, documents, is_metrics, is_sample
from thinning import thinned

Lmlab = Callable[..., tuple[int, str, str]]
TINY = ["--set", "context=2", "--set", "embedding_width=4", "--set", "width=8", "--budget", "4steps"]
DAMAGED = [
    b"\0\0\0\0\n",
    b'{"step": 4, "te\n',
    b"[]\n",
    b"null\n",
    b"3\n",
    b"{}\n",
    b'{"step": "four"}\n',
    b"\xff\xfe\n",
]


def metrics(step: int, **changes: object) -> dict[str, object]:
    return {"step": step, "tokens": 8 * step, "seconds": 0.1, "train_nats": 2.0, "valid_nats": None} | changes


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(metrics(step)) + "\n" for step in (1, 2, 3)))
    return path


@pytest.mark.parametrize("file", ["metrics.jsonl", "samples.jsonl"])
@pytest.mark.parametrize("damage", thinned(DAMAGED, DAMAGED[:2]))
def test_training_goes_on_without_a_damaged_line_and_says_so(
    lmlab: Lmlab, small_text: Path, file: str, damage: bytes
) -> None:
    assert lmlab("train", "feedforward", small_text, *TINY, "--out", "run")[0] == 0
    path = Path("run") / file
    whole = path.read_bytes() if path.exists() else b""
    path.write_bytes(whole + damage)
    code, _, err = lmlab("train", "--resume", "--out", "run", "--budget", "+2steps")
    assert code == 0, err
    (note,) = [line for line in err.splitlines() if "damaged" in line]
    assert note.startswith("lmlab: note: ")
    assert note.endswith(str(path))
    assert path.read_bytes().startswith(whole)
    assert lmlab("curves", "run")[0] == 0


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_curve_with_a_damaged_line_is_one_line_that_names_it(lmlab: Lmlab, small_text: Path, damage: bytes) -> None:
    assert lmlab("train", "feedforward", small_text, *TINY, "--out", "run")[0] == 0
    path = Path("run") / "metrics.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(path.read_bytes() + damage)
    refused(lmlab("curves", "run"), "lines-damaged", "metrics.jsonl", f"in line {len(lines) + 1}")


def test_of_a_checkpoint_only_the_lines_it_counted_are_left(grown: Path) -> None:
    lines = grown.read_text().splitlines(keepends=True)
    grown.write_text("".join([lines[0], "{}\n", lines[1], lines[2]]))
    with pytest.warns(Note, match="a damaged line was dropped"):
        assert cut_back(grown, is_metrics, step=3, most=3) == 2
    assert grown.read_text() == "".join(lines[:2])
    assert cut_back(grown, is_metrics, step=1) == 1
    assert cut_back(grown, is_metrics, step=0) == 0
    assert grown.read_text() == ""


@pytest.mark.parametrize(
    "changes", [{"seconds": None}, {"train_nats": None}, {"train_nats": "2"}, {"valid_nats": []}, {"tokens": True}]
)
def test_a_line_of_metrics_holds_numbers(grown: Path, changes: dict[str, object]) -> None:
    assert len(documents(grown, is_metrics)) == 3
    grown.write_text(json.dumps(metrics(1, **changes)) + "\n")
    with pytest.raises(Mistake, match="damaged in line 1"):
        documents(grown, is_metrics)


def test_a_sample_is_a_step_and_a_text() -> None:
    assert is_sample({"step": 3, "text": "so it goes"})
    assert not is_sample({"step": 3, "text": None})
