"""Curves of runs as pictures, pages, CSV and event files; and the page of a run."""

from __future__ import annotations

import csv
import json
import math
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import lmlab as lab
from lmlab.learn import sampling
from lmlab.learn.curve_figures import overlaid
from lmlab.learn.event_file import _masked, crc32c, write_events
from lmlab.learn.run_page import _titled
from thinning import thinned

Lmlab = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("drawn_curves")
SETTINGS = {"context": 2, "embedding_width": 4, "width": 8}


@pytest.fixture(scope="module")
def trained(shared_text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs that learned and one that counted."""
    folder = tmp_path_factory.mktemp("trained")
    for name, seed in (("one", 0), ("two", 1)):
        lab.train("feedforward", shared_text, out=folder / name, budget="8steps", settings=SETTINGS, seed=seed)
    lab.train("bag", shared_text, out=folder / "counted")
    return folder


@pytest.fixture
def runs(trained: Path, tmp_path: Path) -> list[Path]:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return [tmp_path / "one", tmp_path / "two"]


def test_curves_are_written_as_a_page_a_picture_a_table_and_event_files(lmlab: Lmlab, runs: list[Path]) -> None:
    code, out, err = lmlab("curves", *runs, "--csv", "c.csv", "--tensorboard", "events", "--json")
    assert code == 0, err
    found = json.loads(out)
    page = Path("curves.html").read_text()
    assert ">one</text>" in page
    assert "<td>8</td>" in page
    with open("c.csv") as file:
        rows = list(csv.DictReader(file))
    assert {row["run"] for row in rows} == {"one", "two"}
    mine = [float(row["valid_bits_per_byte"]) for row in rows if row["run"] == "two"]
    assert mine == [line["valid_bits_per_byte"] for line in found["lines"]["two"]]
    assert sorted(p.parent.name for p in Path("events").rglob("*tfevents*")) == ["one", "two"]
    assert lmlab("curves", *runs, "--out", "c.svg", "--over", "seconds")[0] == 0
    ElementTree.parse("c.svg")


def test_curves_in_python_are_a_picture_and_runs_of_one_name_are_told_apart(runs: list[Path], tmp_path: Path) -> None:
    found = lab.curves(runs[0], lab.load(runs[1]), runs[0])
    assert list(found.lines) == [f"{tmp_path.name}/one (1)", "two", f"{tmp_path.name}/one (3)"]
    ElementTree.fromstring(found._repr_html_())
    assert found.written == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["one", "--over", "epochs"], ["--over", "tokens, steps or seconds"]),
        (["one", "--out", "curves.png"], ["--out", ".html or .svg"]),
        (["nowhere"], ["there is no run nowhere"]),
        (["counted"], ["has no curve: it counts"]),
    ],
)
def test_what_has_no_curve_says_so(lmlab: Lmlab, runs: list[Path], arguments: list[str], words: list[str]) -> None:
    code, _, err = lmlab("curves", *arguments)
    assert code == 2
    assert all(word in err for word in words), err


def test_the_checksum_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C (RFC 3720, B.4 has others)
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def fields(data: bytes) -> dict[int, list[Any]]:
    """A message of protocol buffers by its field numbers, read as the standard says."""
    found: dict[int, list[Any]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind, size = key & 7, {1: 8, 5: 4}.get(key & 7, 0)
        if kind == 0:
            value: Any = varint()
        else:
            size = varint() if kind == 2 else size
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


LINES = [
    {"step": 300, "tokens": 5000, "seconds": 1.5, "valid_bits_per_byte": 2.25, "train_bits_per_byte": 2.5},
    {"step": 70_000, "tokens": 9_000_000, "seconds": 3.0, "valid_bits_per_byte": None, "train_bits_per_byte": 1.5},
]


def test_an_event_file_holds_every_number_at_its_step(tmp_path: Path) -> None:
    data, events = write_events(tmp_path, LINES).read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == _masked(data[:8])
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == _masked(data[12 : 12 + length])
        events.append(fields(data[12 : 12 + length]))
        data = data[16 + length :]
    assert events[0][3] == [b"brain.Event:2"]
    assert [event[2] for event in events[1:]] == [[300], [70_000]]
    first, second = (
        {v[1][0].decode(): struct.unpack("<f", v[2][0])[0] for v in map(fields, fields(event[5][0])[1])}
        for event in events[1:]
    )
    assert first == {"tokens": 5000, "valid_bits_per_byte": 2.25, "train_bits_per_byte": 2.5}
    assert second == {"tokens": 9_000_000, "train_bits_per_byte": 1.5}


def test_tensorboards_own_reader_reads_it(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader", reason="needs tensorboard")
    events = list(reader.EventFileLoader(str(write_events(tmp_path, LINES))).Load())
    assert [event.step for event in events] == [0, 300, 70_000]
    values = {v.tag: v.tensor.float_val[0] if v.HasField("tensor") else v.simple_value for v in events[1].summary.value}
    assert values == {"tokens": 5000, "valid_bits_per_byte": 2.25, "train_bits_per_byte": 2.5}


@pytest.mark.parametrize("model", thinned(["gpt", "lstm"], ["gpt"]))
def test_a_run_has_a_page_with_its_curve_and_what_it_wrote_as_it_learned(
    model: str, small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"layers": 1, "width": 16} | ({"context": 16} if model == "gpt" else {})
    monkeypatch.setattr(sampling, "FROM_S", math.inf)  # on a slow machine even this would take long enough
    plain = lab.train(model, small_text, out=tmp_path / "plain", budget="40steps", settings=settings)
    assert plain.samples == []  # over before there was anything to see
    monkeypatch.setattr(sampling, "FROM_S", 0.0)
    monkeypatch.setattr(sampling, "SHARE", math.inf)
    run = lab.train(model, small_text, out=tmp_path / "run", budget="40steps", settings=settings)
    assert run.record.model.sha256 == plain.record.model.sha256  # looking on changes nothing
    assert len(run.samples) >= 2
    assert run.samples[0]["text"] != run.samples[-1]["text"]
    page = (tmp_path / "run" / "page.html").read_text()
    assert "<svg" in page
    assert f"step {run.samples[-1]['step']}, whose weights are kept" in page
    broken = any("\ufffd" in sample["text"] for sample in run.samples)
    assert ("stands for bytes that make no character" in page) == broken
    longer = lab.resume(run, budget="+5steps")
    assert [s["step"] for s in longer.samples][: len(run.samples)] == [s["step"] for s in run.samples][
        : len(run.samples)
    ]
    assert "Where its weights came from" in (tmp_path / "run" / "page.html").read_text()


def test_a_page_shows_the_last_sample_once_and_says_that_its_weights_are_kept() -> None:
    early, late = {"step": 3, "text": "a"}, {"step": 9, "text": "b"}
    assert _titled([early, late, late]) == [("step 3", "a"), ("step 9, whose weights are kept", "b")]
    assert [title for title, _ in _titled([early, late, early])] == [
        "step 3",
        "step 9",
        "step 3, whose weights are kept",
    ]
    assert len(_titled([early])) == 1


def test_a_page_says_the_best_validation_and_where_the_run_went_on(runs: list[Path]) -> None:
    run = lab.load(runs[0])
    best = min(line["valid_bits_per_byte"] for line in run.metrics)
    page = (runs[0] / "page.html").read_text()
    assert f"{best:.4f} bits per byte, at step {run.record.result.best_step}" in page
    assert "went on" not in page
    run = lab.resume(runs[0], budget="+4steps")
    assert run.record.training.extension_steps == [8]
    page = (runs[0] / "page.html").read_text()
    assert ">went on</text>" in page
    assert "The run went on at step 8: its learning rate rises again there" in page
    again = lab.fine_tune(run, run.corpus, out=runs[0].parent / "tuned", budget="3steps")
    assert again.record.training.extension_steps == []  # what another run did is no part of this curve


def test_many_tokens_are_written_short() -> None:
    lines = [{"step": i, "tokens": 50_000 * i, "valid_bits_per_byte": 5.0 - i} for i in range(1, 4)]
    assert ">100k</text>" in overlaid({"run": lines}, "bits per byte", "tokens")
