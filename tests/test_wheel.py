"""The wheel holds everything: installed into an empty folder, without the sources, it works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_a_wheel_works_where_nothing_of_the_sources_is(tmp_path: Path) -> None:
    """Built by `python -m build` in an environment of its own; what lmlab depends on is borrowed from this one."""
    venv.create(tmp_path / "tools", with_pip=True)
    tools = tmp_path / "tools" / "bin" / "python"
    fetched = subprocess.run([tools, "-m", "pip", "install", "-q", "build"], capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"no build tool can be fetched: {fetched.stderr.splitlines()[-1:]}")
    subprocess.run(
        [tools, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT], check=True, capture_output=True
    )
    (wheel,) = (tmp_path / "dist").glob("lmlab-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("claims.toml") for name in names)
    sources = {path.name for path in (ROOT / "src").rglob("*.[ch]")}  # of kernels, which are made where they are used
    assert sources <= {Path(name).name for name in names}
    empty = tmp_path / "empty"
    venv.create(empty, with_pip=True, system_site_packages=False)
    python = empty / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", wheel], check=True, capture_output=True)
    borrowed = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 100)

    def lmlab(*arguments: str) -> str:
        done = subprocess.run(
            [empty / "bin" / "lmlab", *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": borrowed, "LMLAB_CACHE": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "compare" in lmlab("--help")
    lmlab("train", "ngram", "text.txt", "--out", "run")
    assert json.loads(lmlab("eval", "run", "--json"))["certified"]
    assert json.loads(lmlab("prove", "lab11.6b", "--json"))
    assert Path(lmlab("--version").split()[0]).name == "lmlab"
