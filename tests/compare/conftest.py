"""The command line, as the tests of comparisons and sweeps call it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lmlab.cli.app import app, main


@pytest.fixture
def lmlab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line as the script would, in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["lmlab", *map(str, arguments)])
        app.registered_commands.clear()
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    return run
