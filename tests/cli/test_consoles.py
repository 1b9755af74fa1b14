"""A console that knows only ASCII, and a system whose own encoding is not UTF-8: nothing is lost, nobody fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lmlab

TEXT = "Ein schöner Tag für Bären und Übungen – naïve Ärzte zählen 日本語 Wörter.\n" * 60


@pytest.mark.slow
def test_compare_and_eval_on_an_ascii_console_name_every_encoding(tmp_path: Path) -> None:
    (tmp_path / "umlauts.txt").write_text(TEXT, encoding="utf-8")
    small = ["--set", "bigram.width=8", "--set", "bigram.embedding_width=4"]
    for command in (
        ["compare", "umlauts.txt", "--models", "bag,bigram", "--each", "0.5s", "--out", "öut", *small],
        ["eval", "öut/models/bigram-char"],
    ):
        done = subprocess.run(
            [sys.executable, "-X", "warn_default_encoding", "-m", "lmlab", *command],
            cwd=tmp_path,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith(("LC_", "PYTHONIO"))},
                "LC_ALL": "C",
                "PYTHONUTF8": "0",
                "PYTHONCOERCECLOCALE": "0",
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "LMLAB_CACHE": str(tmp_path / "cache"),
            },
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        assert done.stdout.isascii()
        said = done.stderr.decode(errors="replace").splitlines()
        ours = str(Path(lmlab.__file__).parent)
        assert [line for line in said if "EncodingWarning" in line and ours in line] == []
    page = (tmp_path / "öut" / "report.html").read_text(encoding="utf-8")
    assert "schöner" in page
    json.loads((tmp_path / "öut" / "comparison.json").read_text(encoding="utf-8"))
