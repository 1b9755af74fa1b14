"""Metrics are handed on line by line while training runs: to functions, and to an event file of TensorBoard."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import lmlab as lab
from command_line import Lmlab, done
from lmlab.learn.event_file import write_events

LSTM: dict[str, Any] = {"settings": {"width": 16, "embedding_width": 8, "tie": False}, "device": "cpu"}


def records(path: Path) -> list[bytes]:
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(data[12 : 12 + length])
        data = data[16 + length :]
    return found


def test_a_function_gets_every_line_when_it_is_written(small_text: Path, tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    on_disk: list[int] = []

    def log(line: Mapping[str, Any]) -> None:
        seen.append(line)
        on_disk.append(len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()))

    run = lab.train("lstm", small_text, out=tmp_path / "run", budget="40steps", log=log, **LSTM)
    assert seen == run.metrics
    assert on_disk == list(range(1, len(seen) + 1))
    assert {"step", "seconds", "train_bits_per_byte", "valid_bits_per_byte"} <= set(seen[0])


def test_an_event_file_grows_while_training_runs_and_goes_on_after_a_pause(
    small_text: Path, tmp_path: Path, lmlab: Lmlab
) -> None:
    events = tmp_path / "events"
    grown: list[int] = []

    def look(_: Mapping[str, Any]) -> None:
        grown.append(sum(path.stat().st_size for path in events.iterdir()))

    asked: dict[str, Any] = {"tensorboard": events, "budget": "40steps", "until": 0.5, **LSTM}
    lab.train("lstm", small_text, out=tmp_path / "run", log=[look], **asked)
    assert grown == sorted(set(grown))
    done(lmlab("train", "--resume", "--out", tmp_path / "run", "--tensorboard", events))
    files = sorted(events.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len(files) == 2
    metrics = lab.load(tmp_path / "run").metrics
    (whole,) = (records(write_events(tmp_path / "whole", metrics)),)
    logged = [record for file in files for record in records(file)[1:]]
    assert [record[9:] for record in logged] == [record[9:] for record in whole[1:]]  # but for the time of each


def test_tensorboards_own_reader_reads_a_live_file(small_text: Path, tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader", reason="needs tensorboard")
    run = lab.train("lstm", small_text, out=tmp_path / "run", budget="20steps", tensorboard=tmp_path / "events", **LSTM)
    (path,) = (tmp_path / "events").iterdir()
    assert [event.step for event in reader.EventFileLoader(str(path)).Load()][1:] == [m["step"] for m in run.metrics]
